#include "server/devices/prober.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/framing.h"
#include "runtime/base/status_macros.h"
#include "runtime/channel/socket.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/probe.h"
#include "server/process/child_process.h"

namespace fusiond::server {
namespace {

constexpr uint32_t kMaxAnswerBytes = 1 << 20;
constexpr absl::Duration kEndsWithin = absl::Seconds(1);  // a process that has hung up

absl::Duration Now() { return base::Clock::System().Now(); }

int PollMilliseconds(absl::Duration wait) {
  const absl::Duration rounded = absl::Ceil(wait, absl::Milliseconds(1));
  return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(rounded), 0, 3'600'000));
}

void Signal(int eventfd) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(eventfd, &one, sizeof(one));
}

// One frame from a non-blocking socket.
absl::StatusOr<std::string> ReadAnswer(int socket, absl::Duration deadline, int stop) {
  base::FrameDecoder decoder(kMaxAnswerBytes);
  while (true) {
    FUSIOND_ASSIGN_OR_RETURN(std::optional<std::string> frame, decoder.Next());
    if (frame.has_value()) return *std::move(frame);
    pollfd fds[] = {{socket, POLLIN, 0}, {stop, POLLIN, 0}};
    ::poll(fds, 2, PollMilliseconds(deadline - Now()));
    if (fds[1].revents != 0) return absl::UnavailableError("the daemon stops");
    if (fds[0].revents == 0 && Now() >= deadline)
      return absl::UnavailableError("it takes too long");
    char buffer[4096];
    const ssize_t n = ::recv(socket, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n == 0) return absl::UnavailableError("it ended without one");
    if (n > 0) decoder.Append({buffer, static_cast<size_t>(n)});
    if (n < 0 && errno != EAGAIN && errno != EINTR) return base::ErrnoStatus(errno, "receive");
  }
}

// Of a child that has hung up, or will be killed: ", killed by signal 11 (SEGV)"; empty while it
// runs.
std::string HowEnded(ChildProcess& child) {
  pollfd ended{child.pidfd(), POLLIN, 0};
  if (channel::HasHungUp(child.socket())) ::poll(&ended, 1, PollMilliseconds(kEndsWithin));
  const std::optional<ExitStatus> exit = child.Reap();
  return exit.has_value() ? absl::StrCat(", ", exit->ToString()) : "";
}

}  // namespace

absl::StatusOr<v1::DevicesResponse> RunProbe(const ProberOptions& options, int stop) {
  SpawnOptions spawn;
  spawn.arguments = {"--role=worker", "--probe"};
  if (!options.driver_path.empty())
    spawn.arguments.push_back(absl::StrCat("--driver=", options.driver_path));
  spawn.environment = options.environment;
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child, ChildProcess::Spawn(spawn));
  absl::StatusOr<std::string> bytes = ReadAnswer(child->socket(), Now() + options.timeout, stop);
  if (!bytes.ok()) {
    return absl::UnavailableError(absl::StrCat(
        "the device probe gave no answer: ", bytes.status().message(), HowEnded(*child)));
  }
  v1::DevicesResponse response;
  if (!response.ParseFromString(*bytes))
    return absl::UnavailableError("the device probe answered nonsense");
  return response;
}

v1::DevicesResponse ProbeHere(const std::string& driver_path) {
  v1::DevicesResponse response;
  absl::StatusOr<std::vector<cuda::ProbedDevice>> devices =
      [&]() -> absl::StatusOr<std::vector<cuda::ProbedDevice>> {
    FUSIOND_ASSIGN_OR_RETURN(const cuda::Driver* driver, cuda::Driver::Open(driver_path));
    return cuda::Probe(*driver);
  }();
  if (!devices.ok()) {
    response.set_problem(std::string(devices.status().message()));
    return response;
  }
  for (const cuda::ProbedDevice& probed : *devices) {
    v1::DevicesResponse::Device* device = response.add_devices();
    device->set_uuid(probed.uuid);
    device->set_name(probed.name);
    device->set_arch(probed.info.arch);
    device->set_profile(probed.info.profile);
    device->set_default_profile(!probed.info.arch.empty() &&
                                probed.info.profile == probed.info.arch);
    device->set_sm_count(probed.info.sm_count);
    device->set_memory_bytes(probed.memory_bytes);
    device->set_problem(probed.problem);
  }
  if (devices->empty()) response.set_problem("the driver reports no device");
  return response;
}

absl::StatusOr<std::unique_ptr<DeviceProber>> DeviceProber::Start(ProberOptions options,
                                                                  DeviceRegistry* registry) {
  base::UniqueFd asked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  base::UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!asked.valid() || !stop.valid()) return base::ErrnoStatus(errno, "device prober");
  return std::unique_ptr<DeviceProber>(
      new DeviceProber(std::move(options), registry, std::move(asked), std::move(stop)));
}

DeviceProber::DeviceProber(ProberOptions options, DeviceRegistry* registry, base::UniqueFd asked,
                           base::UniqueFd stop)
    : options_(std::move(options)),
      registry_(registry),
      asked_(std::move(asked)),
      stop_(std::move(stop)),
      thread_([this] { Loop(); }) {}

DeviceProber::~DeviceProber() {
  Signal(stop_.get());
  thread_.join();
}

void DeviceProber::ProbeAgain() { Signal(asked_.get()); }

v1::DevicesResponse DeviceProber::Probe() {
  absl::StatusOr<v1::DevicesResponse> probed = RunProbe(options_, stop_.get());
  if (probed.ok()) return *std::move(probed);
  v1::DevicesResponse nothing;
  nothing.set_problem(std::string(probed.status().message()));
  return nothing;
}

void DeviceProber::Loop() {
  std::string said;
  absl::Duration pause = options_.again;
  while (true) {
    const v1::DevicesResponse devices = Probe();
    pollfd fds[] = {{stop_.get(), POLLIN, 0}, {asked_.get(), POLLIN, 0}};
    ::poll(fds, 1, 0);
    if (fds[0].revents != 0) return;
    registry_->Update(devices);
    const std::string now_said = devices.devices_size() == 0
                                     ? absl::StrCat("no GPU: ", devices.problem())
                                     : absl::StrCat("GPUs: ", devices.devices_size());
    if (now_said != said) options_.log(now_said);
    said = now_said;
    options_.on_probed();
    ::poll(fds, 2, registry_->HasGpu() ? -1 : PollMilliseconds(pause));
    if (fds[0].revents != 0) return;
    uint64_t count;
    const bool asked = ::read(asked_.get(), &count, sizeof(count)) == sizeof(count);
    pause = asked ? options_.again : std::min(2 * pause, options_.again_limit);
  }
}

}  // namespace fusiond::server
