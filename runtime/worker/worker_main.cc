#include "runtime/worker/worker_main.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/channel/socket.h"
#include "runtime/channel/worker_loop.h"
#include "runtime/cuda/driver.h"
#include "runtime/worker/cpu_device.h"
#include "runtime/worker/cuda_device.h"
#include "runtime/worker/executable_source.h"

namespace fusiond::worker {
namespace {

// A timer that fires every `period`.
absl::StatusOr<base::UniqueFd> PeriodicTimer(absl::Duration period) {
  base::UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) return base::ErrnoStatus(errno, "timerfd_create");
  itimerspec spec{};
  spec.it_value = spec.it_interval = absl::ToTimespec(period);
  if (timerfd_settime(timer.get(), 0, &spec, nullptr) != 0)
    return base::ErrnoStatus(errno, "timerfd_settime");
  return timer;
}

struct OpenedDevice {
  std::unique_ptr<channel::Device> device;
  CpuDevice* cpu = nullptr;  // where its ready_fd must be watched
};

absl::StatusOr<OpenedDevice> OpenDevice(const WorkerOptions& options, ExecutableSource* source,
                                        CudaDeviceOptions cuda_options) {
  OpenedDevice opened;
  if (options.device == "cpu") {
    FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<CpuDevice> cpu,
                             CpuDevice::Create(source, cuda_options.host_memory));
    opened.cpu = cpu.get();
    opened.device = std::move(cpu);
    return opened;
  }
  // Lazy loading would load code at a first launch, behind whatever the GPU is doing.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  FUSIOND_ASSIGN_OR_RETURN(const cuda::Driver* driver, cuda::Driver::Open(options.driver_path));
  FUSIOND_ASSIGN_OR_RETURN(
      opened.device, CudaDevice::Create(*driver, options.device, source, std::move(cuda_options)));
  return opened;
}

}  // namespace

absl::Status RunWorker(WorkerOptions options) {
  SupervisorSource source(std::move(options.fetch_socket));
  channel::WorkerLoop* loop_for_loss = nullptr;
  HostMemory host_memory(options.host_memory_bytes);
  CudaDeviceOptions cuda_options;
  cuda_options.host_memory = &host_memory;
  cuda_options.on_lost = [&](absl::Status why) {
    options.log("error", absl::StrCat("context lost: ", why.message()));
    loop_for_loss->Lose(std::move(why));
  };
  cuda_options.on_stuck = [&] {
    options.give_up(absl::AbortedError(
        "hung: a launch did not end after its deadline, and the driver does not return"));
  };
  FUSIOND_ASSIGN_OR_RETURN(OpenedDevice opened,
                           OpenDevice(options, &source, std::move(cuda_options)));
  channel::WorkerLoopOptions loop_options;
  loop_options.on_session_end = [&](const absl::Status& why) {
    if (why.ok()) return options.log("debug", "session ended");
    options.log("warning", absl::StrCat("session ended: ",
                                        why.ToString(absl::StatusToStringMode::kWithNoExtraData)));
  };
  FUSIOND_ASSIGN_OR_RETURN(
      std::unique_ptr<channel::WorkerLoop> loop,
      channel::WorkerLoop::Create(opened.device.get(), std::move(loop_options)));
  loop_for_loss = loop.get();

  const int adopt = options.adopt_socket.get();
  FUSIOND_RETURN_IF_ERROR(loop->Watch(adopt, [&] {
    absl::Status status = loop->AdoptFrom(adopt);
    if (absl::IsUnavailable(status) && channel::HasHungUp(adopt)) {
      return loop->Stop();  // the supervisor is gone, and not only the client it sent
    }
    if (!status.ok())
      options.log("warning", absl::StrCat("connection refused: ", status.message()));
  }));
  FUSIOND_RETURN_IF_ERROR(loop->Watch(source.fd(), [&] { source.OnReadable(); }));
  if (opened.cpu != nullptr) {
    FUSIOND_RETURN_IF_ERROR(loop->Watch(opened.cpu->ready_fd(), [&] { opened.cpu->Poll(); }));
  }
  if (options.drain_fd >= 0) {
    FUSIOND_RETURN_IF_ERROR(loop->Watch(options.drain_fd, [&] {
      char taken[128];  // a signalfd_siginfo, so that the descriptor is not readable any more
      [[maybe_unused]] const ssize_t read = ::read(options.drain_fd, taken, sizeof(taken));
      loop->Drain(options.drain_grace);
    }));
  }
  FUSIOND_ASSIGN_OR_RETURN(base::UniqueFd timer, PeriodicTimer(options.idle_exit));
  bool idle = false;  // no session at the last tick either: idle for a whole period
  FUSIOND_RETURN_IF_ERROR(loop->Watch(timer.get(), [&] {
    uint64_t ticks;
    [[maybe_unused]] const ssize_t read = ::read(timer.get(), &ticks, sizeof(ticks));
    if (loop->sessions() == 0 && idle) loop->Stop();
    idle = loop->sessions() == 0;
  }));
  FUSIOND_RETURN_IF_ERROR(options.before_serving());
  absl::Status ended = loop->Run();
  if (opened.cpu == nullptr) {
    // The process ends now. Taking apart what a GPU works on waits for it, which may be for ever.
    static_cast<void>(loop.release());
    static_cast<void>(opened.device.release());
  }
  return ended;
}

}  // namespace fusiond::worker
