// One ring pair of a worker, with its memory and eventfds.
//
// Thread-safety: single-thread (the loop's). Ownership: shared by the session and by the Tickets of
// work in flight, so that a late answer still finds its memory.
#ifndef FUSIOND_RUNTIME_CHANNEL_WORKER_RING_H_
#define FUSIOND_RUNTIME_CHANNEL_WORKER_RING_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/base/file.h"
#include "runtime/channel/completion.h"
#include "runtime/channel/region.h"
#include "runtime/channel/ring.h"

namespace fusiond::channel {

class WorkerRing {
 public:
  // `id` is unique in the worker's life. RESOURCE_EXHAUSTED when memory or descriptors run out.
  static absl::StatusOr<std::shared_ptr<WorkerRing>> Create(uint64_t id,
                                                            const RingGeometry& geometry,
                                                            uint64_t epoch, uint64_t features);

  uint64_t id() const { return id_; }
  const RingGeometry& geometry() const { return geometry_; }
  SubmissionConsumer& submissions() { return submissions_; }

  // Answers one taken entry; the client sees it after Publish().
  void Answer(uint64_t cookie, const Outcome& outcome);
  // Publishes answers and copied arguments, and wakes the client if it sleeps.
  void Publish();
  void SetState(WorkerState state);
  // Entries taken and not answered.
  uint32_t in_flight() const { return submissions_.taken() - completions_.pushed(); }

  int region_a_fd() const { return regions_.memory_a.fd.get(); }
  int region_b_fd() const { return regions_.memory_b.fd.get(); }
  int wake_worker_fd() const { return wake_worker_.get(); }  // the client writes
  int wake_client_fd() const { return wake_client_.get(); }  // the worker writes
  size_t shared_bytes() const { return RegionABytes(geometry_) + RegionBBytes(geometry_); }

 private:
  WorkerRing(uint64_t id, const RingGeometry& geometry, uint64_t epoch, WorkerRegions regions,
             base::UniqueFd wake_worker, base::UniqueFd wake_client);

  const uint64_t id_;
  const uint64_t epoch_;
  const RingGeometry geometry_;
  const WorkerRegions regions_;
  const base::UniqueFd wake_worker_;
  const base::UniqueFd wake_client_;
  SubmissionConsumer submissions_;
  CompletionProducer completions_;
};

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_WORKER_RING_H_
