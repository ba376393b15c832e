// A number and its noun, for messages: "1 operand", "2 operands".
//
// Thread-safety: pure functions.
#ifndef FUSIOND_RUNTIME_BASE_COUNTED_H_
#define FUSIOND_RUNTIME_BASE_COUNTED_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace fusiond::base {

// `many` where the plural is not `one` and an s.
template <typename Number>
std::string Counted(Number number, absl::string_view one, absl::string_view many = "") {
  if (number == 1) return absl::StrCat("1 ", one);
  return many.empty() ? absl::StrCat(number, " ", one, "s") : absl::StrCat(number, " ", many);
}

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_COUNTED_H_
