#include "server/engine/request.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/import/graph_proto.h"
#include "compiler/ir/hash.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/verify.h"
#include "runtime/base/counted.h"
#include "runtime/base/status_macros.h"
#include "runtime/executable/signature.h"

namespace fusiond::server {
namespace {

// Larger alignments are no better to any kernel.
constexpr int64_t kMaxAlignment = 4096;
constexpr int64_t kDefaultAlignment = 16;

absl::Status LayoutError(int input, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("inputs[", input, "]: ", what));
}

// The layout a caller gave, or the one the graph states, completed.
absl::StatusOr<v1::InputLayout> CompleteLayout(const ir::Graph& graph, int input,
                                               const v1::InputLayout* given) {
  const ir::Type& type = graph.type(graph.inputs()[input]);
  v1::InputLayout layout;
  if (given != nullptr) {
    layout = *given;
    layout.DiscardUnknownFields();
  } else {
    layout.mutable_shape()->Add(type.shape.begin(), type.shape.end());
  }
  if (layout.shape_size() != type.rank()) {
    return LayoutError(
        input, absl::StrCat("rank ", type.rank(), " expected, given ", layout.shape_size()));
  }
  if (layout.strides_size() != 0 && layout.strides_size() != type.rank()) {
    return LayoutError(input, absl::StrCat(base::Counted(type.rank(), "stride"),
                                           " expected, given ", layout.strides_size()));
  }
  if (layout.strides_size() == 0) {
    // What the graph itself says where it says it, else row-major.
    const ir::Dims row_major =
        ir::ContiguousStrides({layout.shape().begin(), layout.shape().end()});
    for (int d = 0; d < type.rank(); ++d) {
      layout.add_strides(type.strides[d] != ir::kUnknownStride ? type.strides[d] : row_major[d]);
    }
  }
  if (layout.alignment() == 0) layout.set_alignment(kDefaultAlignment);
  const int64_t alignment = layout.alignment();
  if (alignment < 1 || alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0) {
    return LayoutError(input, absl::StrCat("alignment: a power of two up to ", kMaxAlignment,
                                           " expected, given ", alignment));
  }
  for (int d = 0; d < type.rank(); ++d) {
    if (layout.shape(d) < 0) {
      return LayoutError(input,
                         absl::StrCat("dim ", d, ": an extent is needed, given ", layout.shape(d)));
    }
    if (layout.strides(d) < 0) {
      return LayoutError(input,
                         absl::StrCat("dim ", d, ": strides are ≥ 0, given ", layout.strides(d)));
    }
  }
  return layout;
}

executable::TensorArg ToArgument(const v1::InputLayout& layout) {
  executable::TensorArg argument;
  argument.address = static_cast<uint64_t>(layout.alignment());
  argument.shape.assign(layout.shape().begin(), layout.shape().end());
  argument.strides.assign(layout.strides().begin(), layout.strides().end());
  return argument;
}

executable::Signature MakeSignature(const ir::Graph& graph, const std::vector<ir::Dims>& extents) {
  executable::Signature signature;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::ValueId id = graph.inputs()[i];
    const ir::Type& type = graph.type(id);
    executable::SignatureInput input;
    input.dtype = type.dtype;
    input.scalar = type.scalar;
    input.space = graph.producer(id).attributes.Bool(ir::AttributeKey::kHost)
                      ? executable::MemorySpace::kHost
                      : executable::MemorySpace::kDevice;
    for (int d = 0; d < type.rank(); ++d) {
      input.extents.push_back(type.shape[d] == ir::kSymbolic ? std::make_optional(extents[i][d])
                                                             : std::nullopt);
    }
    signature.inputs.push_back(std::move(input));
  }
  return signature;
}

}  // namespace

absl::StatusOr<PreparedRequest> PrepareRequest(const v1::CompileRequest& request,
                                               const executable::DeviceInfo& device,
                                               const KeyContext& context,
                                               const ir::Limits& limits) {
  PreparedRequest prepared;
  prepared.device = device;
  FUSIOND_ASSIGN_OR_RETURN(ir::Graph graph, graph_proto::FromBytes(request.graph(), limits));
  FUSIOND_RETURN_IF_ERROR(ir::Verify(graph, ir::Stage::kImported, limits));
  const std::map<std::string, std::string> options(request.options().begin(),
                                                   request.options().end());
  FUSIOND_ASSIGN_OR_RETURN(prepared.options, compiler::OptionsFromMap(options));
  if (prepared.options.precision == compiler::Precision::kDouble && !device.is_cpu()) {
    return absl::InvalidArgumentError(
        absl::StrCat("option precision=double is for target cpu, not ", device.arch));
  }

  const int inputs = static_cast<int>(graph.inputs().size());
  if (request.inputs_size() != 0 && request.inputs_size() != inputs) {
    return absl::InvalidArgumentError(absl::StrCat("inputs: ", base::Counted(inputs, "layout"),
                                                   " expected (or none), given ",
                                                   request.inputs_size()));
  }
  std::vector<ir::Dims> extents;
  for (int i = 0; i < inputs; ++i) {
    FUSIOND_ASSIGN_OR_RETURN(
        v1::InputLayout layout,
        CompleteLayout(graph, i, request.inputs_size() == 0 ? nullptr : &request.inputs(i)));
    extents.emplace_back(layout.shape().begin(), layout.shape().end());
    prepared.arguments.push_back(ToArgument(layout));
    prepared.layouts.push_back(std::move(layout));
  }
  // Also where extents that meet in a node are held against each other.
  FUSIOND_RETURN_IF_ERROR(ir::Specialise(graph, extents).status());

  prepared.graph = graph_proto::ToBytes(graph);
  cache::KeyMaterial& material = prepared.material;
  material.graph = ir::GraphHash(graph);
  material.arch = device.arch;
  material.device_profile = device.profile;
  material.signature = MakeSignature(graph, extents).Encode();
  material.options = prepared.options.ToMap();
  material.specialisation_version = ir::kSpecialisationVersion;
  material.compiler_version = context.compiler_version;
  if (!device.is_cpu()) material.nvrtc = context.nvrtc;
  prepared.encoded = cache::EncodeRequest(material);
  return prepared;
}

}  // namespace fusiond::server
