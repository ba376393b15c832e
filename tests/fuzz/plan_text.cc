#include "tests/fuzz/plan_text.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "runtime/base/crc32c.h"
#include "runtime/base/status_macros.h"

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

}  // namespace

absl::StatusOr<PlanResult> PlanText(absl::string_view text) {
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph parsed, ir::Parse(text));
  if (parsed.nodes().size() > kMaxNodes) return absl::ResourceExhaustedError("too many nodes");
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, Bind(parsed));
  const uint32_t choice = base::Crc32c(text);
  PlanRequest request;
  request.graph = graph;
  request.device = *executable::ProfileByName(kDevices[choice % std::size(kDevices)]);
  request.options.math = static_cast<Math>(choice / 8 % 3);
  request.attempt = static_cast<int>(choice / 32 % 3);
  for (const ir::ValueId input : graph.inputs()) {
    const ir::Type& type = graph.type(input);
    request.inputs.push_back({type.shape, type.strides, int64_t{4} << choice / 128 % 3});
  }
  return Plan(request);
}

}  // namespace fusiond::compiler
