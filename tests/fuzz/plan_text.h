// What plan_fuzz and the test of its corpus share: a plan as the bytes of a graph's text choose it.
#ifndef FUSIOND_TESTS_FUZZ_PLAN_TEXT_H_
#define FUSIOND_TESTS_FUZZ_PLAN_TEXT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/compiler.h"

namespace fusiond::compiler {

// The checksum of the text chooses device, options and attempt, so that any graph file is a seed.
// Errors: as Parse and Plan; RESOURCE_EXHAUSTED also for graphs of more than 48 nodes, which take
// long and bring nothing new.
absl::StatusOr<PlanResult> PlanText(absl::string_view text);

}  // namespace fusiond::compiler

#endif  // FUSIOND_TESTS_FUZZ_PLAN_TEXT_H_
