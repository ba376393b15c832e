// Generated kernels on a CPU: compiled as C++ against an emulation of CUDA's execution model, run
// under several interleavings in a process of their own, and compared bit by bit. README.md says
// what is found this way and what is not.
//
//   std::string text = Prelude({"math.cuh", "sync.cuh"}) + body;
//   ASSERT_OK_AND_ASSIGN(auto tensors, Emulate({{text, {.entry = "k", .threads = 128,
//                                            .arguments = {In(0), In(1), Value(n)}}}},
//                                          {Of(x), Poison(4 * n)}));
//
// Thread-safety: Emulate may be called from any thread, and from several processes at once.
// Cost: 0.1 to 0.6 s of g++ the first time that a text is seen, then some milliseconds a run.
#ifndef FUSIOND_TESTS_EMULATION_EMULATION_H_
#define FUSIOND_TESTS_EMULATION_EMULATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/emulation/kernel_call.h"

namespace fusiond::emulation {

// Which sanitizer watches the kernels: none; AddressSanitizer with UBSan's checks of alignment,
// bounds, shifts and overflow; ThreadSanitizer, for which a case needs tiny grids.
enum class Checker { kPlain, kAddress, kThread };

struct RunOptions {
  std::string arch = "sm_90a";
  Checker checker = Checker::kPlain;
  std::vector<Interleaving> interleavings{};  // empty: SixInterleavings()
  int resident_ctas = 3;
  int seconds = 60;  // of the processor
};

// Ascending, descending and shuffled order, each with late and with early copies.
std::vector<Interleaving> SixInterleavings();

// Runs the chain of launches under every interleaving, from the same tensors each time. Returns
// the tensors after it.
// INVALID_ARGUMENT: a text that begins with no device file, whose body holds what bodies may not
//   (asm, __shared__, #include, #define), or that g++ rejects (with its log).
// ABORTED: a fault in a kernel: a wrong meeting, an access out of bounds, a race, a deadlock,
//   results that differ between interleavings; says where.
// INTERNAL: the machinery itself.
absl::StatusOr<std::vector<std::string>> Emulate(std::vector<KernelCall> chain,
                                                 std::vector<Tensor> tensors,
                                                 const RunOptions& options = {});

// The C++ that stands for `text`, with a way in for each entry.
absl::StatusOr<std::string> EmulatedText(absl::string_view text,
                                         const std::vector<std::string>& entries);
// Emulate with its options bound, for RunCase and RunExecutable.
KernelRunner Emulator(RunOptions options = {});

// Names of the helpers with an emulation of their own, by device file: for the test that compares
// them with the originals.
struct Twin {
  absl::string_view name;
  absl::string_view text;
};
std::vector<Twin> Twins();

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_EMULATION_H_
