#include "tests/emulation/op_cases.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/codegen/names.h"
#include "compiler/ir/op_table.h"
#include "runtime/cpu/op_error.h"
#include "runtime/cpu/pointwise.h"

namespace fusiond::emulation {
namespace {

using ir::DType;
using ir::Math;
using ir::Op;
using ir::OpInfo;
using ir::Promotion;

constexpr uint32_t kCount = 4096;  // elements of each operand

// Which types an op computes in, as verify and promotion let them arrive at a kernel.
bool Takes(const OpInfo& info, DType type) {
  switch (info.promotion) {
    case Promotion::kFloatResult:
    case Promotion::kFloatOnly:
      return ir::IsFloatingPoint(type);
    case Promotion::kIntegral:
      return ir::IsInteger(type);
    case Promotion::kBitwise:
      return !ir::IsFloatingPoint(type);
    default:
      return true;
  }
}

bool GivesBool(const OpInfo& info) {
  return info.promotion == Promotion::kComparison || info.promotion == Promotion::kLogical ||
         info.promotion == Promotion::kPredicate;
}

std::vector<const OpInfo*> PointwiseOps(DType type) {
  std::vector<const OpInfo*> ops;
  for (const OpInfo& info : ir::OpTable()) {
    if (info.op_class == ir::OpClass::kPointwise && info.op != Op::kCast && Takes(info, type))
      ops.push_back(&info);
  }
  return ops;
}

// `op` on operands a, b, c, d of type T; the first is a condition for `where`.
std::string KernelText(const OpInfo& info, DType dtype, Math math) {
  const absl::string_view type = dtype == DType::kBool ? "bool" : ir::DTypeName(dtype);
  std::string call = absl::StrCat(codegen::HelperOf(info.op, dtype, math).name, "(");
  const char* operands[] = {"a[i]", "b[i]", "c[i]", "d[i]"};
  for (int i = 0; i < info.max_operands; i++) {
    absl::StrAppend(&call, i == 0 ? "" : ", ", operands[i],
                    info.op == Op::kWhere && i == 0 ? " != 0" : "");
  }
  const absl::string_view result = GivesBool(info) ? "bool" : type;
  return absl::StrFormat(
      "extern \"C\" __global__ void __launch_bounds__(64) k_%s(const %s* a, const %s* b, "
      "const %s* c, const %s* d, %s* r, u32 n) {\n"
      "  for (u32 i = fd_cta() * 64 + fd_thread(); i < n; i += fd_ctas() * 64) r[i] = %s);\n}\n",
      info.name, type, type, type, type, result, call);
}

template <class T>
T FromBits(uint64_t bits) {
  T v;
  std::memcpy(&v, &bits, sizeof(T));
  return v;
}

// Values where functions change their way, then random ones of every magnitude.
template <class T>
std::vector<T> Operand(int which) {
  std::mt19937_64 random(which);
  std::vector<T> special;
  if constexpr (std::is_floating_point_v<T>) {
    using Limits = std::numeric_limits<T>;
    for (T v : {T(0), T(0.25), T(0.5), T(1), T(1.5), T(2), T(2.5), T(3), T(M_PI), T(10), T(88),
                T(100), T(1e5), Limits::denorm_min(), Limits::min(), Limits::epsilon(),
                Limits::max(), Limits::infinity()}) {
      special.push_back(v);
      special.push_back(-v);
    }
    special.push_back(Limits::quiet_NaN());
  } else {
    const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    special = {0,  1,  T(-1), 2,  T(-2),  3,   T(-3),      5,    7,
               31, 32, 63,    64, T(-64), low, T(low + 1), high, T(high - 1)};
  }
  std::vector<T> values;
  for (uint32_t i = 0; i < kCount; i++) {
    const uint64_t index = which == 0 ? i : which == 1 ? i / special.size() : random();
    if (i < special.size() * special.size() || random() % 8 == 0) {
      values.push_back(special[index % special.size()]);
    } else if constexpr (std::is_floating_point_v<T>) {
      const double unit = std::ldexp(static_cast<double>(random() >> 11), -52) - 1;
      const int reach = i % 2 == 0 ? 3 : 40;
      values.push_back(
          static_cast<T>(std::ldexp(unit, static_cast<int>(random() % (2 * reach)) - reach)));
    } else {
      values.push_back(static_cast<T>(FromBits<int64_t>(random()) >> (random() % (sizeof(T) * 8))));
    }
  }
  return values;
}
template <>
std::vector<bool> Operand<bool>(int which) {
  std::vector<bool> values(kCount);
  for (uint32_t i = 0; i < kCount; i++) values[i] = i >> which & 1;
  return values;
}

// The distance between neighbours of T around `v`, which may be an error's scale somewhat beyond
// the range of f32.
template <class T>
double Spacing(double v) {
  using Limits = std::numeric_limits<T>;
  if (!(std::fabs(v) > Limits::min())) return Limits::denorm_min();
  const double most = std::is_same_v<T, float> ? std::ldexp(1.0, 136) : Limits::max();
  return std::ldexp(1.0, std::ilogb(std::min(std::fabs(v), most)) - Limits::digits + 1);
}

// Inputs on which a chain of roundings overflows or cancels where the exact value does not; and
// where the evaluator itself, which has erfc but not its logarithm, is coarse.
template <class T>
bool IsLeftOut(Op op, const double* v) {
  using Limits = std::numeric_limits<T>;
  if (op == Op::kErfcinv) return v[0] != 0 && std::fabs(v[0]) < std::numeric_limits<double>::min();
  if (op != Op::kLerp && op != Op::kAddcmul) return false;
  const double limit = std::cbrt(static_cast<double>(Limits::max())) / 8;
  return !std::all_of(v, v + 4, [&](double each) {
    return each == 0 || (std::fabs(each) < limit && std::fabs(each) > 1 / limit);
  });
}

template <class T>
bool Agree(const OpInfo& info, Math math, T got, double want, const double* v) {
  if (IsLeftOut<T>(info.op, v)) return true;
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (got == static_cast<T>(want)) return true;
  const double allowed =
      cpu::UlpBound(info.op, math) * Spacing<T>(cpu::ErrorScale(info.op, math, v, want));
  // Next to overflow, an infinity may stand for the largest number and the other way round.
  const double most = std::numeric_limits<T>::max();
  return std::fabs(std::clamp<double>(got, -most, most) - std::clamp(want, -most, most)) <= allowed;
}

// The first elements of `results` that are not `op` of the operands.
template <class T>
std::string CheckOp(const OpInfo& info, DType type, Math math,
                    const std::vector<std::vector<T>>& operands, const std::string& results) {
  std::string wrong;
  int count = 0;
  for (uint32_t i = 0; i < kCount; i++) {
    bool agree;
    std::string got, want;
    if constexpr (std::is_floating_point_v<T>) {
      double v[4];
      for (int k = 0; k < 4; k++) v[k] = operands[k][i];
      if (GivesBool(info)) {
        const bool expected = cpu::PointwisePredicate(info.op, v);
        agree = results[i] == static_cast<char>(expected);
        got = absl::StrCat(static_cast<int>(results[i])), want = absl::StrCat(expected);
      } else {
        const double expected = cpu::PointwiseFloat(info.op, type, v);
        T value;
        std::memcpy(&value, results.data() + i * sizeof(T), sizeof(T));
        agree = Agree<T>(info, math, value, expected, v);
        got = absl::StrFormat("%.17g", value), want = absl::StrFormat("%.17g", expected);
      }
    } else {
      int64_t v[4];
      for (int k = 0; k < 4; k++) v[k] = operands[k][i];
      const int64_t expected = cpu::PointwiseInteger(info.op, type, v);
      int64_t value = static_cast<uint8_t>(results[i]);
      if (!GivesBool(info) && !std::is_same_v<T, bool>) {
        T typed;
        std::memcpy(&typed, results.data() + i * sizeof(T), sizeof(T));
        value = typed;
      }
      agree = value == expected;
      got = absl::StrCat(value), want = absl::StrCat(expected);
    }
    if (agree || ++count > 3) continue;
    absl::StrAppend(&wrong, info.name, "(");
    for (int k = 0; k < info.max_operands; k++)
      absl::StrAppendFormat(&wrong, "%s%.9g", k == 0 ? "" : ", ",
                            static_cast<double>(operands[k][i]));
    absl::StrAppend(&wrong, ") is ", got, ", not ", want, "\n");
  }
  if (count > 3) absl::StrAppend(&wrong, info.name, ": ", count, " wrong in all\n");
  return wrong;
}

template <class T>
std::string Bytes(const std::vector<T>& values) {
  std::string bytes;
  for (T v : values) bytes.append(reinterpret_cast<const char*>(&v), sizeof(v));
  return bytes;
}

template <class T>
Case OpCase(DType type, Math math = Math::kDefault) {
  Case result;
  const char* const tiers[] = {"_strict", "", "_fast"};
  result.name = absl::StrCat("ops_", ir::DTypeName(type), tiers[static_cast<int>(math)]);
  std::vector<std::vector<T>> operands;
  for (int i = 0; i < 4; i++) {
    operands.push_back(Operand<T>(i));
    result.tensors.push_back({Bytes(operands[i]), 16});
  }
  const std::vector<const OpInfo*> ops = PointwiseOps(type);
  for (const OpInfo* info : ops) {
    absl::StrAppend(&result.body, KernelText(*info, type, math));
    const int tensor = static_cast<int>(result.tensors.size());
    result.tensors.push_back(Poison(kCount * (GivesBool(*info) ? 1 : sizeof(T))));
    result.chain.push_back(
        {"",
         {.entry = absl::StrCat("k_", info->name),
          .grid_x = 1,
          .threads = 64,
          .arguments = {In(0), In(1), In(2), In(3), In(tensor), Value(kCount)}}});
  }
  result.check = [=](const std::vector<std::string>& results) {
    std::string wrong;
    for (size_t i = 0; i < ops.size(); i++)
      wrong += CheckOp<T>(*ops[i], type, math, operands, results[4 + i]);
    return wrong;
  };
  return result;
}

}  // namespace

std::vector<Case> OpCases() {
  return {OpCase<bool>(DType::kBool),
          OpCase<int32_t>(DType::kInt32),
          OpCase<int64_t>(DType::kInt),
          OpCase<float>(DType::kFloat),
          OpCase<double>(DType::kDouble),
          OpCase<float>(DType::kFloat, Math::kStrict),
          OpCase<float>(DType::kFloat, Math::kFast)};
}

}  // namespace fusiond::emulation
