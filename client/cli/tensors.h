// Tensors in host memory for `fusionctl run`: random inputs, outputs, comparison.
#ifndef FUSIOND_CLIENT_CLI_TENSORS_H_
#define FUSIOND_CLIENT_CLI_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cc/client.h"
#include "compiler/ir/graph.h"
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

// Floats are normally distributed, integers in [-8, 8], bools even. RESOURCE_EXHAUSTED, here and
// for outputs: a tensor is too large for this machine.
absl::StatusOr<std::vector<HostArray>> RandomInputs(const ir::Graph& graph,
                                                    const std::vector<client::Layout>& layouts,
                                                    uint64_t seed);

// by_value: as InputSpec::scalar says; a graph's tensor in host memory is one on a GPU.
executable::TensorArg ToArg(const HostArray& array, uint64_t address, bool by_value);
// One an output of the executable, filled with bytes that no kernel should leave behind.
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
  std::string source;
  std::vector<absl::Duration> device_times;
};

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_TENSORS_H_
