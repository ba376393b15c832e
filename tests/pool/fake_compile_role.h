// The compile process of compile_pool_test: the real role with a PLAN job that obeys its graph's
// bytes. The test binary runs itself as this role, and as a supervisor that can be killed.
#ifndef FUSIOND_TESTS_POOL_FAKE_COMPILE_ROLE_H_
#define FUSIOND_TESTS_POOL_FAKE_COMPILE_ROLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/fusiond/v1/internal.pb.h"

namespace fusiond::server {

// Commands, as PlanJob.graph:
// - echo:TEXT: answers TEXT as canonical_ir, and how many plan jobs it had as explanation
// - error:TEXT: INVALID_ARGUMENT TEXT
// - hang, trap, abort, overflow (of the stack), exit, socket, open
// - eat: takes memory until there is none; the exception leaves the job
// - eat and abort: the same for a library that cannot stand it
// - huge: a reply above the limit
absl::StatusOr<internal::v1::PlanResult> FakePlan(const internal::v1::PlanJob& job);

// `--role=…` as main would do it; the exit code.
int RunRole(const std::string& role);

}  // namespace fusiond::server

#endif  // FUSIOND_TESTS_POOL_FAKE_COMPILE_ROLE_H_
