#include "server/devices/registry.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/file.h"
#include "runtime/base/framing.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/probe.h"
#include "server/process/child_process.h"

namespace fusiond::server {
namespace {

constexpr char kUuidPrefix[] = "GPU-";
constexpr uint32_t kMaxProbeBytes = 1 << 20;

v1::DevicesResponse::Device CpuDevice() {
  v1::DevicesResponse::Device cpu;
  cpu.set_uuid("cpu");
  cpu.set_name("evaluator");
  cpu.set_arch("cpu");
  cpu.set_profile("cpu");
  cpu.set_sm_count(1);
  return cpu;
}

std::string Uuids(const v1::DevicesResponse& devices) {
  return absl::StrJoin(devices.devices(), ", ",
                       [](std::string* out, const v1::DevicesResponse::Device& device) {
                         out->append(device.uuid());
                       });
}

absl::StatusOr<const v1::DevicesResponse::Device*> Find(const v1::DevicesResponse& devices,
                                                        const std::string& uuid) {
  for (const v1::DevicesResponse::Device& device : devices.devices()) {
    if (device.uuid() != uuid) continue;
    if (device.problem().empty()) return &device;
    return absl::FailedPreconditionError(absl::StrCat("device ", uuid, ": ", device.problem()));
  }
  return absl::NotFoundError(
      absl::StrCat("no device ", uuid, " here; there are: ", Uuids(devices)));
}

}  // namespace

DeviceRegistry::DeviceRegistry() {
  base::MutexLock lock(&mutex_);
  *devices_.add_devices() = CpuDevice();
  devices_.set_problem("not probed yet");
}

absl::StatusOr<executable::DeviceInfo> DeviceRegistry::Resolve(const std::string& target) const {
  if (!absl::StartsWith(target, kUuidPrefix)) return executable::ProfileByName(target);
  std::string profile;
  {
    base::MutexLock lock(&mutex_);
    FUSIOND_ASSIGN_OR_RETURN(const v1::DevicesResponse::Device* device, Find(devices_, target));
    profile = device->profile();
  }
  return executable::ProfileByName(profile);
}

absl::StatusOr<std::string> DeviceRegistry::DeviceOfArch(const std::string& arch) const {
  base::MutexLock lock(&mutex_);
  for (const v1::DevicesResponse::Device& device : devices_.devices()) {
    if (device.arch() == arch && device.problem().empty()) return device.uuid();
  }
  return absl::FailedPreconditionError(absl::StrCat("no usable device of arch ", arch, " here",
                                                    devices_.problem().empty() ? "" : ": ",
                                                    devices_.problem()));
}

absl::Status DeviceRegistry::CheckDevice(const std::string& uuid) const {
  base::MutexLock lock(&mutex_);
  return Find(devices_, uuid).status();
}

v1::DevicesResponse DeviceRegistry::Get() const {
  base::MutexLock lock(&mutex_);
  return devices_;
}

bool DeviceRegistry::HasGpu() const {
  base::MutexLock lock(&mutex_);
  return std::any_of(devices_.devices().begin(), devices_.devices().end(),
                     [](const v1::DevicesResponse::Device& d) {
                       return d.uuid() != "cpu" && d.problem().empty();
                     });
}

void DeviceRegistry::Update(const v1::DevicesResponse& probed) {
  base::MutexLock lock(&mutex_);
  devices_ = probed;
  *devices_.add_devices() = CpuDevice();
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

absl::StatusOr<v1::DevicesResponse> RunProbe(const std::vector<std::string>& environment,
                                             const std::string& driver_path,
                                             absl::Duration timeout) {
  SpawnOptions options;
  options.arguments = {"--role=worker", "--probe"};
  if (!driver_path.empty()) options.arguments.push_back(absl::StrCat("--driver=", driver_path));
  options.environment = environment;
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child, ChildProcess::Spawn(options));
  // Nothing else is done meanwhile, so the socket may block, as long as the answer may take.
  const int flags = ::fcntl(child->socket(), F_GETFL);
  const timeval limit = absl::ToTimeval(timeout);
  if (::fcntl(child->socket(), F_SETFL, flags & ~O_NONBLOCK) != 0 ||
      ::setsockopt(child->socket(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0) {
    return base::ErrnoStatus(errno, "device probe");
  }
  absl::StatusOr<std::string> bytes = base::ReadFrame(child->socket(), kMaxProbeBytes);
  if (!bytes.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the device probe gave no answer: ", bytes.status().message()));
  }
  v1::DevicesResponse response;
  if (!response.ParseFromString(*bytes))
    return absl::UnavailableError("the device probe answered nonsense");
  return response;
}

}  // namespace fusiond::server
