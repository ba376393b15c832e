#include "runtime/cuda/probe.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusiond::cuda {
namespace {

absl::StatusOr<int> Attribute(const Driver& driver, int attribute, CUdevice device) {
  int value = 0;
  FUSIOND_RETURN_IF_ERROR(driver.ToStatus(driver.DeviceGetAttribute(&value, attribute, device),
                                          absl::StrCat("cuDeviceGetAttribute ", attribute)));
  return value;
}

absl::Status Fill(const Driver& driver, ProbedDevice& probed) {
  CUuuid uuid;
  FUSIOND_RETURN_IF_ERROR(
      driver.ToStatus(driver.DeviceGetUuid(&uuid, probed.device), "cuDeviceGetUuid"));
  probed.uuid = UuidToString(uuid);
  char name[128] = {};
  FUSIOND_RETURN_IF_ERROR(driver.ToStatus(
      driver.DeviceGetName(name, sizeof(name) - 1, probed.device), "cuDeviceGetName"));
  probed.name = name;
  size_t bytes = 0;
  FUSIOND_RETURN_IF_ERROR(
      driver.ToStatus(driver.DeviceTotalMem(&bytes, probed.device), "cuDeviceTotalMem"));
  probed.memory_bytes = static_cast<int64_t>(bytes);
  FUSIOND_ASSIGN_OR_RETURN(int major, Attribute(driver, kAttributeCcMajor, probed.device));
  FUSIOND_ASSIGN_OR_RETURN(int minor, Attribute(driver, kAttributeCcMinor, probed.device));
  probed.compute_capability = 10 * major + minor;
  FUSIOND_ASSIGN_OR_RETURN(int vmm, Attribute(driver, kAttributeVmm, probed.device));
  FUSIOND_ASSIGN_OR_RETURN(int posix_fd, Attribute(driver, kAttributePosixFd, probed.device));
  if (vmm != 0 && posix_fd != 0) probed.memory_granularity = int64_t{2} << 20;
  absl::StatusOr<executable::DeviceInfo> info =
      executable::ProfileForCard(probed.name, probed.compute_capability);
  if (!info.ok()) {
    probed.problem = std::string(info.status().message());
    return absl::OkStatus();
  }
  probed.info = *std::move(info);
  // MIG instances and cut-down cards have fewer SMs than their profile.
  FUSIOND_ASSIGN_OR_RETURN(probed.info.sm_count,
                           Attribute(driver, kAttributeSmCount, probed.device));
  return absl::OkStatus();
}

}  // namespace

std::string UuidToString(const CUuuid& uuid) {
  const std::string hex = absl::BytesToHexString(absl::string_view(uuid.bytes, sizeof(uuid.bytes)));
  return absl::StrCat("GPU-", hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

absl::StatusOr<std::vector<ProbedDevice>> Probe(const Driver& driver) {
  int count = 0;
  FUSIOND_RETURN_IF_ERROR(driver.ToStatus(driver.DeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<ProbedDevice> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    ProbedDevice probed;
    absl::Status status = driver.ToStatus(driver.DeviceGet(&probed.device, ordinal), "cuDeviceGet");
    if (status.ok()) status = Fill(driver, probed);
    if (!status.ok()) probed.problem = std::string(status.message());
    devices.push_back(std::move(probed));
  }
  return devices;
}

}  // namespace fusiond::cuda
