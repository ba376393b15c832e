// The messages that go to compile processes, and the process's side of a PLAN job.
#ifndef FUSIOND_SERVER_ENGINE_PLAN_JOB_H_
#define FUSIOND_SERVER_ENGINE_PLAN_JOB_H_

#include "absl/status/statusor.h"
#include "proto/fusiond/v1/explanation.pb.h"
#include "proto/fusiond/v1/internal.pb.h"
#include "server/engine/request.h"

namespace fusiond::server {

internal::v1::CompileJob MakePlanJob(const PreparedRequest& request, int attempt);
internal::v1::CompileJob MakeImageJob(const internal::v1::KernelSource& source,
                                      const PreparedRequest& request);

// Of a plan that was asked for one. INTERNAL: it cannot be read.
absl::StatusOr<v1::Explanation> ExplanationOf(const internal::v1::PlanResult& plan);

// What a compile process runs for a PLAN job: compiler::Plan between its messages.
absl::StatusOr<internal::v1::PlanResult> RunPlanJob(const internal::v1::PlanJob& job);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_ENGINE_PLAN_JOB_H_
