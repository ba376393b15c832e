// How a request's graph becomes kernels, worked out anew as a compile would: a PLAN job, an IMAGE
// job a kernel for what NVRTC says of it, and again with the next candidate where kernels spill.
#ifndef FUSIOND_SERVER_SERVICE_EXPLAIN_SCHEDULE_H_
#define FUSIOND_SERVER_SERVICE_EXPLAIN_SCHEDULE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/fusiond/v1/explanation.pb.h"
#include "server/engine/job_runner.h"
#include "server/engine/request.h"

namespace fusiond::server {

// Calls `done` once, on the pool's thread. The result cancels, as MakeArtifacts' does.
// `max_attempts`: plans, the engine's number.
std::function<void()> ExplainSchedule(std::shared_ptr<const PreparedRequest> request,
                                      const std::string& tenant, int max_attempts,
                                      JobRunner* runner,
                                      std::function<void(absl::StatusOr<v1::Explanation>)> done);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_EXPLAIN_SCHEDULE_H_
