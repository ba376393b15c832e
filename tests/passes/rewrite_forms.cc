#include "tests/passes/rewrite_forms.h"

#include <numeric>

namespace fusiond::testing {
namespace {

using ir::AttributeKey;
using ir::Attributes;
using ir::DType;
using ir::Node;
using ir::Op;
using ir::Type;
using ir::ValueId;

using Result = std::optional<ValueId>;

bool IsView(const Node& node) {
  return node.op == Op::kBroadcast || node.op == Op::kBroadcastInDim || node.op == Op::kExpand;
}
bool IsUnaryPointwise(const Node& node) {
  return ir::Info(node.op).op_class == ir::OpClass::kPointwise && node.operands.size() == 1;
}
bool IsFloat32(const Type& type) { return type.dtype == DType::kFloat && !type.scalar; }
bool IsConstant(const Node& node) { return node.op == Op::kConstant; }
double ValueOf(const Node& node) {
  return std::get<double>(*node.attributes.Find(AttributeKey::kValue));
}
bool IsSmaller(const Type& a, const Type& b) {
  return a.scalar || *ir::ElementCount(a) < *ir::ElementCount(b);
}

// --- Operands

Result SwapOperands(Site& s) {
  const Op op = s.node().op;
  if ((op != Op::kAdd && op != Op::kMul) || s.node().operands[0] == s.node().operands[1]) return {};
  return s.Add(op, {s.Operand(1), s.Operand(0)});
}

// --- Powers

Result SquareToPow(Site& s) {
  if (s.node().op != Op::kMul || s.node().operands[0] != s.node().operands[1]) return {};
  return s.Add(Op::kPow, {s.Operand(0), s.Constant(2)});
}
Result PowToProduct(Site& s) {
  if (s.node().op != Op::kPow || !IsConstant(s.producer(1))) return {};
  const double exponent = ValueOf(s.producer(1));
  const ValueId x = s.Operand(0);
  if (exponent == 1) return x;
  if (exponent == 2) return s.Add(Op::kMul, {x, x});
  if (exponent == 3) return s.Add(Op::kMul, {s.Add(Op::kMul, {x, x}), x});
  if (exponent == -1) return s.Add(Op::kReciprocal, {x});
  return {};
}
Result RootToPow(Site& s) {
  const Op op = s.node().op;
  if (!IsFloat32(s.type())) return {};
  if (op == Op::kRsqrt) return s.Add(Op::kPow, {s.Operand(0), s.Constant(-0.5)});
  if (op == Op::kSqrt) return s.Add(Op::kPow, {s.Operand(0), s.Constant(0.5)});
  if (op == Op::kReciprocal) return s.Add(Op::kPow, {s.Operand(0), s.Constant(-1)});
  return {};
}
Result FirstPower(Site& s) {
  if (!IsFloat32(s.type())) return {};
  return s.Add(Op::kPow, {s.Self(), s.Constant(1)});
}

// --- Division

Result DivToReciprocal(Site& s) {
  if (s.node().op != Op::kDiv) return {};
  return s.Add(Op::kMul, {s.Operand(0), s.Add(Op::kReciprocal, {s.Operand(1)})});
}
Result ReciprocalToDiv(Site& s) {
  if (s.node().op == Op::kReciprocal && IsFloat32(s.type())) {
    return s.Add(Op::kDiv, {s.Constant(1), s.Operand(0)});
  }
  if (s.node().op != Op::kMul || s.producer(1).op != Op::kReciprocal) return {};
  return s.Add(Op::kDiv, {s.Operand(0), s.Now(s.producer(1).operands[0])});
}
Result RsqrtToReciprocal(Site& s) {
  if (s.node().op != Op::kRsqrt) return {};
  return s.Add(Op::kReciprocal, {s.Add(Op::kSqrt, {s.Operand(0)})});
}
Result MulToDiv(Site& s) {
  if (s.node().op != Op::kMul || s.type(1).scalar || !IsSmaller(s.type(1), s.type())) return {};
  return s.Add(Op::kDiv, {s.Operand(0), s.Add(Op::kReciprocal, {s.Operand(1)})});
}

// --- Broadcasts

// f(view(x)) → view(f(x)), and back.
Result SwapWithView(Site& s) {
  const bool after = IsUnaryPointwise(s.node()) && IsView(s.producer(0));
  const bool before = IsView(s.node()) && IsUnaryPointwise(s.producer(0));
  if ((!after && !before) || s.producer(0).operands.size() != 1) return {};
  return s.Like(s.producer(0), s.Like(s.node(), s.Now(s.producer(0).operands[0])));
}
Result ViewInTwo(Site& s) {
  if (s.node().op != Op::kBroadcastInDim) return {};
  std::vector<bool> inserted(s.type().shape.size(), true);
  for (const int64_t d : s.node().attributes.Ints(AttributeKey::kBroadcastDims)) {
    inserted[d] = false;
  }
  const ValueId small =
      s.Add(Op::kBroadcast, {s.Operand(0)}, {{AttributeKey::kIsBroadcastDim, inserted}});
  return s.Add(Op::kExpand, {small},
               {{AttributeKey::kShape, s.node().attributes.Ints(AttributeKey::kShape)}});
}
// Leaves a broadcast operand to the alignment of extents.
Result ImplicitOperand(Site& s) {
  if (s.node().operands.size() != 2) return {};
  for (const size_t at : {0, 1}) {
    const Node& view = s.producer(at);
    if (view.op != Op::kBroadcastInDim && view.op != Op::kExpand) continue;
    if (s.type(1 - at).shape != s.type().shape) continue;
    const std::vector<int64_t>& dims = view.attributes.Ints(AttributeKey::kBroadcastDims);
    bool aligned = true;
    for (size_t i = 0; i < dims.size(); ++i) {
      aligned = aligned && dims[i] == static_cast<int64_t>(s.type().shape.size() - dims.size() + i);
    }
    if (aligned) return s.With(at, s.Now(view.operands[0]));
  }
  return {};
}
Result ExplicitOperand(Site& s) {
  if (s.node().operands.size() != 2) return {};
  const ir::Dims& shape = s.type().shape;
  for (const size_t at : {0, 1}) {
    const Type& type = s.type(at);
    if (type.scalar || type.shape == shape) continue;
    std::vector<int64_t> dims(type.shape.size());
    std::iota(dims.begin(), dims.end(), static_cast<int64_t>(shape.size() - dims.size()));
    return s.With(at,
                  s.Add(Op::kBroadcastInDim, {s.Operand(at)},
                        {{AttributeKey::kShape, std::vector<int64_t>(shape.begin(), shape.end())},
                         {AttributeKey::kBroadcastDims, dims}}));
  }
  return {};
}
Result KeepDims(Site& s) {
  if (s.node().op != Op::kSum) return {};
  const std::vector<int64_t>& dims = s.node().attributes.Ints(AttributeKey::kDims);
  if (!s.node().attributes.Bool(AttributeKey::kKeepdim)) {
    const ValueId kept = s.Add(Op::kSum, {s.Operand(0)},
                               {{AttributeKey::kDims, dims}, {AttributeKey::kKeepdim, true}});
    return s.Add(Op::kSqueeze, {kept}, {{AttributeKey::kDims, dims}});
  }
  std::vector<bool> inserted(s.type().shape.size(), false);
  for (const int64_t d : dims) inserted[d] = true;
  const ValueId dropped = s.Add(Op::kSum, {s.Operand(0)}, {{AttributeKey::kDims, dims}});
  return s.Add(Op::kBroadcast, {dropped}, {{AttributeKey::kIsBroadcastDim, inserted}});
}

// --- Sums

// Σ c·x → c·Σ x, for a constant and for what does not vary along the dims.
Result FactorOutOfSum(Site& s) {
  if (s.node().op != Op::kSum || s.producer(0).op != Op::kMul) return {};
  const Node& product = s.producer(0);
  const ir::Dims& whole = s.type(0).shape;
  for (const size_t at : {0, 1}) {
    const ValueId factor = product.operands[at];
    const Type& type = s.OldType(factor);
    bool constant = type.scalar;
    if (!constant && type.shape.size() == whole.size() &&
        s.node().attributes.Bool(AttributeKey::kKeepdim)) {
      constant = true;
      for (const int64_t d : s.node().attributes.Ints(AttributeKey::kDims)) {
        constant = constant && type.shape[d] == 1;
      }
    }
    if (!constant || s.OldType(product.operands[1 - at]).shape != whole) continue;
    return s.Add(Op::kMul, {s.Now(factor), s.Like(s.node(), s.Now(product.operands[1 - at]))});
  }
  return {};
}
Result FactorIntoSum(Site& s) {
  if (s.node().op != Op::kMul) return {};
  for (const size_t at : {0, 1}) {
    const Node& sum = s.producer(at);
    const bool fits = s.type(1 - at).scalar || (s.type(1 - at).shape == s.type(at).shape &&
                                                sum.attributes.Bool(AttributeKey::kKeepdim));
    if (sum.op != Op::kSum || !fits) continue;
    return s.Like(sum, s.Add(Op::kMul, {s.Now(sum.operands[0]), s.Operand(1 - at)}));
  }
  return {};
}
Result NegOutOfSum(Site& s) {
  if (s.node().op != Op::kSum || s.producer(0).op != Op::kNeg) return {};
  return s.Add(Op::kNeg, {s.Like(s.node(), s.Now(s.producer(0).operands[0]))});
}
bool IsAddOrSub(const Node& node) { return node.op == Op::kAdd || node.op == Op::kSub; }
// r·(a ± b) → r·a ± r·b for a factor of fewer elements: the square of a difference stays one.
Result Distribute(Site& s) {
  if (s.node().op != Op::kMul) return {};
  for (const size_t at : {0, 1}) {
    const Node& sum = s.producer(at);
    if (!IsAddOrSub(sum) || !IsSmaller(s.type(1 - at), s.type(at))) continue;
    const ValueId factor = s.Operand(1 - at);
    return s.Add(sum.op, {s.Add(Op::kMul, {s.Now(sum.operands[0]), factor}),
                          s.Add(Op::kMul, {factor, s.Now(sum.operands[1])})});
  }
  return {};
}
Result CollectFactor(Site& s) {
  if (!IsAddOrSub(s.node()) || s.producer(0).op != Op::kMul || s.producer(1).op != Op::kMul) {
    return {};
  }
  for (const size_t i : {0, 1}) {
    for (const size_t j : {0, 1}) {
      const ValueId a = s.producer(0).operands[i];
      if (a != s.producer(1).operands[j] || s.OldType(a).scalar) continue;
      const ValueId b = s.producer(0).operands[1 - i];
      const ValueId c = s.producer(1).operands[1 - j];
      if (s.OldType(b).scalar && s.OldType(c).scalar) continue;
      return s.Add(Op::kMul, {s.Now(a), s.Add(s.node().op, {s.Now(b), s.Now(c)})});
    }
  }
  return {};
}

// --- Casts

Result CopyProducer(Site& s) {
  for (size_t at = 0; at < s.node().operands.size(); ++at) {
    const Node& producer = s.producer(at);
    if (producer.op == Op::kCast) return s.With(at, s.Like(producer, s.Now(producer.operands[0])));
  }
  return {};
}
Result CastUpAndDown(Site& s) {
  const DType dtype = s.type().dtype;
  if (s.type().scalar || !ir::IsFloatingPoint(dtype) || dtype == DType::kDouble) return {};
  const DType wide = dtype == DType::kFloat ? DType::kDouble : DType::kFloat;
  const ValueId up = s.Add(Op::kCast, {s.Self()}, {{AttributeKey::kDtype, wide}});
  return s.Add(Op::kCast, {up}, {{AttributeKey::kDtype, dtype}});
}
Result DropRoundTrip(Site& s) {
  if (s.node().op != Op::kCast || s.producer(0).op != Op::kCast) return {};
  const ValueId source = s.producer(0).operands[0];
  const bool up = ir::ByteSize(s.type(0).dtype) > ir::ByteSize(s.type().dtype);
  if (!up || s.OldType(source).dtype != s.type().dtype) return {};
  return s.Now(source);
}

// --- Signs

Result SubToAdd(Site& s) {
  if (s.node().op != Op::kSub) return {};
  return s.Add(Op::kAdd, {s.Operand(0), s.Add(Op::kNeg, {s.Operand(1)})});
}
Result SubTurned(Site& s) {
  if (s.node().op != Op::kSub) return {};
  return s.Add(Op::kNeg, {s.Add(Op::kSub, {s.Operand(1), s.Operand(0)})});
}
Result AddToSub(Site& s) {
  if (s.node().op != Op::kAdd || s.type(1).scalar) return {};
  return s.Add(Op::kSub, {s.Operand(0), s.Add(Op::kNeg, {s.Operand(1)})});
}
Result NegBothWays(Site& s) {
  if (s.node().op != Op::kMul || s.type(0).scalar) return {};
  return s.Add(Op::kNeg, {s.Add(Op::kMul, {s.Add(Op::kNeg, {s.Operand(0)}), s.Operand(1)})});
}
Result NegIntoProduct(Site& s) {
  if (s.node().op != Op::kNeg || s.producer(0).op != Op::kMul) return {};
  const Node& product = s.producer(0);
  const ValueId negated = s.Add(Op::kNeg, {s.Now(product.operands[0])});
  return s.Add(Op::kMul, {negated, s.Now(product.operands[1])});
}
Result NegTwice(Site& s) {
  if (!IsFloat32(s.type())) return {};
  return s.Add(Op::kNeg, {s.Add(Op::kNeg, {s.Self()})});
}

// --- Constants

Result TwiceToSum(Site& s) {
  if (s.node().op != Op::kMul || !IsFloat32(s.type())) return {};
  for (const size_t at : {0, 1}) {
    if (!IsConstant(s.producer(at)) || ValueOf(s.producer(at)) != 2) continue;
    return s.Add(Op::kAdd, {s.Operand(1 - at), s.Operand(1 - at)});
  }
  return {};
}
Result SumToTwice(Site& s) {
  if (s.node().op != Op::kAdd || s.node().operands[0] != s.node().operands[1]) return {};
  return s.Add(Op::kMul, {s.Operand(0), s.Constant(2)});
}
Result HalfOfTwice(Site& s) {
  if (!IsFloat32(s.type())) return {};
  const ValueId self = s.Self();
  return s.Add(Op::kMul, {s.Constant(0.5), s.Add(Op::kAdd, {self, self})});
}
Result DivByConstant(Site& s) {
  if (s.node().op != Op::kDiv || !IsConstant(s.producer(1))) return {};
  return s.Add(Op::kMul, {s.Operand(0), s.Constant(1 / ValueOf(s.producer(1)))});
}
Result MulByConstant(Site& s) {
  if (s.node().op != Op::kMul || !IsFloat32(s.type()) || !IsConstant(s.producer(1))) return {};
  return s.Add(Op::kDiv, {s.Operand(0), s.Constant(1 / ValueOf(s.producer(1)))});
}

// --- Association

Result ReassociateLeft(Site& s) {
  const Op op = s.node().op;
  if ((op != Op::kAdd && op != Op::kMul) || s.producer(0).op != op || !IsFloat32(s.type())) {
    return {};
  }
  const Node& inner = s.producer(0);
  if (s.OldType(inner.operands[1]).scalar && s.type(1).scalar) return {};
  return s.Add(op, {s.Now(inner.operands[0]), s.Add(op, {s.Now(inner.operands[1]), s.Operand(1)})});
}
Result ReassociateRight(Site& s) {
  const Op op = s.node().op;
  if ((op != Op::kAdd && op != Op::kMul) || s.producer(1).op != op || !IsFloat32(s.type())) {
    return {};
  }
  const Node& inner = s.producer(1);
  if (s.OldType(inner.operands[0]).scalar && s.type(0).scalar) return {};
  return s.Add(op, {s.Add(op, {s.Operand(0), s.Now(inner.operands[0])}), s.Now(inner.operands[1])});
}
Result ReassociateSub(Site& s) {
  if (s.node().op != Op::kSub || s.producer(0).op != Op::kSub || !IsFloat32(s.type())) return {};
  const Node& inner = s.producer(0);
  return s.Add(Op::kSub, {s.Now(inner.operands[0]),
                          s.Add(Op::kAdd, {s.Now(inner.operands[1]), s.Operand(1)})});
}

}  // namespace

std::vector<Form> FormsOf(Rewrite kind) {
  switch (kind) {
    case Rewrite::kSwapOperands:
      return {SwapOperands};
    case Rewrite::kPowMul:
      return {SquareToPow, PowToProduct, RootToPow, FirstPower};
    case Rewrite::kDivReciprocal:
      return {DivToReciprocal, ReciprocalToDiv, RsqrtToReciprocal, MulToDiv};
    case Rewrite::kBroadcast:
      return {SwapWithView, ViewInTwo, ImplicitOperand, ExplicitOperand, KeepDims};
    case Rewrite::kFactorSum:
      return {FactorOutOfSum, FactorIntoSum, NegOutOfSum, Distribute, CollectFactor};
    case Rewrite::kDuplicateCast:
      return {CopyProducer};
    case Rewrite::kCastRoundTrip:
      return {CastUpAndDown, DropRoundTrip};
    case Rewrite::kNegPlacement:
      return {SubToAdd, SubTurned, AddToSub, NegBothWays, NegIntoProduct};
    case Rewrite::kDoubleNegation:
      return {NegTwice};
    case Rewrite::kDoubling:
      return {TwiceToSum, SumToTwice, HalfOfTwice};
    case Rewrite::kMean:
      return {DivByConstant, MulByConstant};
    case Rewrite::kReassociate:
      return {ReassociateLeft, ReassociateRight, ReassociateSub};
    case Rewrite::kShuffleArguments:
      break;
  }
  return {};
}

std::vector<ValueId> SpellMoments(Site& s) {
  const std::vector<int64_t>& dims = s.node().attributes.Ints(AttributeKey::kDims);
  double count = 1;
  for (const int64_t d : dims) count *= static_cast<double>(s.type(0).shape[d]);
  const Attributes kept{{AttributeKey::kDims, dims}, {AttributeKey::kKeepdim, true}};
  const double correction =
      static_cast<double>(s.node().attributes.Int(AttributeKey::kCorrection, 1));
  const ValueId x = s.Operand(0);
  const ValueId mean = s.Add(Op::kDiv, {s.Add(Op::kSum, {x}, kept), s.Constant(count)});
  const ValueId centred = s.Add(Op::kSub, {x, mean});
  const ValueId squares = s.Add(Op::kSum, {s.Add(Op::kMul, {centred, centred})}, kept);
  return {s.Add(Op::kDiv, {squares, s.Constant(count - correction)}), mean};
}

}  // namespace fusiond::testing
