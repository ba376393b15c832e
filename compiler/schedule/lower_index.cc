// Arithmetic on indices in Lowering: linear in the axes as long as that is exact, so that a load
// stays one of strides; what is left is computed.
#include <algorithm>

#include "compiler/schedule/lowering_internal.h"

namespace fusiond::schedule {

using ir::DType;
using ir::Op;

Index Lowering::Constant(int64_t value) const {
  Index index;
  index.constant = index.low = index.high = value;
  index.by_axis.assign(segment_.axes.size(), 0);
  return index;
}

Index Lowering::Axis(int8_t axis) const {
  Index index = Constant(0);
  if (axis == kNone) return index;
  index.by_axis[axis] = 1;
  index.high = segment_.axes[axis].extent - 1;
  return index;
}

Index Lowering::Add(const Index& a, const Index& b) {
  Index sum = a;
  sum.constant += b.constant;
  sum.low += b.low;
  sum.high += b.high;
  for (size_t i = 0; i < sum.by_axis.size(); ++i) sum.by_axis[i] += b.by_axis[i];
  for (const auto& [instr, scale] : b.computed) {
    const auto at = std::find_if(sum.computed.begin(), sum.computed.end(),
                                 [i = instr](const auto& term) { return term.first == i; });
    if (at == sum.computed.end()) {
      sum.computed.emplace_back(instr, scale);
    } else {
      at->second += scale;
    }
  }
  std::sort(sum.computed.begin(), sum.computed.end());
  return sum;
}

Index Lowering::Scale(Index index, int64_t by) {
  index.constant *= by;
  index.low *= by;
  index.high *= by;
  for (int64_t& coefficient : index.by_axis) coefficient *= by;
  for (auto& [instr, scale] : index.computed) scale *= by;
  if (by == 0) index.computed.clear();
  return index;
}

Index Lowering::Shift(Index index, int64_t by) {
  index.constant += by;
  index.low += by;
  index.high += by;
  return index;
}

std::pair<Index, Index> Lowering::DivMod(const Index& index, int64_t divisor) {
  if (divisor == 1) return {index, Constant(0)};
  if (index.low >= 0 && index.high < divisor) return {Constant(0), index};
  // What the divisor divides goes to the quotient; exact if the rest is less than it.
  Index quotient = Constant(0), rest = Constant(0);
  quotient.constant = index.constant / divisor - (index.constant % divisor < 0);
  rest.constant = index.constant - quotient.constant * divisor;
  rest.low = rest.high = rest.constant;
  for (size_t a = 0; a < index.by_axis.size(); ++a) {
    const int64_t coefficient = index.by_axis[a];
    if (coefficient % divisor == 0) {
      quotient.by_axis[a] = coefficient / divisor;
    } else {
      rest.by_axis[a] = coefficient;
      rest.high += coefficient * (segment_.axes[a].extent - 1);
    }
  }
  if (index.IsLinear() && rest.low >= 0 && rest.high < divisor) {
    quotient.low = (index.low - rest.high) / divisor;
    quotient.high = index.high / divisor;
    return {quotient, rest};
  }
  const uint32_t whole = EmitIndex(index);
  const uint32_t by = EmitIndex(Constant(divisor));
  quotient = Constant(0);
  rest = Constant(0);
  quotient.computed = {{EmitBinary(Op::kDiv, whole, by, index_type_), 1}};
  quotient.low = std::max<int64_t>(0, index.low) / divisor;
  quotient.high = std::max<int64_t>(0, index.high) / divisor;
  const uint32_t remainder = EmitBinary(Op::kMod, whole, by, index_type_);
  rest.computed = {{remainder, 1}};
  rest.high = divisor - 1;
  remainders_[remainder] = {index, divisor, quotient};
  return {quotient, rest};
}

void Lowering::Recombine(Index& index) const {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < index.computed.size() && !changed; ++i) {
      const auto [remainder, scale] = index.computed[i];
      const auto digits = remainders_.find(remainder);
      if (digits == remainders_.end()) continue;
      const std::pair<uint32_t, int64_t> quotient = {digits->second.quotient.computed[0].first,
                                                     scale * digits->second.divisor};
      const auto at = std::find(index.computed.begin(), index.computed.end(), quotient);
      if (at == index.computed.end()) continue;
      index.computed.erase(at);
      index.computed.erase(std::find(index.computed.begin(), index.computed.end(),
                                     std::make_pair(remainder, scale)));
      index = Add(index, Scale(digits->second.whole, scale));
      changed = true;
    }
  }
}

uint32_t Lowering::EmitBinary(Op op, uint32_t a, uint32_t b, DType dtype) {
  const auto [entry, added] = binaries_.try_emplace({op, a, b}, 0);
  if (!added) return entry->second;
  Instr instr;
  instr.op = op;
  instr.operands = {a, b};
  instr.dtype = dtype;
  const uint32_t made = Emit(std::move(instr));
  return binaries_[{op, a, b}] = made;
}

uint32_t Lowering::EmitIndex(Index index) {
  const auto known = indices_.find(index);
  if (known != indices_.end()) return known->second;
  Guard sum;
  const auto add = [&](uint32_t term) {
    sum = sum ? EmitBinary(Op::kAdd, *sum, term, index_type_) : term;
  };
  if (std::any_of(index.by_axis.begin(), index.by_axis.end(), [](int64_t c) { return c != 0; })) {
    Index linear = Constant(0);
    linear.by_axis = index.by_axis;
    const auto [entry, added] = indices_.try_emplace(linear, 0);
    if (added) {
      Instr instr;
      instr.kind = Instr::Kind::kIndex;
      instr.dtype = index_type_;
      instr.access.strides = index.by_axis;
      const uint32_t made = Emit(std::move(instr));
      indices_[linear] = made;
    }
    add(indices_[linear]);
  }
  for (const auto& [instr, scale] : index.computed) {
    add(scale == 1 ? instr : EmitBinary(Op::kMul, instr, EmitIndex(Constant(scale)), index_type_));
  }
  if (!sum) {
    sum = EmitConstant(index.constant, index_type_);
  } else if (index.constant != 0) {
    add(EmitIndex(Constant(index.constant)));
  }
  indices_[index] = *sum;
  return *sum;
}

Guard Lowering::InRange(const Index& index, int64_t extent) {
  Guard guard;
  const auto compare = [&](Op op, int64_t bound) {
    // One after the other: the order of instrs is the text's.
    const uint32_t value = EmitIndex(index);
    const uint32_t to = EmitIndex(Constant(bound));
    guard = And(guard, EmitBinary(op, value, to, DType::kBool));
  };
  if (index.low < 0) compare(Op::kGe, 0);
  if (index.high >= extent) compare(Op::kLt, extent);
  return guard;
}

Guard Lowering::And(Guard a, Guard b) {
  if (!a || !b) return a ? a : b;
  return *a == *b ? a : EmitBinary(Op::kLogicalAnd, *a, *b, DType::kBool);
}

}  // namespace fusiond::schedule
