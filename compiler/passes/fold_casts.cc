#include "compiler/passes/fold_casts.h"

#include <algorithm>
#include <utility>

#include "compiler/passes/constants.h"
#include "compiler/passes/rebuild.h"

namespace fusiond::passes {
namespace {

using ir::DType;
using ir::Op;
using ir::ValueId;

// Every value of `from` is one of `to`.
bool Holds(DType to, DType from) {
  if (to == from || from == DType::kBool) return true;
  switch (from) {
    case DType::kInt32:
      return to == DType::kInt || to == DType::kDouble;
    case DType::kHalf:
    case DType::kBFloat16:
      return to == DType::kFloat || to == DType::kDouble;
    case DType::kFloat:
      return to == DType::kDouble;
    default:
      return false;
  }
}

bool IsNarrow(DType dtype) { return dtype == DType::kHalf || dtype == DType::kBFloat16; }

class CastFolder {
 public:
  explicit CastFolder(bool excess_precision) : excess_precision_(excess_precision) {}

  Replacement operator()(const ir::Node& node, Rebuild& rebuild) {
    if (node.op != Op::kCast) return std::nullopt;
    const DType to = rebuild.from().type(node.results[0]).dtype;
    ValueId value = rebuild[node.operands[0]];
    while (rebuild.to().producer(value).op == Op::kCast) {
      const ValueId source = rebuild.to().producer(value).operands[0];
      if (!MayDrop(rebuild.to(), source, rebuild.type(value).dtype, to)) break;
      value = source;
    }
    return rebuild.Cast(value, to);
  }

 private:
  // cast(cast(source → middle) → to) equals cast(source → to).
  bool MayDrop(const ir::Graph& graph, ValueId source, DType middle, DType to) {
    const DType from = graph.type(source).dtype;
    if (Holds(middle, from)) {
      // A nan is the smallest i32 if it comes from f64, and 0 if it does not.
      return to != DType::kInt32 || middle != DType::kDouble || !ir::IsFloatingPoint(from) ||
             from == DType::kDouble;
    }
    if (!IsNarrow(middle) || !ir::IsFloatingPoint(from) || !Holds(to, middle)) return false;
    return excess_precision_ || FitsIn(graph, source, middle);
  }

  // Whether every element of a float value is one of `narrow`; looks through ops that choose.
  bool FitsIn(const ir::Graph& graph, ValueId root, DType narrow) {
    std::vector<ValueId> stack = {root};
    for (int budget = 64; !stack.empty(); --budget) {
      const ValueId id = stack.back();
      stack.pop_back();
      const DType dtype = graph.type(id).dtype;
      if (dtype == narrow) continue;
      if (budget == 0 || !ir::IsFloatingPoint(dtype)) return false;
      const ir::Node& node = graph.producer(id);
      if (node.op == Op::kConstant) {
        const double value = *FloatConstant(graph, id);
        if (ConstantOf(narrow, value) != value) return false;
        continue;
      }
      if (!Chooses(node.op)) return false;
      const size_t first = node.op == Op::kWhere ? 1 : 0;
      stack.insert(stack.end(), node.operands.begin() + first, node.operands.end());
    }
    return true;
  }

  static bool Chooses(Op op) {
    switch (op) {
      case Op::kAbs:
      case Op::kBroadcast:
      case Op::kCast:
      case Op::kClamp:
      case Op::kExpand:
      case Op::kMax:
      case Op::kMaximum:
      case Op::kMin:
      case Op::kMinimum:
      case Op::kNeg:
      case Op::kPermute:
      case Op::kRelu:
      case Op::kReshape:
      case Op::kSegmentSet:
      case Op::kSet:
      case Op::kSlice:
      case Op::kSqueeze:
      case Op::kWhere:
        return true;
      default:
        return false;
    }
  }

  const bool excess_precision_;
};

}  // namespace

absl::StatusOr<bool> FoldCasts(ir::Graph& graph, const PassContext& context) {
  return Rebuild(graph, context).Run(graph, CastFolder(context.options.excess_precision));
}

}  // namespace fusiond::passes
