#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/cpu/pointwise.h"
#include "tests/emulation/op_cases.h"

namespace fusiond::emulation {
namespace {

using ir::DType;

struct Format {  // of a 16-bit float
  int fraction_bits;
  int bias;
};
constexpr Format kBf16 = {7, 127}, kF16 = {10, 15};

double Decode(uint16_t bits, Format format) {
  const int exponent_bits = 15 - format.fraction_bits, most = (1 << exponent_bits) - 1;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const int exponent = bits >> format.fraction_bits & most;
  double magnitude;
  if (exponent == most) {
    magnitude = fraction != 0 ? NAN : INFINITY;
  } else {
    const int whole = exponent == 0 ? fraction : fraction + (1 << format.fraction_bits);
    magnitude = std::ldexp(whole, std::max(exponent, 1) - format.bias - format.fraction_bits);
  }
  return std::copysign(magnitude, bits >> 15 ? -1.0 : 1.0);
}

// The nearest number of the format, halves to even.
double Round(double v, Format format) {
  if (std::isnan(v) || std::isinf(v) || v == 0) return v;
  const int exponent = std::max(std::ilogb(v), 1 - format.bias) - format.fraction_bits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(v, -exponent)), exponent);
  const double most = std::ldexp(2 - std::ldexp(1, -format.fraction_bits), format.bias);
  return std::fabs(rounded) > most ? std::copysign(INFINITY, v) : rounded;
}

// One element, as exact as its type: floats in `real`, integers and bool in `whole`.
struct Number {
  bool is_float = false;
  double real = 0;
  int64_t whole = 0;

  bool operator==(const Number& other) const {
    if (!is_float) return whole == other.whole;
    if (std::isnan(real)) return std::isnan(other.real);
    return real == other.real && std::signbit(real) == std::signbit(other.real);
  }
};

template <class T>
T At(const std::string& bytes, size_t i) {
  T v;
  std::memcpy(&v, bytes.data() + i * sizeof(T), sizeof(T));
  return v;
}

Number Read(DType type, const std::string& bytes, size_t i) {
  switch (type) {
    case DType::kBool:
      return {false, 0, At<uint8_t>(bytes, i)};
    case DType::kInt32:
      return {false, 0, At<int32_t>(bytes, i)};
    case DType::kInt:
      return {false, 0, At<int64_t>(bytes, i)};
    case DType::kHalf:
      return {true, Decode(At<uint16_t>(bytes, i), kF16)};
    case DType::kBFloat16:
      return {true, Decode(At<uint16_t>(bytes, i), kBf16)};
    case DType::kFloat:
      return {true, At<float>(bytes, i)};
    case DType::kDouble:
      return {true, At<double>(bytes, i)};
  }
  return {};
}

Number Convert(const Number& v, DType from, DType to) {
  const float single = v.is_float ? static_cast<float>(v.real) : static_cast<float>(v.whole);
  switch (to) {
    case DType::kBool:
      return {false, 0, v.is_float ? v.real != 0 : v.whole != 0};
    case DType::kInt32:
    case DType::kInt:
      return {false, 0,
              v.is_float ? cpu::FloatToInteger(v.real, from, to) : cpu::WrapInteger(v.whole, to)};
    case DType::kHalf:
      return {true, Round(single, kF16)};
    case DType::kBFloat16:
      return {true, Round(single, kBf16)};
    case DType::kFloat:
      return {true, single};
    case DType::kDouble:
      return {true, v.is_float ? v.real : static_cast<double>(v.whole)};
  }
  return {};
}

template <class T>
void Append(std::string* bytes, T v) {
  bytes->append(reinterpret_cast<const char*>(&v), sizeof(v));
}

// The places where a 16-bit format changes its mind, each with its neighbours.
std::string FloatInputs() {
  std::string bytes;
  for (const Format& format : {kBf16, kF16}) {
    for (int i = 0; i < 65536; i++) {
      const double low = Decode(static_cast<uint16_t>(i), format);
      const double high = Decode(static_cast<uint16_t>(i + 1), format);
      const float middle = static_cast<float>(std::isfinite(high) ? (low + high) / 2 : low * 1.001);
      for (float each :
           {std::nextafterf(middle, -INFINITY), middle, std::nextafterf(middle, INFINITY)})
        Append(&bytes, each);
    }
  }
  return bytes;
}

std::string Inputs(DType type) {
  std::string bytes;
  std::mt19937_64 random(static_cast<int>(type));
  switch (type) {
    case DType::kBool:
      for (int i = 0; i < 64; i++) Append<uint8_t>(&bytes, random() & 1);
      break;
    case DType::kHalf:
    case DType::kBFloat16:
      for (int i = 0; i < 65536; i++) Append<uint16_t>(&bytes, i);
      break;
    case DType::kFloat:
      return FloatInputs();
    case DType::kInt32:
      for (int i = 0; i < 4096; i++)
        Append(&bytes, static_cast<int32_t>(static_cast<uint32_t>(random())) >> (i % 32));
      break;
    case DType::kInt:
      for (int i = 0; i < 4096; i++) Append(&bytes, static_cast<int64_t>(random()) >> (i % 64));
      break;
    case DType::kDouble:
      for (double v :
           {0.0, 0.5, 1.5, 0x1p31, 0x1p31 - 1, 0x1p31 - 0.5, 0x1p31 + 1, 0x1p63, 0x1p62, 1e300,
            1e-300, 1e-40, 65504.0, 65519.99, 65520.0, double(INFINITY), double(NAN)}) {
        Append(&bytes, v);
        Append(&bytes, -v);
      }
      while (bytes.size() < 8 * 4096) {
        Append(&bytes, std::ldexp(static_cast<double>(static_cast<int64_t>(random())),
                                  static_cast<int>(random() % 200) - 160));
      }
      break;
  }
  return bytes;
}

std::string DeviceName(DType type) {
  return type == DType::kBool ? "b8" : std::string(ir::DTypeName(type));
}

// Each element converted in a vector, then alone; f32 out of 16-bit floats in the second way too.
std::string KernelText(DType from, DType to) {
  const bool again = to == DType::kFloat && ir::ByteSize(from) == 2;
  return absl::StrFormat(
      "extern \"C\" __global__ void __launch_bounds__(64) k_%2$s(const %1$s* x, %2$s* y, u32 n) {\n"
      "  for (u32 i = fd_thread(); i < n / 8; i += 64) {\n"
      "    const fd_vec<%1$s, 8> v = fd_load<%1$s, 8>(x + 8 * i);\n"
      "    fd_store(y + 8 * i, fd_cast<%2$s>(v));\n"
      "    for (u32 k = 0; k < 8; k++) y[n + 8 * i + k] = fd_cast<%2$s>(v[k]);\n"
      "    fd_store(y + 2 * n + 8 * i, %3$s(v));\n"
      "  }\n}\n",
      DeviceName(from), DeviceName(to),
      again ? "fd_cast_again" : absl::StrCat("fd_cast<", DeviceName(to), ">"));
}

std::string Check(DType from, DType to, const std::string& inputs, const std::string& results) {
  const size_t count = inputs.size() / ir::ByteSize(from);
  for (size_t i = 0; i < 3 * count; i++) {
    const Number in = Read(from, inputs, i % count), got = Read(to, results, i);
    const Number want = from == to ? in : Convert(in, from, to);
    bool agree = want == got;
    if (want.is_float && std::isnan(want.real) && from != to && ir::ByteSize(to) == 2)
      agree = At<uint16_t>(results, i) == 0x7fff;
    if (!agree)
      return absl::StrFormat("%s to %s: %.17g %d became %.17g %d, not %.17g %d (way %d)\n",
                             ir::DTypeName(from), ir::DTypeName(to), in.real, in.whole, got.real,
                             got.whole, want.real, want.whole, i / count);
  }
  return "";
}

}  // namespace

std::vector<Case> ConversionCases() {
  std::vector<Case> cases;
  for (DType from : ir::kAllDTypes) {
    Case each;
    each.name = absl::StrCat("from_", ir::DTypeName(from));
    const std::string inputs = Inputs(from);
    const uint32_t count = static_cast<uint32_t>(inputs.size() / ir::ByteSize(from));
    each.tensors.push_back({inputs, 16});
    for (DType to : ir::kAllDTypes) {
      absl::StrAppend(&each.body, KernelText(from, to));
      each.chain.push_back(
          {"",
           {.entry = absl::StrCat("k_", DeviceName(to)),
            .threads = 64,
            .arguments = {In(0), In(static_cast<int>(each.tensors.size())), Value(count)}}});
      each.tensors.push_back(Poison(3 * count * ir::ByteSize(to)));
    }
    each.check = [from, inputs](const std::vector<std::string>& results) {
      std::string wrong;
      for (size_t i = 0; i < std::size(ir::kAllDTypes); i++)
        wrong += Check(from, ir::kAllDTypes[i], inputs, results[i + 1]);
      return wrong;
    };
    cases.push_back(std::move(each));
  }
  return cases;
}

}  // namespace fusiond::emulation
