// Any bytes as .fir text, through the whole compiler as far as CUDA text: a graph that the parser
// accepts is planned or refused for a reason that names it, and what is planned is a valid
// executable.
//
// The checksum of the text chooses device, options and attempt, so that any graph file is a seed.
// Graphs of more than 48 nodes are left out: they take long and bring nothing new.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "runtime/base/check.h"
#include "runtime/base/crc32c.h"
#include "runtime/executable/serialise.h"

namespace fusiond::compiler {
namespace {

constexpr size_t kMaxNodes = 48;
constexpr int64_t kExtent = 24;  // for symbolic ones
constexpr const char* kDevices[] = {"cpu", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"};

absl::StatusOr<ir::Graph> Bind(const ir::Graph& graph) {
  std::vector<ir::Dims> extents;
  for (const ir::ValueId input : graph.inputs()) {
    extents.push_back(graph.type(input).shape);
    for (int64_t& extent : extents.back()) {
      if (extent < 0) extent = kExtent;
    }
  }
  return ir::Specialise(graph, extents);
}

void PlanText(absl::string_view text) {
  const absl::StatusOr<ir::Graph> parsed = ir::Parse(text);
  if (!parsed.ok() || parsed->nodes().size() > kMaxNodes) return;
  const absl::StatusOr<ir::Graph> graph = Bind(*parsed);
  if (!graph.ok()) return;
  const uint32_t choice = base::Crc32c(text);
  PlanRequest request;
  request.graph = *graph;
  request.device = *executable::ProfileByName(kDevices[choice % std::size(kDevices)]);
  request.options.math = static_cast<Math>(choice / 8 % 3);
  request.attempt = static_cast<int>(choice / 32 % 3);
  for (const ir::ValueId input : graph->inputs()) {
    const ir::Type& type = graph->type(input);
    request.inputs.push_back({type.shape, type.strides, int64_t{4} << choice / 128 % 3});
  }
  const absl::StatusOr<PlanResult> plan = Plan(request);
  if (!plan.ok()) {
    FUSIOND_CHECK(absl::IsInvalidArgument(plan.status()) || absl::IsUnimplemented(plan.status()) ||
                  absl::IsResourceExhausted(plan.status()));
    return;
  }
  FUSIOND_CHECK(executable::Deserialise(executable::Serialise(plan->skeleton)).ok());
  const absl::StatusOr<ir::Graph> canonical = ir::Parse(plan->canonical_ir);
  FUSIOND_CHECK(canonical.ok());
  FUSIOND_CHECK(ir::Print(*canonical) == plan->canonical_ir);
}

}  // namespace
}  // namespace fusiond::compiler

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fusiond::compiler::PlanText({reinterpret_cast<const char*>(data), size});
  return 0;
}
