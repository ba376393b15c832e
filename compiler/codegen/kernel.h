// What an emitter gives back: kernels as text, with all that a launch must know about them.
//
// Thread-safety: values. Units: bytes; formulas as runtime/executable/formula.h.
#ifndef FUSIOND_COMPILER_CODEGEN_KERNEL_H_
#define FUSIOND_COMPILER_CODEGEN_KERNEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/executable/formula.h"

namespace fusiond::codegen {

// One parameter, in the order of the entry's.
struct Parameter {
  enum class Kind : uint8_t {
    kTensor,   // address of region tensor `index`
    kScratch,  // address of scratch buffer `index` of the emission
    kScalar,   // region scalar `index`, as its dtype
    kInt32,    // formula
    kInt64,    // formula
  };
  Kind kind = Kind::kTensor;
  uint32_t index = 0;
  executable::Formula formula;
};

struct Kernel {
  std::string entry;  // does not depend on where in a graph the kernel stands
  std::string text;   // CUDA C++, includes nothing
  executable::Formula grid[3] = {executable::Formula::Constant(1), executable::Formula::Constant(1),
                                 executable::Formula::Constant(1)};
  int threads = 0;
  int cluster = 1;
  int64_t smem_bytes = 0;
  bool waits_for_primary = false;  // may be launched before the kernel ahead of it has ended
  std::vector<Parameter> parameters;
};

// The kernels of one region, in order; scratch lives from the first to the last of them.
struct Emission {
  std::vector<Kernel> kernels;
  std::vector<executable::Formula> scratch_bytes;
  std::vector<int64_t> alignment;  // by region tensor: what the text relies on, bytes
};

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_KERNEL_H_
