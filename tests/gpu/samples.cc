#include "tests/gpu/samples.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <random>

namespace fusiond::testing {
namespace {

using base::DType;

constexpr double kSpecialFloats[] = {0.0,   -0.0,     1.0,       -1.0, 3.0,     1e30,   -1e-30,
                                     1e-42, INFINITY, -INFINITY, NAN,  65504.0, 0x1p31, -0x1p63};
constexpr int64_t kSpecialIntegers[] = {std::numeric_limits<int64_t>::min(),
                                        std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int32_t>::min(),
                                        std::numeric_limits<int32_t>::max(),
                                        31,
                                        32,
                                        63,
                                        64};

}  // namespace

Samples::Samples(DType dtype, uint64_t seed, bool special) : dtype_(dtype) {
  std::mt19937_64 random(seed);
  const auto bytes = static_cast<size_t>(base::ByteSize(dtype));
  pool_.resize(kPeriod * bytes);
  for (int64_t i = 0; i < kPeriod; ++i) {
    char* const at = pool_.data() + static_cast<size_t>(i) * bytes;
    const uint64_t bits = random();
    const bool special_here = special && (bits & 7) == 0;
    if (base::IsFloatingPoint(dtype)) {
      const double magnitude = 0.25 + 1.75 * static_cast<double>(bits >> 32) * 0x1p-32;
      const double value = (bits & 8) != 0 ? -magnitude : magnitude;
      base::StoreFloat(
          dtype, special_here ? kSpecialFloats[(bits >> 4) % std::size(kSpecialFloats)] : value,
          at);
    } else if (dtype == DType::kBool) {
      base::StoreInteger(dtype, static_cast<int64_t>(bits & 1), at);
    } else {
      const int64_t value = static_cast<int64_t>((bits >> 32) % 41) - 20;
      base::StoreInteger(
          dtype, special_here ? kSpecialIntegers[(bits >> 4) % std::size(kSpecialIntegers)] : value,
          at);
    }
  }
}

void Samples::AppendTo(cpu::HostTensor& tensor, int64_t i) const {
  const char* const at = pool_.data() + (i % kPeriod) * base::ByteSize(dtype_);
  if (base::IsFloatingPoint(dtype_)) {
    tensor.floats.push_back(base::LoadFloat(dtype_, at));
  } else {
    tensor.integers.push_back(base::LoadInteger(dtype_, at));
  }
}

}  // namespace fusiond::testing
