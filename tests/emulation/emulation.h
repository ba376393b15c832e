// Generated kernels on a CPU: compiled as C++ against an emulation of CUDA's execution model, run
// under several interleavings in a process of their own, and compared bit by bit. README.md says
// what is found this way and what is not.
//
//   std::string text = Prelude({"math.cuh", "sync.cuh"}) + body;
//   ASSERT_OK_AND_ASSIGN(auto tensors, Emulate({{text, {.entry = "k", .threads = 128,
//                                            .arguments = {In(0), In(1), Value(n)}}}},
//                                          {Floats(x), Poison(4 * n)}));
//
// Thread-safety: Emulate may be called from any thread, and from several processes at once.
// Cost: 0.1 to 0.6 s of g++ the first time that a text is seen, then some milliseconds a run.
#ifndef FUSIOND_TESTS_EMULATION_EMULATION_H_
#define FUSIOND_TESTS_EMULATION_EMULATION_H_

#include <cstring>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/emulation/runtime/job.h"

namespace fusiond::emulation {

// Which sanitizer watches the kernels: none; AddressSanitizer with UBSan's checks of alignment,
// bounds, shifts and overflow; ThreadSanitizer, for which a case needs tiny grids.
enum class Checker { kPlain, kAddress, kThread };

struct KernelCall {
  std::string text{};  // device files, then a body
  Launch launch;       // `library` is filled in by Emulate
};

struct RunOptions {
  std::string arch = "sm_90a";
  Checker checker = Checker::kPlain;
  std::vector<Interleaving> interleavings{};  // empty: SixInterleavings()
  int resident_ctas = 3;
  int seconds = 60;
};

// Ascending, descending and shuffled order, each with late and with early copies.
std::vector<Interleaving> SixInterleavings();

// Runs the chain of launches under every interleaving, from the same tensors each time. Returns
// the tensors after it.
// INVALID_ARGUMENT: a text that begins with no device file, or that g++ rejects (with its log).
// ABORTED: a fault in a kernel: a wrong meeting, an access out of bounds, a race, a deadlock,
//   results that differ between interleavings; says where.
// INTERNAL: the machinery itself.
absl::StatusOr<std::vector<std::string>> Emulate(std::vector<KernelCall> chain,
                                                 std::vector<Tensor> tensors,
                                                 const RunOptions& options = {});

// The C++ that stands for `text`, with a way in for each entry.
absl::StatusOr<std::string> EmulatedText(absl::string_view text,
                                         const std::vector<std::string>& entries);
// Names of the helpers with an emulation of their own, by device file: for the test that compares
// them with the originals.
struct Twin {
  absl::string_view name;
  absl::string_view text;
};
std::vector<Twin> Twins();

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

#endif  // FUSIOND_TESTS_EMULATION_EMULATION_H_
