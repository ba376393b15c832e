// Faults planted into a kernel's text: what a test suite must find to be believed.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_TESTS_EMULATION_PLANT_H_
#define FUSIOND_TESTS_EMULATION_PLANT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusiond::emulation {

struct Edit {
  std::string find;
  std::string replace;
  int occurrence = 0;  // which one, from 0
};

struct Fault {
  std::string name;
  std::vector<Edit> edits;
};

// `text` with the fault's edits done one after the other. NOT_FOUND: `find` does not occur that
// often, so that a fault never passes for planted when the text has moved on.
absl::StatusOr<std::string> Plant(absl::string_view text, const Fault& fault);

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_PLANT_H_
