#include "runtime/worker/cuda_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/status_numbers.h"
#include "runtime/cuda/loaded_executable.h"
#include "runtime/worker/buffers.h"

namespace fusiond::worker {
namespace {

using channel::CompletionCode;
using channel::CompletionReason;
using channel::MemoryKind;
using channel::Outcome;
using cuda::CUdeviceptr;
using cuda::Driver;

// How long the loop may sleep while the GPU works: none, a completion is worth microseconds.
constexpr absl::Duration kPollAgain = absl::ZeroDuration();

int64_t NowNs() { return absl::ToInt64Nanoseconds(base::Clock::System().Now()); }

class GpuExecutable : public channel::SessionExecutable {
 public:
  GpuExecutable(const base::Digest& digest, std::unique_ptr<cuda::LoadedExecutable> loaded,
                LaunchShape shape)
      : SessionExecutable(shape.tensors, shape.extents),
        digest(digest),
        loaded(std::move(loaded)) {}
  const base::Digest digest;
  const std::unique_ptr<cuda::LoadedExecutable> loaded;
};

// Device memory mapped into the worker's context.
class DeviceBuffer : public channel::SessionBuffer {
 public:
  DeviceBuffer(const Driver& driver, CUdeviceptr address, uint64_t mapped_bytes, uint64_t bytes)
      : SessionBuffer(bytes), driver_(driver), address_(address), mapped_bytes_(mapped_bytes) {}
  ~DeviceBuffer() override {
    driver_.MemUnmap(address_, mapped_bytes_);
    driver_.MemAddressFree(address_, mapped_bytes_);
  }
  CUdeviceptr address() const { return address_; }

 private:
  const Driver& driver_;
  const CUdeviceptr address_;
  const uint64_t mapped_bytes_;
};

cuda::CUmemAllocationProp DeviceMemory(cuda::CUdevice device) {
  cuda::CUmemAllocationProp properties{};
  properties.type = cuda::kAllocationPinned;
  properties.requested_handle_types = cuda::kHandlePosixFd;
  properties.location = {cuda::kLocationDevice, device};
  return properties;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(const Driver& driver,
                                                               const std::string& uuid,
                                                               ExecutableSource* source,
                                                               CudaDeviceOptions options) {
  FUSIOND_ASSIGN_OR_RETURN(std::vector<cuda::ProbedDevice> devices, cuda::Probe(driver));
  auto found = std::find_if(devices.begin(), devices.end(),
                            [&](const cuda::ProbedDevice& d) { return d.uuid == uuid; });
  if (found == devices.end()) {
    return absl::NotFoundError(absl::StrCat(
        "device ", uuid, " is not visible; visible: ",
        absl::StrJoin(devices, ", ",
                      [](std::string* o, const cuda::ProbedDevice& d) { o->append(d.uuid); })));
  }
  if (!found->problem.empty()) return absl::FailedPreconditionError(found->problem);
  std::unique_ptr<CudaDevice> device(new CudaDevice(driver, *found, source, std::move(options)));
  FUSIOND_RETURN_IF_ERROR(driver.ToStatus(driver.PrimaryCtxRetain(&device->context_, found->device),
                                          "cuDevicePrimaryCtxRetain"));
  FUSIOND_RETURN_IF_ERROR(
      driver.ToStatus(driver.CtxSetCurrent(device->context_), "cuCtxSetCurrent"));
  FUSIOND_RETURN_IF_ERROR(device->watch_.Start());
  return device;
}

CudaDevice::CudaDevice(const Driver& driver, cuda::ProbedDevice device, ExecutableSource* source,
                       CudaDeviceOptions options)
    : driver_(driver),
      device_(std::move(device)),
      source_(source),
      options_(std::move(options)),
      hung_after_ns_(absl::ToInt64Nanoseconds(options_.hung_after)),
      watch_(options_.stuck_after, options_.on_stuck) {}

CudaDevice::~CudaDevice() {
  if (lost_) return;  // the process ends, and the driver may never come back
  for (auto& [key, stream] : streams_) Close(*stream);
  for (const std::unique_ptr<Stream>& stream : closing_) Close(*stream);
  for (cuda::CUevent event : spare_events_) driver_.EventDestroy(event);
  if (context_ != nullptr) driver_.PrimaryCtxRelease(device_.device);
}

void CudaDevice::Load(const base::Digest& digest, LoadCallback done) {
  source_->Fetch(digest, [this, digest, done = std::move(done)](
                             absl::StatusOr<executable::Executable> executable) {
    if (!executable.ok()) return done(executable.status());
    if (executable->arch != device_.info.arch) {
      return done(absl::FailedPreconditionError(absl::StrCat(
          "executable is for ", executable->arch, ", this device is ", device_.info.arch)));
    }
    const LaunchShape shape = ShapeOfLaunch(*executable);
    uint64_t code_bytes = 0;
    for (const executable::Image& image : executable->images) code_bytes += image.cubin.size();
    absl::StatusOr<std::unique_ptr<cuda::LoadedExecutable>> loaded =
        cuda::LoadedExecutable::Load(driver_, *std::move(executable), device_.info.sm_count);
    if (!loaded.ok()) {
      const absl::Status failed = driver_.WithMemory(loaded.status(), code_bytes);
      done(failed);
      if (absl::IsAborted(failed)) Lose(failed);
      return;
    }
    done(std::static_pointer_cast<channel::SessionExecutable>(
        std::make_shared<GpuExecutable>(digest, *std::move(loaded), shape)));
  });
}

absl::StatusOr<std::shared_ptr<channel::SessionBuffer>> CudaDevice::MapDeviceMemory(
    cuda::CUmemGenericAllocationHandle handle, uint64_t mapped_bytes, uint64_t bytes) {
  CUdeviceptr address = 0;
  FUSIOND_RETURN_IF_ERROR(driver_.ToStatus(
      driver_.MemAddressReserve(&address, mapped_bytes, 0, 0, 0), "cuMemAddressReserve"));
  absl::Status status =
      driver_.ToStatus(driver_.MemMap(address, mapped_bytes, 0, handle, 0), "cuMemMap");
  if (!status.ok()) {
    driver_.MemAddressFree(address, mapped_bytes);
    return status;
  }
  auto buffer =
      std::make_shared<DeviceBuffer>(driver_, address, mapped_bytes, bytes);  // unmaps from here on
  const cuda::CUmemAccessDesc access{{cuda::kLocationDevice, device_.device},
                                     cuda::kAccessReadWrite};
  FUSIOND_RETURN_IF_ERROR(
      driver_.ToStatus(driver_.MemSetAccess(address, mapped_bytes, &access, 1), "cuMemSetAccess"));
  return std::static_pointer_cast<channel::SessionBuffer>(buffer);
}

absl::StatusOr<channel::AllocatedBuffer> CudaDevice::Allocate(uint64_t bytes, MemoryKind kind) {
  if (kind == MemoryKind::kHost) return AllocateHost(*options_.host_memory, bytes);
  if (device_.memory_granularity == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        device_.name, " cannot export memory as a descriptor; launch locally from a lease"));
  }
  const auto granularity = static_cast<uint64_t>(device_.memory_granularity);
  if (bytes > static_cast<uint64_t>(device_.memory_bytes)) {
    return driver_.WithMemory(absl::ResourceExhaustedError("device memory"), bytes);
  }
  const uint64_t mapped_bytes = (bytes + granularity - 1) / granularity * granularity;
  const cuda::CUmemAllocationProp properties = DeviceMemory(device_.device);
  cuda::CUmemGenericAllocationHandle handle;
  FUSIOND_RETURN_IF_ERROR(driver_.WithMemory(
      driver_.ToStatus(driver_.MemCreate(&handle, mapped_bytes, &properties, 0), "device memory"),
      mapped_bytes));
  channel::AllocatedBuffer allocated;
  allocated.kind = MemoryKind::kDevice;
  absl::Status status = [&]() -> absl::Status {
    FUSIOND_ASSIGN_OR_RETURN(allocated.buffer, MapDeviceMemory(handle, mapped_bytes, bytes));
    int fd = -1;
    FUSIOND_RETURN_IF_ERROR(
        driver_.ToStatus(driver_.MemExportToShareableHandle(&fd, handle, cuda::kHandlePosixFd, 0),
                         "cuMemExportToShareableHandle"));
    allocated.fd.reset(fd);
    // Fresh pages may hold another tenant's data.
    const CUdeviceptr address = static_cast<DeviceBuffer&>(*allocated.buffer).address();
    FUSIOND_RETURN_IF_ERROR(
        driver_.ToStatus(driver_.MemsetD8Async(address, 0, mapped_bytes, nullptr), "clear memory"));
    return driver_.ToStatus(driver_.StreamSynchronize(nullptr), "clear memory");
  }();
  driver_.MemRelease(handle);  // mapping and descriptor keep the memory
  if (!status.ok()) return driver_.WithMemory(status, mapped_bytes);
  return allocated;
}

absl::StatusOr<std::shared_ptr<channel::SessionBuffer>> CudaDevice::Import(base::UniqueFd fd,
                                                                           uint64_t bytes,
                                                                           MemoryKind kind) {
  if (kind == MemoryKind::kHost) return ImportHost(std::move(fd), bytes);
  const auto granularity = static_cast<uint64_t>(std::max<int64_t>(device_.memory_granularity, 1));
  if (bytes % granularity != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("import: size must be a multiple of ", granularity, " bytes, is ", bytes));
  }
  cuda::CUmemGenericAllocationHandle handle;
  FUSIOND_RETURN_IF_ERROR(driver_.WithMemory(
      driver_.ToStatus(driver_.MemImportFromShareableHandle(
                           &handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd.get())),
                           cuda::kHandlePosixFd),
                       "cuMemImportFromShareableHandle"),
      bytes));
  absl::StatusOr<std::shared_ptr<channel::SessionBuffer>> buffer =
      MapDeviceMemory(handle, bytes, bytes);
  driver_.MemRelease(handle);
  if (!buffer.ok()) return driver_.WithMemory(buffer.status(), bytes);
  return buffer;
}

absl::StatusOr<CudaDevice::Stream*> CudaDevice::StreamFor(const channel::StreamKey& key) {
  std::unique_ptr<Stream>& slot = streams_[key];
  if (slot == nullptr) {
    auto stream = std::make_unique<Stream>();
    absl::Status status = driver_.ToStatus(
        driver_.StreamCreate(&stream->stream, cuda::kStreamNonBlocking), "cuStreamCreate");
    if (!status.ok()) {
      streams_.erase(key);
      return status;
    }
    slot = std::move(stream);
  }
  return slot.get();
}

absl::Status CudaDevice::ReserveWorkspace(Stream& stream, uint64_t bytes) {
  if (bytes <= stream.workspace_bytes) return absl::OkStatus();
  if (stream.workspace != 0) {
    stream.outgrown.push_back(std::exchange(stream.workspace, 0));
    stream.workspace_bytes = 0;
    if (stream.in_flight.empty()) FreeOutgrown(stream);
  }
  FUSIOND_RETURN_IF_ERROR(driver_.WithMemory(
      driver_.ToStatus(driver_.MemAlloc(&stream.workspace, bytes), "workspace"), bytes));
  stream.workspace_bytes = bytes;
  return absl::OkStatus();
}

absl::StatusOr<cuda::CUevent> CudaDevice::TakeEvent() {
  if (!spare_events_.empty()) {
    cuda::CUevent event = spare_events_.back();
    spare_events_.pop_back();
    return event;
  }
  cuda::CUevent event = nullptr;
  FUSIOND_RETURN_IF_ERROR(
      driver_.ToStatus(driver_.EventCreate(&event, cuda::kEventDefault), "cuEventCreate"));
  return event;
}

absl::Status CudaDevice::TakeEvents(Work& work) {
  FUSIOND_ASSIGN_OR_RETURN(work.end, TakeEvent());
  if (!work.ticket.timed()) return absl::OkStatus();
  absl::StatusOr<cuda::CUevent> start = TakeEvent();
  if (start.ok()) {
    work.start = *start;
  } else {
    spare_events_.push_back(work.end);
  }
  return start.status();
}

void CudaDevice::Run(const channel::StreamKey& key, channel::Ticket ticket, uint64_t deadline_ns,
                     const base::Digest* executable,
                     absl::InlinedVector<std::shared_ptr<void>, 8> keep,
                     const std::function<absl::Status(Stream&)>& enqueue) {
  absl::StatusOr<Stream*> found = StreamFor(key);
  if (!found.ok()) return Fail(std::move(ticket), found.status());
  Stream& stream = **found;
  if (stream.in_flight.size() >= kMaxInFlight) {
    Outcome full;
    full.code = CompletionCode::kResourceExhausted;
    full.reason = CompletionReason::kQueue;
    full.limit = kMaxInFlight;
    full.actual = stream.in_flight.size() + 1;
    return ticket.Finish(full);
  }
  Work work{std::move(ticket), nullptr,    nullptr,         NowNs(),
            deadline_ns,       executable, std::move(keep), {}};
  absl::Status status = TakeEvents(work);
  if (!status.ok()) return Fail(std::move(work.ticket), status);
  if (work.start != nullptr)
    status = driver_.ToStatus(driver_.EventRecord(work.start, stream.stream), "cuEventRecord");
  if (status.ok()) status = enqueue(stream);
  if (!status.ok()) work.failure = OutcomeFromStatus(driver_.WithMemory(status, 0));
  // After a failure too: what was enqueued before it may still run, and holds its memory until the
  // stream has come here.
  const absl::Status marked =
      driver_.ToStatus(driver_.EventRecord(work.end, stream.stream), "cuEventRecord");
  if (absl::IsAborted(status) || !marked.ok()) {
    Fail(std::move(work.ticket), status.ok() ? marked : status);
    held_.push_back(std::move(work));
    return;
  }
  ++in_flight_;
  if (stream.in_flight.empty()) stream.first_since_ns = work.started_ns;
  stream.in_flight.push_back(std::move(work));
  watch_.Expect(std::min(watch_.expected_ns(), HungAt(stream)));
}

void CudaDevice::Launch(const channel::LaunchRequest& request, channel::Ticket ticket) {
  auto& executable = static_cast<GpuExecutable&>(*request.executable);
  std::vector<TensorMemory> tensors;
  absl::InlinedVector<std::shared_ptr<void>, 8> keep{executable.shared_from_this()};
  for (size_t i = 0; i < request.tensors.size(); ++i) {
    auto* buffer = dynamic_cast<DeviceBuffer*>(request.tensors[i].buffer);
    if (buffer == nullptr) {
      Outcome outcome;
      outcome.code = CompletionCode::kFailedPrecondition;
      outcome.reason = CompletionReason::kBuffer;
      outcome.index = static_cast<uint32_t>(i);
      return ticket.Finish(outcome);
    }
    tensors.push_back({buffer->address(), buffer->bytes(), request.tensors[i].offset, buffer});
    keep.push_back(buffer->shared_from_this());
  }
  BoundLaunch bound;
  Outcome outcome = BindLaunch(executable.loaded->executable(), device_.info.sm_count, tensors,
                               request.extents, bound);
  if (!outcome.ok()) return ticket.Finish(outcome);
  Run(request.stream, std::move(ticket), request.deadline_ns, &executable.digest, std::move(keep),
      [&](Stream& stream) -> absl::Status {
        FUSIOND_ASSIGN_OR_RETURN(int64_t workspace,
                                 executable.loaded->WorkspaceBytes(bound.inputs));
        FUSIOND_RETURN_IF_ERROR(ReserveWorkspace(stream, static_cast<uint64_t>(workspace)));
        return executable.loaded->Launch(stream.stream, bound.inputs, bound.outputs,
                                         stream.workspace);
      });
}

void CudaDevice::Copy(const channel::CopyRequest& request, channel::Ticket ticket) {
  auto* from_device = dynamic_cast<DeviceBuffer*>(request.source.buffer);
  auto* to_device = dynamic_cast<DeviceBuffer*>(request.destination.buffer);
  auto* from_host = dynamic_cast<HostBuffer*>(request.source.buffer);
  auto* to_host = dynamic_cast<HostBuffer*>(request.destination.buffer);
  absl::InlinedVector<std::shared_ptr<void>, 8> keep{
      request.source.buffer->shared_from_this(), request.destination.buffer->shared_from_this()};
  Run(request.stream, std::move(ticket), request.deadline_ns, nullptr, std::move(keep),
      [&](Stream& stream) -> absl::Status {
        const uint64_t from = request.source.offset, to = request.destination.offset;
        cuda::CUresult result = cuda::kSuccess;
        if (from_device != nullptr && to_device != nullptr) {
          result = driver_.MemcpyDtoDAsync(to_device->address() + to, from_device->address() + from,
                                           request.bytes, stream.stream);
        } else if (from_host != nullptr && to_device != nullptr) {
          result = driver_.MemcpyHtoDAsync(to_device->address() + to, from_host->data() + from,
                                           request.bytes, stream.stream);
        } else if (from_device != nullptr && to_host != nullptr) {
          result = driver_.MemcpyDtoHAsync(to_host->data() + to, from_device->address() + from,
                                           request.bytes, stream.stream);
        } else {
          return absl::UnimplementedError(
              "copy between two host buffers: the client maps both, it copies itself");
        }
        return driver_.ToStatus(result, "copy");
      });
}

std::string CudaDevice::NameOf(const Work& work) {
  return work.executable == nullptr ? "a copy"
                                    : absl::StrCat("executable ", work.executable->Hex());
}

void CudaDevice::Finish(Work& work) {
  Outcome outcome = work.failure;
  outcome.queue_ns =
      static_cast<uint64_t>(std::max<int64_t>(0, work.started_ns - work.ticket.taken_ns()));
  float ms = 0;
  if (outcome.ok() && work.start != nullptr &&
      driver_.EventElapsedTime(&ms, work.start, work.end) == cuda::kSuccess) {
    outcome.device_ns = static_cast<uint64_t>(ms * 1e6f);
  }
  work.ticket.Finish(outcome);
  if (work.start != nullptr) spare_events_.push_back(work.start);
  spare_events_.push_back(work.end);
}

absl::Duration CudaDevice::Poll() {
  if (lost_ || in_flight_ == 0) return absl::InfiniteDuration();
  for (auto& [key, stream] : streams_) {
    if (!PollStream(*stream)) return absl::InfiniteDuration();
  }
  for (size_t i = closing_.size(); i-- > 0;) {
    if (!PollStream(*closing_[i])) return absl::InfiniteDuration();
    if (!closing_[i]->in_flight.empty()) continue;
    Close(*closing_[i]);
    closing_.erase(closing_.begin() + static_cast<ptrdiff_t>(i));
  }
  int64_t hung_at_ns = HangWatch::kNever;
  for (const auto& [key, stream] : streams_) hung_at_ns = std::min(hung_at_ns, HungAt(*stream));
  for (const auto& stream : closing_) hung_at_ns = std::min(hung_at_ns, HungAt(*stream));
  watch_.Expect(hung_at_ns);
  return in_flight_ == 0 ? absl::InfiniteDuration() : kPollAgain;
}

bool CudaDevice::PollStream(Stream& stream) {
  while (!stream.in_flight.empty()) {
    Work& work = stream.in_flight.front();
    const cuda::CUresult result = driver_.EventQuery(work.end);
    const int64_t hung_at_ns = HungAt(stream);
    if (result == cuda::kNotReady && (hung_at_ns == HangWatch::kNever || NowNs() <= hung_at_ns))
      return true;
    if (result == cuda::kNotReady) {
      const std::string text = absl::StrCat("hung: ", NameOf(work), " did not end ",
                                            absl::FormatDuration(absl::Nanoseconds(hung_after_ns_)),
                                            " after its deadline");
      Outcome outcome;
      outcome.code = CompletionCode::kDeadlineExceeded;
      outcome.reason = CompletionReason::kDeadline;
      outcome.limit = work.deadline_ns;
      outcome.actual = static_cast<uint64_t>(NowNs());
      work.ticket.Finish(outcome);
      held_.push_back(std::move(work));
      stream.in_flight.pop_front();
      Lose(absl::AbortedError(text));
      return false;
    }
    if (result != cuda::kSuccess) {
      Lose(driver_.ToStatus(result, "launch"));
      return false;
    }
    Finish(work);
    stream.in_flight.pop_front();
    stream.first_since_ns = NowNs();
    --in_flight_;
  }
  FreeOutgrown(stream);
  return true;
}

int64_t CudaDevice::HungAt(const Stream& stream) const {
  if (stream.in_flight.empty() || stream.in_flight.front().deadline_ns == 0)
    return HangWatch::kNever;
  // A client may write any deadline.
  const uint64_t from =
      std::max(stream.in_flight.front().deadline_ns, static_cast<uint64_t>(stream.first_since_ns));
  const auto latest = static_cast<uint64_t>(HangWatch::kNever - hung_after_ns_);
  return from >= latest ? HangWatch::kNever : static_cast<int64_t>(from) + hung_after_ns_;
}

void CudaDevice::FreeOutgrown(Stream& stream) {
  for (CUdeviceptr workspace : stream.outgrown) driver_.MemFree(workspace);
  stream.outgrown.clear();
}

void CudaDevice::Close(Stream& stream) {
  driver_.StreamSynchronize(stream.stream);
  in_flight_ -= stream.in_flight.size();
  for (Work& work : stream.in_flight) Finish(work);
  stream.in_flight.clear();
  FreeOutgrown(stream);
  if (stream.workspace != 0) driver_.MemFree(stream.workspace);
  driver_.StreamDestroy(stream.stream);
}

void CudaDevice::ForgetRing(uint64_t ring) {
  for (auto it = streams_.begin(); it != streams_.end();) {
    auto here = it++;
    if (here->first.ring != ring || lost_) continue;
    if (here->second->in_flight.empty()) {
      Close(*here->second);
    } else {
      closing_.push_back(std::move(here->second));
    }
    streams_.erase(here);
  }
}

void CudaDevice::Fail(channel::Ticket ticket, const absl::Status& status) {
  ticket.Finish(OutcomeFromStatus(driver_.WithMemory(status, 0)));
  if (absl::IsAborted(status)) Lose(status);
}

void CudaDevice::Lose(const absl::Status& status) {
  if (std::exchange(lost_, true)) return;
  watch_.Expect(HangWatch::kNever);
  Outcome outcome;
  outcome.code = CompletionCode::kContextLost;
  const std::optional<uint64_t> result = base::NumberOf(status, cuda::kResultNumber);
  outcome.reason = result ? CompletionReason::kDevice : CompletionReason::kDropped;
  outcome.actual = result.value_or(0);
  std::vector<std::string> running;  // the first of each stream: one of them is to blame
  const auto lose = [&](Stream& stream) {
    outcome.index = 0;
    if (!stream.in_flight.empty()) running.push_back(NameOf(stream.in_flight.front()));
    for (Work& work : stream.in_flight) {
      work.ticket.Finish(outcome);
      ++outcome.index;
      held_.push_back(std::move(work));
    }
    stream.in_flight.clear();
  };
  for (auto& [key, stream] : streams_) lose(*stream);
  for (const std::unique_ptr<Stream>& stream : closing_) lose(*stream);
  in_flight_ = 0;
  options_.on_lost(absl::Status(
      status.code(), absl::StrCat(status.message(), "; running: ",
                                  running.empty() ? "nothing" : absl::StrJoin(running, ", "))));
}

}  // namespace fusiond::worker
