#include "compiler/passes/deduplicate.h"

#include "compiler/passes/rebuild.h"

namespace fusiond::passes {

absl::StatusOr<bool> Deduplicate(ir::Graph& graph, const PassContext& context) {
  return Rebuild(graph, context, Sharing::kEqualNodes)
      .Run(graph, [](const ir::Node&, Rebuild&) -> Replacement { return std::nullopt; });
}

}  // namespace fusiond::passes
