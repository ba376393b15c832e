// Artifacts: what compilation makes on the way, made again for whoever asks. One PLAN job gives
// canonical IR, schedule, CUDA text and the explanation; one IMAGE job a kernel gives PTX.
#ifndef FUSIOND_SERVER_SERVICE_ARTIFACTS_H_
#define FUSIOND_SERVER_SERVICE_ARTIFACTS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/fusiond/v1/service.pb.h"
#include "server/engine/job_runner.h"
#include "server/engine/request.h"

namespace fusiond::server {

// The kinds asked for, all when none is named. INVALID_ARGUMENT lists them for an unknown one.
absl::StatusOr<std::vector<std::string>> CheckArtifactKinds(const v1::GetArtifactsRequest& request);

// Calls `done` once, on the pool's thread. The result cancels what is still to be done: `done` is
// called with CANCELLED then, unless it is on the way already; from any thread.
std::function<void()> MakeArtifacts(
    const std::vector<std::string>& kinds, std::shared_ptr<const PreparedRequest> request,
    const std::string& tenant, JobRunner* runner,
    std::function<void(absl::StatusOr<v1::GetArtifactsResponse>)> done);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_ARTIFACTS_H_
