#include "runtime/channel/worker_ring.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"

namespace fusiond::channel {
namespace {

absl::StatusOr<base::UniqueFd> NewEventfd() {
  base::UniqueFd fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!fd.valid()) return base::ErrnoStatus(errno, "create eventfd");
  return fd;
}

}  // namespace

absl::StatusOr<std::shared_ptr<WorkerRing>> WorkerRing::Create(uint64_t id,
                                                               const RingGeometry& geometry,
                                                               uint64_t epoch, uint64_t features) {
  FUSIOND_ASSIGN_OR_RETURN(WorkerRegions regions, CreateRegions(geometry, epoch, features));
  FUSIOND_ASSIGN_OR_RETURN(base::UniqueFd wake_worker, NewEventfd());
  FUSIOND_ASSIGN_OR_RETURN(base::UniqueFd wake_client, NewEventfd());
  return std::shared_ptr<WorkerRing>(new WorkerRing(
      id, geometry, epoch, std::move(regions), std::move(wake_worker), std::move(wake_client)));
}

WorkerRing::WorkerRing(uint64_t id, const RingGeometry& geometry, uint64_t epoch,
                       WorkerRegions regions, base::UniqueFd wake_worker,
                       base::UniqueFd wake_client)
    : id_(id),
      epoch_(epoch),
      geometry_(geometry),
      regions_(std::move(regions)),
      wake_worker_(std::move(wake_worker)),
      wake_client_(std::move(wake_client)),
      submissions_(regions_.a, regions_.b, geometry),
      completions_(regions_.a, regions_.b, geometry) {}

void WorkerRing::Answer(uint64_t cookie, const Outcome& outcome) {
  FUSIOND_CHECK(in_flight() > 0);
  SetCompletion(cookie, epoch_, outcome, &completions_.Next());
  completions_.Push();
}

void WorkerRing::Publish() {
  submissions_.PublishHead();
  if (!completions_.has_unpublished() || !completions_.Publish()) return;
  // A failed write (EAGAIN) means that the counter is at its end, hence not zero: the client is
  // awake or will be.
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_client_.get(), &one, sizeof(one));
}

void WorkerRing::SetState(WorkerState state) {
  // release: pairs with the acquire in ClientRing::worker_state.
  regions_.b.control->state.value.store(static_cast<uint32_t>(state), std::memory_order_release);
}

}  // namespace fusiond::channel
