// Samples: random elements of a tensor of any size, of which only a pool is kept; element i is
// pool[i mod kPeriod]. The period is prime, so that no two of its first 65521 rows are equal.
//
// Floats are ±[0.25, 2), so that neither division nor roots nor products of a few leave the range;
// integers lie in [-20, 20].
// Thread-safety: immutable.
#ifndef FUSIOND_TESTS_GPU_SAMPLES_H_
#define FUSIOND_TESTS_GPU_SAMPLES_H_

#include <cstdint>
#include <string>

#include "runtime/base/dtype.h"
#include "runtime/base/element.h"
#include "runtime/cpu/host_tensor.h"

namespace fusiond::testing {

class Samples {
 public:
  static constexpr int64_t kPeriod = 65521;

  // special: one float in eight is 0, inf, nan, denormal or the like, one integer an extreme.
  Samples(base::DType dtype, uint64_t seed, bool special);

  base::DType dtype() const { return dtype_; }
  const std::string& pool() const { return pool_; }  // kPeriod elements as they lie in memory
  // Appends element i.
  void AppendTo(cpu::HostTensor& tensor, int64_t i) const;

 private:
  const base::DType dtype_;
  std::string pool_;
};

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_GPU_SAMPLES_H_
