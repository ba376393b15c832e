// DeviceRegistry: the devices of this host as the last probe saw them, and what a request's target
// names.
//
// The CPU device is always there; GPUs come from probes (prober.h).
//
// Thread-safety: thread-safe.
#ifndef FUSIOND_SERVER_DEVICES_REGISTRY_H_
#define FUSIOND_SERVER_DEVICES_REGISTRY_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/fusiond/v1/service.pb.h"
#include "runtime/base/mutex.h"
#include "runtime/executable/device_info.h"

namespace fusiond::server {

class DeviceRegistry {
 public:
  DeviceRegistry();

  // "cpu", an arch, a profile, or the UUID of a device here (its profile and its own SM count do
  // not enter keys). NOT_FOUND lists what is known; FAILED_PRECONDITION says why a device cannot be
  // used; UNAVAILABLE for a UUID before the first probe.
  absl::StatusOr<executable::DeviceInfo> Resolve(const std::string& target) const;
  // The UUID of the first usable device of `arch`; "cpu" for arch cpu. FAILED_PRECONDITION when
  // there is none.
  absl::StatusOr<std::string> DeviceOfArch(const std::string& arch) const;
  // OK when `uuid` is "cpu" or a usable device; NOT_FOUND or FAILED_PRECONDITION otherwise,
  // UNAVAILABLE before the first probe.
  absl::Status CheckDevice(const std::string& uuid) const;

  v1::DevicesResponse Get() const;
  bool HasGpu() const;
  // Takes over what a probe found; `problem` when it found nothing or failed.
  void Update(const v1::DevicesResponse& probed);

 private:
  mutable base::Mutex mutex_;
  v1::DevicesResponse devices_ ABSL_GUARDED_BY(mutex_);
  bool probed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_DEVICES_REGISTRY_H_
