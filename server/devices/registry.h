// DeviceRegistry: the devices of this host as the last probe saw them, and what a request's target
// names.
//
// The supervisor makes no CUDA call: a probe is a child process (`fusiond --role=worker --probe`)
// that prints a serialised v1::DevicesResponse and exits. The CPU device is always there.
//
// Thread-safety: thread-safe.
#ifndef FUSIOND_SERVER_DEVICES_REGISTRY_H_
#define FUSIOND_SERVER_DEVICES_REGISTRY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/fusiond/v1/service.pb.h"
#include "runtime/base/mutex.h"
#include "runtime/executable/device_info.h"

namespace fusiond::server {

class DeviceRegistry {
 public:
  DeviceRegistry();

  // "cpu", an arch, a profile, or the UUID of a device here (its profile and its own SM count do
  // not enter keys). NOT_FOUND lists what is known; FAILED_PRECONDITION says why a device cannot be
  // used.
  absl::StatusOr<executable::DeviceInfo> Resolve(const std::string& target) const;
  // The UUID of the first usable device of `arch`; "cpu" for arch cpu. FAILED_PRECONDITION when
  // there is none.
  absl::StatusOr<std::string> DeviceOfArch(const std::string& arch) const;
  // OK when `uuid` is "cpu" or a usable device; NOT_FOUND or FAILED_PRECONDITION otherwise.
  absl::Status CheckDevice(const std::string& uuid) const;

  v1::DevicesResponse Get() const;
  bool HasGpu() const;
  // Takes over what a probe found; `problem` when it found nothing or failed.
  void Update(const v1::DevicesResponse& probed);

 private:
  mutable base::Mutex mutex_;
  v1::DevicesResponse devices_ ABSL_GUARDED_BY(mutex_);
};

// Runs a probe and waits for it. UNAVAILABLE when it does not start, crashes or takes longer than
// `timeout`.
absl::StatusOr<v1::DevicesResponse> RunProbe(const std::vector<std::string>& environment,
                                             const std::string& driver_path,
                                             absl::Duration timeout);
// The probe's own side: what this process sees, also when that is nothing.
v1::DevicesResponse ProbeHere(const std::string& driver_path);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_DEVICES_REGISTRY_H_
