// The machine code of a kernel in a cubin.
//
// Thread-safety: pure function.
#ifndef FUSIOND_TESTS_SUPPORT_KERNEL_CODE_H_
#define FUSIOND_TESTS_SUPPORT_KERNEL_CODE_H_

#include <string>

namespace fusiond::testing {

// Empty if there is none of that name.
std::string KernelCode(const std::string& cubin, const std::string& kernel);

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SUPPORT_KERNEL_CODE_H_
