// What ptxas says about each kernel (its -v report inside NVRTC's program log), as numbers.
//
// Thread-safety: pure functions. Source: ptxas 12.9 and 13.0 output, fixtures in
// tests/nvrtc/ptxas_log_test.cc.
#ifndef FUSIOND_COMPILER_NVRTC_PTXAS_LOG_H_
#define FUSIOND_COMPILER_NVRTC_PTXAS_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fusiond::nvrtc {

// One kernel's use of the machine. Functions that were not inlined count with the kernel reported
// last before them.
struct EntryResources {
  std::string entry;
  int64_t registers = 0;          // per thread
  int64_t stack_bytes = 0;        // per thread
  int64_t spill_store_bytes = 0;  // per thread
  int64_t spill_load_bytes = 0;   // per thread
  int64_t static_smem_bytes = 0;  // per block

  bool operator==(const EntryResources&) const = default;
};

// In the log's order. Lines of another form are passed over: an unknown ptxas yields fewer entries,
// never an error.
std::vector<EntryResources> ParsePtxasLog(absl::string_view log);

// The log without ptxas' timing lines, so that equal compiles have equal logs.
std::string StableLog(absl::string_view log);

}  // namespace fusiond::nvrtc

#endif  // FUSIOND_COMPILER_NVRTC_PTXAS_LOG_H_
