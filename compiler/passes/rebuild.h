// Rebuild: the frame of a pass that looks at one node at a time.
//
// Nodes are visited in topological order. A visitor gives the value that stands for the node's
// result in the new graph, or nullopt to keep the node; it may also map each result itself.
//
// Thread-safety: thread-compatible. Cost: O(nodes log nodes).
#ifndef FUSIOND_COMPILER_PASSES_REBUILD_H_
#define FUSIOND_COMPILER_PASSES_REBUILD_H_

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/builder.h"
#include "compiler/passes/pass.h"

namespace fusiond::passes {

using Operands = absl::InlinedVector<ir::ValueId, 4>;
inline constexpr ir::ValueId kUnmapped = ~ir::ValueId{0};
using Replacement = absl::StatusOr<std::optional<ir::ValueId>>;

class Rebuild {
 public:
  Rebuild(const ir::Graph& from, const PassContext& context, Sharing sharing = Sharing::kNone);

  // Runs `visit(node, *this) -> Replacement` over all nodes but inputs; replaces `graph`, which
  // must be the one given, and says whether it changed.
  template <typename Visit>
  absl::StatusOr<bool> Run(ir::Graph& graph, Visit visit);

  const ir::Graph& from() const { return from_; }
  const ir::Graph& to() const { return builder_.graph(); }
  Builder& builder() { return builder_; }
  const PassContext& context() const { return context_; }

  // The value in to() that stands for a value of from().
  ir::ValueId operator[](ir::ValueId old) const { return renamed_[old]; }
  void Map(ir::ValueId old, ir::ValueId now) { renamed_[old] = now; }
  Operands Renamed(const ir::Node& node) const;
  // The node of to() that computes what stands for `old`.
  const ir::Node& Producer(ir::ValueId old) const { return to().producer(renamed_[old]); }
  const ir::Type& type(ir::ValueId now) const { return to().type(now); }

  absl::StatusOr<ir::ValueId> Add(ir::Op op, absl::Span<const ir::ValueId> operands,
                                  const ir::Attributes& attributes = {}) {
    return builder_.Add(op, operands, attributes);
  }
  // `value` as `dtype`: itself, a constant of that type, or a cast.
  absl::StatusOr<ir::ValueId> Cast(ir::ValueId value, ir::DType dtype);

 private:
  absl::Status Copy(const ir::Node& node);
  bool Finish(ir::Graph& graph);

  const ir::Graph& from_;
  const PassContext& context_;
  Builder builder_;
  std::vector<ir::ValueId> renamed_;
};

template <typename Visit>
absl::StatusOr<bool> Rebuild::Run(ir::Graph& graph, Visit visit) {
  for (const ir::NodeId id : from_.TopologicalOrder()) {
    const ir::Node& node = from_.node(id);
    if (node.op == ir::Op::kInput) continue;
    context_.Visit();
    Replacement replacement = visit(node, *this);
    if (!replacement.ok()) return std::move(replacement).status();
    if (replacement->has_value()) {
      renamed_[node.results[0]] = **replacement;
    } else if (renamed_[node.results[0]] == kUnmapped) {
      if (absl::Status status = Copy(node); !status.ok()) return status;
    }
  }
  return Finish(graph);
}

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_REBUILD_H_
