#include "compiler/ir/random.h"

#include <cmath>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"

namespace fusiond::ir {
namespace {

constexpr double kTwoPi = 6.283185307179586;

class Draw {
 public:
  Draw(Graph& graph, ValueId seed, ValueId offset, const Type& type)
      : graph_(graph),
        seed_(seed),
        offset_(offset),
        type_(type),
        compute_(ComputeType(type.dtype)) {}

  absl::StatusOr<ValueId> Uniform() {
    FUSIOND_ASSIGN_OR_RETURN(const ValueId index, Index());
    if (compute_ == DType::kFloat) {
      FUSIOND_ASSIGN_OR_RETURN(const ValueId word, Word(index));
      FUSIOND_ASSIGN_OR_RETURN(const ValueId narrow, Cast(word, DType::kInt32));
      const ValueId eight = graph_.AddConstant(int64_t{8}, DType::kInt32);
      FUSIOND_ASSIGN_OR_RETURN(const ValueId bits, Add(Op::kLogicalRightShift, narrow, eight));
      return Scaled(bits, -24);
    }
    FUSIOND_ASSIGN_OR_RETURN(const ValueId first, Add(Op::kMul, index, Int(2)));
    return Unit53(first);
  }

  absl::StatusOr<ValueId> Normal() {
    FUSIOND_ASSIGN_OR_RETURN(const ValueId index, Index());
    FUSIOND_ASSIGN_OR_RETURN(const ValueId odd, Add(Op::kBitwiseAnd, index, Int(1)));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId even_index, Add(Op::kSub, index, odd));
    // In (0, 1], so that the logarithm is finite; and in [0, 1).
    ValueId u = 0, v = 0;
    if (compute_ == DType::kFloat) {
      FUSIOND_ASSIGN_OR_RETURN(const ValueId word, Word(even_index));
      FUSIOND_ASSIGN_OR_RETURN(const ValueId above_zero, Add(Op::kAdd, word, Int(1)));
      FUSIOND_ASSIGN_OR_RETURN(u, Scaled(above_zero, -32));
      FUSIOND_ASSIGN_OR_RETURN(const ValueId odd_index, Add(Op::kAdd, even_index, Int(1)));
      FUSIOND_ASSIGN_OR_RETURN(const ValueId other, Word(odd_index));
      FUSIOND_ASSIGN_OR_RETURN(v, Scaled(other, -32));
    } else {
      FUSIOND_ASSIGN_OR_RETURN(const ValueId first, Add(Op::kMul, even_index, Int(2)));
      FUSIOND_ASSIGN_OR_RETURN(const ValueId below_one, Unit53(first));
      FUSIOND_ASSIGN_OR_RETURN(u, Add(Op::kSub, Float(1), below_one));
      FUSIOND_ASSIGN_OR_RETURN(const ValueId third, Add(Op::kAdd, first, Int(2)));
      FUSIOND_ASSIGN_OR_RETURN(v, Unit53(third));
    }
    FUSIOND_ASSIGN_OR_RETURN(const ValueId log, Add(Op::kLog, u));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId square, Add(Op::kMul, log, Float(-2)));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId radius, Add(Op::kSqrt, square));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId angle, Add(Op::kMul, v, Float(kTwoPi)));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId cosine, Add(Op::kCos, angle));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId sine, Add(Op::kSin, angle));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId is_even, Add(Op::kEq, odd, Int(0)));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId side, Add(Op::kWhere, is_even, cosine, sine));
    return Add(Op::kMul, radius, side);
  }

  // begin + value · scale, in the type that is drawn in.
  absl::StatusOr<ValueId> Placed(ValueId value, ValueId begin, ValueId scale) {
    FUSIOND_ASSIGN_OR_RETURN(const ValueId scaled, Add(Op::kMul, value, scale));
    return Add(Op::kAdd, scaled, begin);
  }

  template <class... Operands>
  absl::StatusOr<ValueId> Add(Op op, Operands... operands) {
    return Make(op, {operands...}, {});
  }

  absl::StatusOr<ValueId> Cast(ValueId value, DType dtype) {
    if (graph_.type(value).dtype == dtype) return value;
    return Make(Op::kCast, {value}, {{AttributeKey::kDtype, dtype}});
  }

 private:
  absl::StatusOr<ValueId> Make(Op op, std::vector<ValueId> operands, Attributes attributes) {
    FUSIOND_ASSIGN_OR_RETURN(const NodeId node,
                             graph_.AddNode(op, operands, std::move(attributes)));
    return graph_.node(node).results[0];
  }

  ValueId Int(int64_t value) { return graph_.AddConstant(value, DType::kInt); }
  ValueId Float(double value) { return graph_.AddConstant(value, compute_); }

  absl::StatusOr<ValueId> Index() {
    const int64_t count = *ElementCount(type_);  // the type was checked
    FUSIOND_ASSIGN_OR_RETURN(
        const ValueId flat,
        Make(Op::kIota, {Int(0), Int(1)}, {{AttributeKey::kShape, std::vector<int64_t>{count}}}));
    const std::vector<int64_t> shape(type_.shape.begin(), type_.shape.end());
    if (shape.size() == 1) return flat;
    return Make(Op::kReshape, {flat}, {{AttributeKey::kShape, shape}});
  }

  absl::StatusOr<ValueId> Word(ValueId index) {
    return Add(Op::kRandomBits, index, seed_, offset_);
  }

  // An integer times a power of two.
  absl::StatusOr<ValueId> Scaled(ValueId integer, int exponent) {
    FUSIOND_ASSIGN_OR_RETURN(const ValueId value, Cast(integer, compute_));
    return Add(Op::kMul, value, Float(std::ldexp(1.0, exponent)));
  }

  // 27 bits of word `first` and 26 of the next, in [0, 1).
  absl::StatusOr<ValueId> Unit53(ValueId first) {
    FUSIOND_ASSIGN_OR_RETURN(const ValueId high_word, Word(first));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId high, Add(Op::kBitwiseRightShift, high_word, Int(5)));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId shifted, Add(Op::kMul, high, Int(int64_t{1} << 26)));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId second, Add(Op::kAdd, first, Int(1)));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId low_word, Word(second));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId low, Add(Op::kBitwiseRightShift, low_word, Int(6)));
    FUSIOND_ASSIGN_OR_RETURN(const ValueId bits, Add(Op::kAdd, shifted, low));
    return Scaled(bits, -53);
  }

  Graph& graph_;
  const ValueId seed_, offset_;
  const Type& type_;
  const DType compute_;
};

}  // namespace

bool IsRandom(Op op) {
  return op == Op::kUniform || op == Op::kNormal || op == Op::kRandLike || op == Op::kRandnLike;
}

absl::StatusOr<ValueId> ExpandRandom(Graph& graph, Op op, absl::Span<const ValueId> operands,
                                     const Type& type) {
  const bool like = op == Op::kRandLike || op == Op::kRandnLike;
  const bool normal = op == Op::kNormal || op == Op::kRandnLike;
  const size_t seed = like ? 1 : 2;
  Draw draw(graph, operands[seed], operands[seed + 1], type);
  FUSIOND_ASSIGN_OR_RETURN(ValueId value, normal ? draw.Normal() : draw.Uniform());
  if (!like) {
    const DType compute = ComputeType(type.dtype);
    FUSIOND_ASSIGN_OR_RETURN(const ValueId begin, draw.Cast(operands[0], compute));
    FUSIOND_ASSIGN_OR_RETURN(ValueId scale, draw.Cast(operands[1], compute));
    if (!normal) {
      FUSIOND_ASSIGN_OR_RETURN(scale, draw.Add(Op::kSub, scale, begin));
    }
    FUSIOND_ASSIGN_OR_RETURN(value, draw.Placed(value, begin, scale));
  }
  return draw.Cast(value, type.dtype);
}

}  // namespace fusiond::ir
