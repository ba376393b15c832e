// Type inference by text: what `op` gives on inputs of the types written.
#ifndef FUSIOND_TESTS_IR_INFER_TEXT_H_
#define FUSIOND_TESTS_IR_INFER_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace fusiond::ir {

// Infer("add", "f32[4] f64", "") is "f32[4]{1}"; several results stand with a blank between, and an
// error is its message without the position. `inputs` are types, `attributes` is as in .fir text.
std::string Infer(absl::string_view op, absl::string_view inputs, absl::string_view attributes);
// As Infer, but the dtype in which the op computes.
std::string Compute(absl::string_view op, absl::string_view inputs);

}  // namespace fusiond::ir

#endif  // FUSIOND_TESTS_IR_INFER_TEXT_H_
