#include "server/devices/registry.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace fusiond::server {
namespace {

constexpr char kUuidPrefix[] = "GPU-";

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
                                                        bool probed, const std::string& uuid) {
  for (const v1::DevicesResponse::Device& device : devices.devices()) {
    if (device.uuid() != uuid) continue;
    if (device.problem().empty()) return &device;
    return absl::FailedPreconditionError(absl::StrCat("device ", uuid, ": ", device.problem()));
  }
  if (!probed) return absl::UnavailableError("the devices of this host are still being probed");
  return absl::NotFoundError(
      absl::StrCat("no device ", absl::CEscape(uuid), " here; there are: ", Uuids(devices)));
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
    FUSIOND_ASSIGN_OR_RETURN(const v1::DevicesResponse::Device* device,
                             Find(devices_, probed_, target));
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
  return Find(devices_, probed_, uuid).status();
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
  probed_ = true;
  *devices_.add_devices() = CpuDevice();
}

}  // namespace fusiond::server
