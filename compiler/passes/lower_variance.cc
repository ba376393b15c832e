#include "compiler/passes/lower_variance.h"

#include <algorithm>

#include "compiler/passes/rebuild.h"
#include "runtime/base/status_macros.h"

namespace fusiond::passes {
namespace {

using ir::AttributeKey;
using ir::Op;
using ir::ValueId;

// Builds the moments of one operand over some dims.
class Moments {
 public:
  Moments(Rebuild& rebuild, ValueId x, const ir::Node& node)
      : rebuild_(rebuild),
        x_(x),
        dims_(node.attributes.Ints(AttributeKey::kDims)),
        keepdim_(node.attributes.Bool(AttributeKey::kKeepdim)) {
    for (const int64_t d : dims_) count_ *= rebuild.type(x).shape[d];
  }

  int64_t count() const { return count_; }

  absl::StatusOr<ValueId> Sum(ValueId value) {
    return rebuild_.Add(Op::kSum, {value},
                        {{AttributeKey::kDims, dims_}, {AttributeKey::kKeepdim, true}});
  }
  absl::StatusOr<ValueId> Divide(ValueId value, int64_t by) {
    const ValueId divisor =
        rebuild_.builder().Constant(static_cast<double>(by), rebuild_.type(value).dtype);
    return rebuild_.Add(Op::kDiv, {value, divisor});
  }
  absl::StatusOr<ValueId> Mean() {
    FUSIOND_ASSIGN_OR_RETURN(const ValueId sum, Sum(x_));
    return Divide(sum, count_);
  }
  absl::StatusOr<ValueId> Squares(ValueId mean) {
    FUSIOND_ASSIGN_OR_RETURN(const ValueId centred, rebuild_.Add(Op::kSub, {x_, mean}));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId square, rebuild_.Add(Op::kMul, {centred, centred}));
    return Sum(square);
  }
  // As the node gives it: without the dims of extent 1 unless keepdim.
  absl::StatusOr<ValueId> Result(ValueId value) {
    if (keepdim_ || dims_.empty()) return value;
    return rebuild_.Add(Op::kSqueeze, {value}, {{AttributeKey::kDims, dims_}});
  }

 private:
  Rebuild& rebuild_;
  const ValueId x_;
  const std::vector<int64_t>& dims_;
  const bool keepdim_;
  int64_t count_ = 1;
};

Replacement Visit(const ir::Node& node, Rebuild& rebuild) {
  if (node.op != Op::kVar && node.op != Op::kVarMean && node.op != Op::kWelford) {
    return std::nullopt;
  }
  Moments moments(rebuild, rebuild[node.operands[0]], node);
  FUSIOND_ASSIGN_OR_RETURN(const ValueId mean, moments.Mean());
  FUSIOND_ASSIGN_OR_RETURN(const ValueId squares, moments.Squares(mean));
  FUSIOND_ASSIGN_OR_RETURN(const ValueId mean_result, moments.Result(mean));
  if (node.op == Op::kWelford) {
    FUSIOND_ASSIGN_OR_RETURN(const ValueId squares_result, moments.Result(squares));
    rebuild.Map(node.results[0], mean_result);
    rebuild.Map(node.results[1], squares_result);
    const ir::Dims& shape = rebuild.from().type(node.results[2]).shape;
    const ValueId count = rebuild.builder().Constant(moments.count(), ir::DType::kInt);
    FUSIOND_ASSIGN_OR_RETURN(
        const ValueId counts,
        rebuild.Add(Op::kFull, {count},
                    {{AttributeKey::kShape, std::vector<int64_t>(shape.begin(), shape.end())},
                     {AttributeKey::kDtype, ir::DType::kInt}}));
    rebuild.Map(node.results[2], counts);
    return std::nullopt;
  }
  const int64_t correction = node.attributes.Int(AttributeKey::kCorrection, 1);
  const int64_t divisor = std::max<int64_t>(0, moments.count() - correction);
  FUSIOND_ASSIGN_OR_RETURN(const ValueId variance, moments.Divide(squares, divisor));
  FUSIOND_ASSIGN_OR_RETURN(const ValueId variance_result, moments.Result(variance));
  rebuild.Map(node.results[0], variance_result);
  if (node.op == Op::kVarMean) rebuild.Map(node.results[1], mean_result);
  return std::nullopt;
}

}  // namespace

absl::StatusOr<bool> LowerVariance(ir::Graph& graph, const PassContext& context) {
  return Rebuild(graph, context).Run(graph, Visit);
}

}  // namespace fusiond::passes
