#include "server/service/known_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/import/graph_proto.h"
#include "runtime/base/status_macros.h"
#include "runtime/executable/serialise.h"
#include "runtime/executable/signature.h"

namespace fusiond::server {
namespace {

// Extents from the signature where the graph leaves them open.
absl::Status AddShapes(const ir::Graph& graph, const std::string& encoded,
                       v1::CompileRequest& request) {
  FUSIOND_ASSIGN_OR_RETURN(const executable::Signature signature,
                           executable::Signature::Decode(encoded));
  if (signature.inputs.size() != graph.inputs().size())
    return absl::DataLossError("signature and graph differ in their inputs");
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Type& type = graph.type(graph.inputs()[i]);
    const std::vector<std::optional<int64_t>>& extents = signature.inputs[i].extents;
    if (extents.size() != type.shape.size())
      return absl::DataLossError(absl::StrCat("signature and graph differ in input ", i));
    v1::InputLayout& layout = *request.add_inputs();
    for (size_t d = 0; d < extents.size(); ++d)
      layout.add_shape(extents[d].value_or(type.shape[d]));
  }
  return absl::OkStatus();
}

// What the kernels rely on; they were compiled for that.
void AddStrides(const ir::Graph& graph, const std::vector<executable::Guard>& guards,
                v1::CompileRequest& request) {
  for (int i = 0; i < request.inputs_size(); ++i) {
    v1::InputLayout& layout = *request.mutable_inputs(i);
    const ir::Type& type = graph.type(graph.inputs()[i]);
    if (type.rank() == 0) continue;
    const ir::Dims dense = ir::ContiguousStrides({layout.shape().begin(), layout.shape().end()});
    for (int d = 0; d < type.rank(); ++d)
      layout.add_strides(type.strides[d] != ir::kUnknownStride ? type.strides[d] : dense[d]);
    layout.set_alignment(ir::ByteSize(type.dtype));
  }
  for (const executable::Guard& guard : guards) {
    if (guard.output || guard.input >= static_cast<uint32_t>(request.inputs_size())) continue;
    v1::InputLayout& layout = *request.mutable_inputs(static_cast<int>(guard.input));
    if (guard.kind == executable::Guard::Kind::kAligned) {
      layout.set_alignment(guard.value);
    } else if (guard.kind == executable::Guard::Kind::kStrideEquals &&
               guard.dim < static_cast<uint32_t>(layout.strides_size())) {
      layout.set_strides(static_cast<int>(guard.dim), guard.value);
    }
  }
}

}  // namespace

absl::StatusOr<KnownRequest> FindKnownRequest(cache::Cache& cache, const Grants& grants,
                                              const Identity& identity,
                                              absl::string_view key_prefix) {
  // What belongs to others does not exist.
  const absl::Status unknown = absl::NotFoundError(
      absl::StrCat("no entry of yours has a key that begins with ", key_prefix));
  const absl::StatusOr<cache::RequestKey> key = cache.Resolve(key_prefix);
  if (!key.ok()) return absl::IsNotFound(key.status()) ? unknown : key.status();
  KnownRequest known;
  known.key = *key;
  std::optional<cache::RequestInfo> info = cache.FindRequest(known.key);
  const bool allowed =
      info && (identity.administrator ||
               std::any_of(info->entry.variants.begin(), info->entry.variants.end(),
                           [&](const cache::Variant& variant) {
                             return grants.Allow(identity, variant.executable);
                           }));
  if (!allowed) return unknown;
  known.material = std::move(info->material);
  std::optional<std::string> bytes = cache.FindGraph(known.material.graph);
  if (!bytes) {
    return absl::NotFoundError(absl::StrCat("the graph of key ", known.key.Hex(),
                                            " was not kept: the cache is in memory alone"));
  }
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, graph_proto::FromBytes(*bytes));
  known.request.set_graph(*std::move(bytes));
  known.request.set_target(known.material.device_profile);
  known.request.mutable_options()->insert(known.material.options.begin(),
                                          known.material.options.end());
  FUSIOND_RETURN_IF_ERROR(AddShapes(graph, known.material.signature, known.request));
  std::vector<executable::Guard> guards;
  if (!info->entry.variants.empty()) {
    FUSIOND_ASSIGN_OR_RETURN(guards, executable::DeserialiseGuards(info->entry.variants[0].guards));
  }
  // Arch cpu asks for nothing: any strides, any address.
  if (!guards.empty()) AddStrides(graph, guards, known.request);
  return known;
}

}  // namespace fusiond::server
