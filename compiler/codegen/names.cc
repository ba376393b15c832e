#include "compiler/codegen/names.h"

#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/check.h"

namespace fusiond::codegen {
namespace {

using ir::DType;

std::string FloatLiteral(float value) {
  if (!std::isfinite(value)) {
    const uint32_t bits = std::isnan(value) ? 0x7fffffffu : value > 0 ? 0x7f800000u : 0xff800000u;
    return absl::StrFormat("fd_bit_cast<f32>(0x%08xu)", bits);
  }
  const std::string text = absl::StrFormat("%af", value);
  return std::signbit(value) ? absl::StrCat("(", text, ")") : text;
}

std::string DoubleLiteral(double value) {
  if (!std::isfinite(value)) {
    const uint64_t bits = std::isnan(value) ? 0x7fffffffffffffffu
                          : value > 0       ? 0x7ff0000000000000u
                                            : 0xfff0000000000000u;
    return absl::StrFormat("fd_bit_cast<f64>(0x%016xull)", bits);
  }
  const std::string text = absl::StrFormat("%a", value);
  return std::signbit(value) ? absl::StrCat("(", text, ")") : text;
}

std::string IntLiteral(int64_t value, DType dtype) {
  const int64_t lowest = dtype == DType::kInt32 ? std::numeric_limits<int32_t>::min()
                                                : std::numeric_limits<int64_t>::min();
  const char* suffix = dtype == DType::kInt32 ? "" : "ll";
  if (value == lowest) return absl::StrCat("(", value + 1, suffix, " - 1)");
  if (value < 0) return absl::StrCat("(", value, suffix, ")");
  return absl::StrCat(value, suffix);
}

template <class To>
To As(const ir::Number& number) {
  return std::visit([](auto value) { return static_cast<To>(value); }, number);
}

bool HasStrictForm(ir::Op op) {
  switch (op) {
    case ir::Op::kCos:
    case ir::Op::kDiv:
    case ir::Op::kReciprocal:
    case ir::Op::kSigmoid:
    case ir::Op::kSilu:
    case ir::Op::kSin:
    case ir::Op::kTan:
    case ir::Op::kTruediv:
      return true;
    default:
      return false;
  }
}

bool HasFastForm(ir::Op op) {
  switch (op) {
    case ir::Op::kCos:
    case ir::Op::kExp:
    case ir::Op::kExp2:
    case ir::Op::kLog:
    case ir::Op::kLog10:
    case ir::Op::kLog2:
    case ir::Op::kSigmoid:
    case ir::Op::kSilu:
    case ir::Op::kSin:
    case ir::Op::kSqrt:
    case ir::Op::kTan:
    case ir::Op::kTanh:
      return true;
    default:
      return false;
  }
}

}  // namespace

Helper HelperOf(ir::Op op, DType dtype, ir::Math math) {
  const absl::string_view name = ir::Info(op).name;
  if (dtype == DType::kFloat && math == ir::Math::kStrict && HasStrictForm(op))
    return {absl::StrCat("fd_strict_", name), "math_strict.cuh"};
  if (dtype == DType::kFloat && math == ir::Math::kFast && HasFastForm(op))
    return {absl::StrCat("fd_fast_", name), "math_fast.cuh"};
  if (op == ir::Op::kRandomBits) return {"fd_random_bits", "random.cuh"};
  return {absl::StrCat("fd_", name), ""};
}

const char* MemoryType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "b8";
    case DType::kHalf:
      return "f16";
    case DType::kBFloat16:
      return "bf16";
    default:
      return RegisterType(dtype);
  }
}

const char* RegisterType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kInt32:
      return "i32";
    case DType::kInt:
      return "i64";
    case DType::kFloat:
      return "f32";
    case DType::kDouble:
      return "f64";
    default:
      break;
  }
  FUSIOND_CHECK(false);
  return "";
}

std::string Literal(const ir::Number& number, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return As<bool>(number) ? "true" : "false";
    case DType::kInt32:
    case DType::kInt:
      return IntLiteral(As<int64_t>(number), dtype);
    case DType::kDouble:
      return DoubleLiteral(As<double>(number));
    default:
      return FloatLiteral(static_cast<float>(As<double>(number)));
  }
}

}  // namespace fusiond::codegen
