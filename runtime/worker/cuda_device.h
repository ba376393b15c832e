// CudaDevice: one CUDA context that loads executables, owns arenas and launches on streams.
//
// Every (ring, stream slot) has a stream of its own, with its own workspace. Completions are
// host-polled: an event is recorded after each launch or copy and asked for in Poll(). After a
// sticky error the context is lost: everything outstanding is answered CONTEXT_LOST through
// on_lost, which ends the worker. So is a device that does not end a launch long after its
// deadline: nothing but the end of the process stops a kernel. The loop's thread does not wait for
// work of its own accord; where the driver makes it wait for a hung device, HangWatch notices.
//
// Device memory is allocated with the virtual memory API and exported as a POSIX descriptor, so
// that a client maps the same pages; where a card cannot export, Allocate says so.
//
// Thread-safety: as channel::Device says (the loop's thread); the context is current on it.
// Ownership: holds the primary context.
#ifndef FUSIOND_RUNTIME_WORKER_CUDA_DEVICE_H_
#define FUSIOND_RUNTIME_WORKER_CUDA_DEVICE_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "runtime/channel/device.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/probe.h"
#include "runtime/worker/executable_source.h"
#include "runtime/worker/hang_watch.h"
#include "runtime/worker/host_memory.h"
#include "runtime/worker/launch_binding.h"

namespace fusiond::worker {

struct CudaDeviceOptions {
  HostMemory* host_memory = nullptr;  // needed; outlives the device
  // Called once when the context is lost, on the loop's thread.
  std::function<void(absl::Status)> on_lost = [](const absl::Status&) {};
  // Called on another thread when the device hangs and the loop with it: the process must end.
  std::function<void()> on_stuck = [] {};
  // How long work may take beyond its deadline, once it is first of its stream, before the device
  // counts as hung; and how much longer before the loop does.
  absl::Duration hung_after = absl::Seconds(10);
  absl::Duration stuck_after = absl::Seconds(10);
};

class CudaDevice : public channel::Device {
 public:
  static constexpr size_t kMaxInFlight = 4096;  // a stream

  // Retains the primary context of the device named `uuid` and makes it current. NOT_FOUND lists
  // the UUIDs that are visible. `source` must outlive the device.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(const cuda::Driver& driver,
                                                            const std::string& uuid,
                                                            ExecutableSource* source,
                                                            CudaDeviceOptions options);
  ~CudaDevice() override;

  void Load(const base::Digest& digest, LoadCallback done) override;
  absl::StatusOr<channel::AllocatedBuffer> Allocate(uint64_t bytes,
                                                    channel::MemoryKind kind) override;
  absl::StatusOr<std::shared_ptr<channel::SessionBuffer>> Import(base::UniqueFd fd, uint64_t bytes,
                                                                 channel::MemoryKind kind) override;
  void Launch(const channel::LaunchRequest& request, channel::Ticket ticket) override;
  void Copy(const channel::CopyRequest& request, channel::Ticket ticket) override;
  absl::Duration Poll() override;
  void ForgetRing(uint64_t ring) override;

 private:
  struct Work {
    channel::Ticket ticket;
    cuda::CUevent start = nullptr;  // null unless the ticket is timed
    cuda::CUevent end = nullptr;
    int64_t started_ns = 0;
    uint64_t deadline_ns = 0;                            // 0: none
    const base::Digest* executable = nullptr;            // of a launch; kept by `keep`
    absl::InlinedVector<std::shared_ptr<void>, 8> keep;  // what the GPU may still touch
    channel::Outcome failure;                            // where not all of it was enqueued
  };
  struct Stream {
    cuda::CUstream stream = nullptr;
    cuda::CUdeviceptr workspace = 0;
    uint64_t workspace_bytes = 0;
    std::vector<cuda::CUdeviceptr> outgrown;  // workspaces that work in flight may use
    std::deque<Work> in_flight;
    int64_t first_since_ns = 0;  // since when in_flight's first is that
  };

  CudaDevice(const cuda::Driver& driver, cuda::ProbedDevice device, ExecutableSource* source,
             CudaDeviceOptions options);
  absl::StatusOr<Stream*> StreamFor(const channel::StreamKey& key);
  absl::Status ReserveWorkspace(Stream& stream, uint64_t bytes);
  absl::StatusOr<cuda::CUevent> TakeEvent();
  absl::Status TakeEvents(Work& work);
  // Enqueues `enqueue` before an event, or between two; refuses when too much is in flight.
  // `executable` is null for a copy.
  void Run(const channel::StreamKey& key, channel::Ticket ticket, uint64_t deadline_ns,
           const base::Digest* executable, absl::InlinedVector<std::shared_ptr<void>, 8> keep,
           const std::function<absl::Status(Stream&)>& enqueue);
  static std::string NameOf(const Work& work);
  void Finish(Work& work);
  // Finishes what has ended; false when the context is lost.
  bool PollStream(Stream& stream);
  // From when on the device counts as hung if the first of `stream` has not ended.
  int64_t HungAt(const Stream& stream) const;
  void FreeOutgrown(Stream& stream);
  void Close(Stream& stream);
  // Answers the ticket, and declares the context lost where `status` says so.
  void Fail(channel::Ticket ticket, const absl::Status& status);
  void Lose(const absl::Status& status);
  absl::StatusOr<std::shared_ptr<channel::SessionBuffer>> MapDeviceMemory(
      cuda::CUmemGenericAllocationHandle handle, uint64_t mapped_bytes, uint64_t bytes);

  const cuda::Driver& driver_;
  const cuda::ProbedDevice device_;
  ExecutableSource* const source_;
  const CudaDeviceOptions options_;
  const int64_t hung_after_ns_;
  cuda::CUcontext context_ = nullptr;
  bool lost_ = false;
  size_t in_flight_ = 0;
  absl::flat_hash_map<channel::StreamKey, std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Stream>> closing_;  // of rings that are gone, until they are idle
  std::vector<cuda::CUevent> spare_events_;
  std::vector<Work> held_;  // answered, but the device may touch what it holds to the end
  HangWatch watch_;
};

}  // namespace fusiond::worker

#endif  // FUSIOND_RUNTIME_WORKER_CUDA_DEVICE_H_
