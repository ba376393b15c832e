// An Executable run by Emulate or on a GPU from its kernels' texts, without images: what the tests
// of generated kernels call.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_TESTS_EMULATION_RUN_EXECUTABLE_H_
#define FUSIOND_TESTS_EMULATION_RUN_EXECUTABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/executable/binding.h"
#include "runtime/executable/device_info.h"
#include "runtime/executable/executable.h"
#include "tests/emulation/kernel_call.h"

namespace fusiond::emulation {

// The arch's default profile with three SMs, so that persistent loops run many rows.
absl::StatusOr<executable::DeviceInfo> EmulatedDevice(absl::string_view arch);

struct ExecutableInput {
  executable::TensorArg arg;  // shape, strides, bits; the address is ours
  std::string bytes;          // from element 0 to the end of the last element; empty for scalars
  uint64_t alignment = 16;    // of the address: exactly this
};

struct RunLayout {
  int sm_count = 3;
  uint64_t output_alignment = 16;
};

// Runs `executable`, whose image i has the text `texts[i]`. Returns an entry an output: its bytes
// from element 0 on, 0xff where nothing was written; for an output that aliases an input, that
// input's buffer.
// As CheckInputs and CheckGuards, with addresses of exactly the alignments given; as `runner`;
// UNIMPLEMENTED for a HostEvaluate step.
absl::StatusOr<std::vector<std::string>> RunExecutable(const executable::Executable& executable,
                                                       const std::vector<std::string>& texts,
                                                       const std::vector<ExecutableInput>& inputs,
                                                       const KernelRunner& runner,
                                                       const RunLayout& layout = {});

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_RUN_EXECUTABLE_H_
