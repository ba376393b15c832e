// CpuDevice: launches executables of arch "cpu" through the evaluator, over the same protocol as a
// GPU.
//
// One thread evaluates, in order of submission, so that the loop keeps serving; finished work comes
// back through an eventfd and Poll(). Thread-safety: as channel::Device says (the loop's thread).
// Ownership: joins its thread.
#ifndef FUSIOND_RUNTIME_WORKER_CPU_DEVICE_H_
#define FUSIOND_RUNTIME_WORKER_CPU_DEVICE_H_

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/channel/device.h"
#include "runtime/worker/executable_source.h"
#include "runtime/worker/host_memory.h"

namespace fusiond::worker {

class CpuDevice : public channel::Device {
 public:
  // Work accepted at once; more is answered RESOURCE_EXHAUSTED.
  static constexpr size_t kMaxQueued = 4096;

  // `source` and `memory` must outlive the device. RESOURCE_EXHAUSTED: no thread or descriptor is
  // to be had.
  static absl::StatusOr<std::unique_ptr<CpuDevice>> Create(ExecutableSource* source,
                                                           HostMemory* memory);
  ~CpuDevice() override;

  // Readable when Poll() has something to finish; for WorkerLoop::Watch.
  int ready_fd() const { return ready_.get(); }

  void Load(const base::Digest& digest, LoadCallback done) override;
  absl::StatusOr<channel::AllocatedBuffer> Allocate(uint64_t bytes,
                                                    channel::MemoryKind kind) override;
  absl::StatusOr<std::shared_ptr<channel::SessionBuffer>> Import(base::UniqueFd fd, uint64_t bytes,
                                                                 channel::MemoryKind kind) override;
  void Launch(const channel::LaunchRequest& request, channel::Ticket ticket) override;
  void Copy(const channel::CopyRequest& request, channel::Ticket ticket) override;
  absl::Duration Poll() override;
  void ForgetRing(uint64_t) override {}

 private:
  // Holds what it touches until it is done.
  struct Job {
    std::function<channel::Outcome()> work;
    channel::Ticket ticket;
    uint64_t deadline_ns;
    std::vector<std::shared_ptr<channel::SessionBuffer>> buffers;
    std::shared_ptr<channel::SessionExecutable> executable;
    channel::Outcome outcome;
  };

  CpuDevice(ExecutableSource* source, HostMemory* memory, base::UniqueFd ready)
      : source_(source), memory_(memory), ready_(std::move(ready)) {}
  void Submit(std::unique_ptr<Job> job);
  void RunJobs();

  ExecutableSource* const source_;
  HostMemory* const memory_;
  const base::UniqueFd ready_;

  base::Mutex mutex_;
  base::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::unique_ptr<Job>> queued_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Job>> done_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> cancel_{false};  // read by the evaluator between nodes
  std::thread thread_;
};

}  // namespace fusiond::worker

#endif  // FUSIOND_RUNTIME_WORKER_CPU_DEVICE_H_
