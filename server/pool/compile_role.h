// The life of a compile process (`fusiond --role=compile`): set up, open NVRTC, shut every door,
// then answer jobs until the supervisor is gone.
//
// Thread-safety: call from main's thread; the process has no other.
#ifndef FUSIOND_SERVER_POOL_COMPILE_ROLE_H_
#define FUSIOND_SERVER_POOL_COMPILE_ROLE_H_

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/fusiond/v1/internal.pb.h"

namespace fusiond::server {

// What a PLAN job runs: compiler::Plan between its messages. Runs inside the sandbox: no files, no
// threads. std::bad_alloc may leave it (it is answered as out of memory), nothing else may.
using PlanFunction =
    absl::AnyInvocable<absl::StatusOr<internal::v1::PlanResult>(const internal::v1::PlanJob&)>;

// Serves the supervisor on descriptor kChildSocket. Returns only if the process could not be set up
// or the socket broke; when the supervisor closes the socket it ends the process with code 0 on the
// spot, no destructor run: under the filter most of them could not do their work.
absl::Status RunCompileRole(PlanFunction plan);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_POOL_COMPILE_ROLE_H_
