#include "compiler/schedule/online.h"

#include <cmath>
#include <optional>
#include <variant>

#include "compiler/schedule/region_builder_internal.h"
#include "runtime/base/check.h"

namespace fusiond::schedule {
namespace {

class Matcher {
 public:
  explicit Matcher(const Region& region) : region_(region) {}

  // x, if row reduction `i` is sum((x - sum(x) / n)²).
  std::optional<uint32_t> Squares(uint32_t i) const {
    if (!IsFloatSum(i)) return std::nullopt;
    const Instr& square = region_.instrs[region_.instrs[i].operands[0]];
    if (!Computes(square, ir::Op::kMul) || square.operands[0] != square.operands[1])
      return std::nullopt;
    const Instr& deviation = region_.instrs[square.operands[0]];
    if (!Computes(deviation, ir::Op::kSub)) return std::nullopt;
    const uint32_t x = deviation.operands[0];
    return SameType(x, i) && IsMean(deviation.operands[1], x) ? std::make_optional(x)
                                                              : std::nullopt;
  }

  // x, if row reduction `i` is sum(exp(x - max(x))).
  std::optional<uint32_t> Exponentials(uint32_t i) const {
    if (!IsFloatSum(i)) return std::nullopt;
    const Instr& exponential = region_.instrs[region_.instrs[i].operands[0]];
    if (!Computes(exponential, ir::Op::kExp)) return std::nullopt;
    const Instr& difference = region_.instrs[exponential.operands[0]];
    if (!Computes(difference, ir::Op::kSub)) return std::nullopt;
    const uint32_t x = difference.operands[0];
    const bool fits = SameType(x, i) && IsRowReduction(difference.operands[1], ir::Op::kMax) &&
                      region_.instrs[difference.operands[1]].operands[0] == x;
    return fits ? std::make_optional(x) : std::nullopt;
  }

 private:
  static bool Computes(const Instr& instr, ir::Op op) {
    return instr.kind == Instr::Kind::kCompute && instr.op == op;
  }

  bool IsRowReduction(uint32_t i, ir::Op op) const {
    const Instr& instr = region_.instrs[i];
    return instr.kind == Instr::Kind::kReduce && instr.op == op && instr.over_columns;
  }

  bool IsFloatSum(uint32_t i) const {
    return IsRowReduction(i, ir::Op::kSum) && ir::IsFloatingPoint(region_.instrs[i].dtype);
  }

  bool SameType(uint32_t a, uint32_t b) const {
    return region_.instrs[a].dtype == region_.instrs[b].dtype;
  }

  bool IsMean(uint32_t i, uint32_t x) const {
    const Instr& mean = region_.instrs[i];
    if (Computes(mean, ir::Op::kMul)) {
      return (IsSumOf(mean.operands[0], x) && IsAbout(mean.operands[1], Share())) ||
             (IsSumOf(mean.operands[1], x) && IsAbout(mean.operands[0], Share()));
    }
    return Computes(mean, ir::Op::kDiv) && IsSumOf(mean.operands[0], x) &&
           IsAbout(mean.operands[1], 1 / Share());
  }

  bool IsSumOf(uint32_t i, uint32_t x) const {
    return IsRowReduction(i, ir::Op::kSum) && region_.instrs[i].operands[0] == x;
  }

  double Share() const { return 1.0 / static_cast<double>(region_.Columns()); }

  // Within the rounding of a float.
  bool IsAbout(uint32_t i, double value) const {
    const Instr& instr = region_.instrs[i];
    if (instr.kind != Instr::Kind::kConstant) return false;
    const double number = std::visit([](auto v) { return static_cast<double>(v); }, instr.number);
    return std::abs(number - value) <= 0x1p-23 * value;
  }

  const Region& region_;
};

}  // namespace

bool IsOnline(const Instr& instr) {
  return instr.kind == Instr::Kind::kReduce &&
         (instr.op == ir::Op::kVar || instr.op == ir::Op::kExp);
}

int PartialElements(const Instr& reduction) {
  if (!IsOnline(reduction)) return 1;
  return reduction.op == ir::Op::kVar ? 3 : 2;
}

Region WithOnlineReductions(const Region& region) {
  const Matcher matcher(region);
  Region result = region;
  bool any = false;
  for (uint32_t i = 0; i < region.instrs.size(); ++i) {
    const std::optional<uint32_t> squares = matcher.Squares(i);
    const std::optional<uint32_t> exponentials = matcher.Exponentials(i);
    if (!squares && !exponentials) continue;
    result.instrs[i].op = squares ? ir::Op::kVar : ir::Op::kExp;
    result.instrs[i].operands = {squares ? *squares : *exponentials};
    any = true;
  }
  if (!any) return result;
  DropUnused(result);
  // Emitters name tensors and scalars by their number in `region`.
  FUSIOND_CHECK(result.tensors.size() == region.tensors.size() &&
                result.scalars.size() == region.scalars.size());
  for (Instr& instr : result.instrs) instr.stage = 0;
  Classify(result);
  return result;
}

}  // namespace fusiond::schedule
