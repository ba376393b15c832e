// Tensors in host memory for `fusionctl run`: inputs (inputs.h makes them), outputs, comparison.
#ifndef FUSIOND_CLIENT_CLI_TENSORS_H_
#define FUSIOND_CLIENT_CLI_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/fusiond/v1/service.pb.h"
#include "runtime/base/dtype.h"
#include "runtime/executable/binding.h"
#include "runtime/executable/executable.h"

namespace fusiond::cli {

struct HostArray {
  base::DType dtype = base::DType::kFloat;
  bool scalar = false;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // elements
  std::string data;              // element 0 first; a scalar: 8 bytes (i64, f64, or 0/1)

  // Of a scalar or of the one element of a tensor: what TensorArg::bits takes.
  uint64_t ScalarBits() const;
};

// Bytes from element 0 to behind the last. Requires: no negative stride.
uint64_t Footprint(const HostArray& array);
// What the tensors of a run may take together, since it keeps each several times: a quarter of this
// machine's memory, or of what ulimit -v leaves.
class MemoryBudget {
 public:
  // RESOURCE_EXHAUSTED: one more does not fit; names it.
  absl::Status Add(absl::string_view what, size_t index, uint64_t bytes);

 private:
  uint64_t taken_ = 0;
};
// Calls `visit` with the place in bytes of each element, in row-major order.
template <typename Visit>
void ForEachElement(const HostArray& array, Visit visit);

// by_value: as InputSpec::scalar says; a graph's tensor in host memory is one on a GPU.
executable::TensorArg ToArg(const HostArray& array, uint64_t address, bool by_value);
// One an output of the executable, filled with bytes that no kernel should leave behind.
// RESOURCE_EXHAUSTED: they and the inputs do not fit.
absl::StatusOr<std::vector<HostArray>> OutputArrays(const executable::Executable& executable,
                                                    const std::vector<HostArray>& inputs);

struct Comparison {
  uint64_t elements = 0;
  uint64_t off = 0;  // outside the tolerance
  double worst = 0;  // largest |got - expected| as a fraction of its tolerance
};
// Tolerance: 4 roundings of the output's dtype, and as much again of the array's root mean square,
// for cancellation in sums. nan meets nan, inf meets the same inf.
Comparison Compare(const HostArray& got, const HostArray& expected);

struct RunReport {
  std::string arch;
  std::string device;
  bool local = false;  // launched in this process
  v1::Source source = v1::SOURCE_UNSPECIFIED;
  std::vector<absl::Duration> device_times;
};

template <typename Visit>
void ForEachElement(const HostArray& array, Visit visit) {
  int64_t count = 1, offset = 0;
  for (int64_t extent : array.shape) count *= extent;
  std::vector<int64_t> index(array.shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(static_cast<size_t>(offset * base::ByteSize(array.dtype)));
    for (size_t d = array.shape.size(); d-- > 0;) {
      offset += array.strides[d];
      if (++index[d] < array.shape[d]) break;
      offset -= array.strides[d] * array.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_TENSORS_H_
