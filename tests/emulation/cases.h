// Hand-written kernels that use every kind of helper, each with inputs and with the right answer.
//
// Thread-safety: pure functions; the texts are embedded.
#ifndef FUSIOND_TESTS_EMULATION_CASES_H_
#define FUSIOND_TESTS_EMULATION_CASES_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/emulation/kernel_call.h"

namespace fusiond::emulation {

struct Case {
  std::string name;
  std::string body;               // the file of that name
  std::vector<KernelCall> chain;  // texts are filled in by RunCase
  std::vector<Tensor> tensors;
  // Empty, or the first element that is wrong.
  std::function<std::string(const std::vector<std::string>&)> check;
  bool needs_sm90 = false;  // bulk copies, clusters
};

inline void PrintTo(const Case& the_case, std::ostream* out) { *out << the_case.name; }

std::vector<Case> AllCases();

// The result of the case with `body` for its own. ABORTED also where the answer is wrong.
absl::Status RunCase(Case the_case, const std::string& body, const KernelRunner& runner);

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_CASES_H_
