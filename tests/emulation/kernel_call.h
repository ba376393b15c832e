// A launch of a kernel whose text is at hand, and the shorthand that tests write it in. Emulate
// (emulation.h) and Gpu (on_gpu.h) take the same.
//
// Thread-safety: values.
#ifndef FUSIOND_TESTS_EMULATION_KERNEL_CALL_H_
#define FUSIOND_TESTS_EMULATION_KERNEL_CALL_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/emulation/runtime/job.h"

namespace fusiond::emulation {

struct KernelCall {
  std::string text{};  // device files, then a body
  Launch launch;       // its `library` is not used
};

// Runs a chain of launches on tensors and returns the tensors after it: Emulator (emulation.h) or a
// Gpu (on_gpu.h).
using KernelRunner = std::function<absl::StatusOr<std::vector<std::string>>(
    const std::vector<KernelCall>&, const std::vector<Tensor>&)>;

// Arguments.
inline Argument In(int tensor, uint64_t byte_offset = 0) { return {tensor, byte_offset, ""}; }
template <class T>
Argument Value(T v) {
  return {-1, 0, std::string(reinterpret_cast<const char*>(&v), sizeof(v))};
}
// Tensors.
template <class T>
Tensor Of(const std::vector<T>& values, uint64_t alignment = 16) {
  return {std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)),
          alignment};
}
inline Tensor Poison(uint64_t bytes, uint64_t alignment = 16) {
  return {std::string(bytes, '\xff'), alignment};
}
template <class T>
std::vector<T> As(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_KERNEL_CALL_H_
