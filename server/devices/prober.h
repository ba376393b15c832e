// DeviceProber: asks, in a child process, which GPUs this host has, and keeps a registry up to
// date.
//
// The supervisor makes no CUDA call: a probe is `fusiond --role=worker --probe`, which answers with
// a serialised v1::DevicesResponse and exits. Probes are made at the start, when asked, and, while
// there is no GPU, again and again, rarer and rarer (a driver that is still loading at boot, F47).
//
// Thread-safety: thread-safe; a thread of its own probes. Ownership: the registry outlives it; the
// destructor ends a running probe and joins.
#ifndef FUSIOND_SERVER_DEVICES_PROBER_H_
#define FUSIOND_SERVER_DEVICES_PROBER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/fusiond/v1/service.pb.h"
#include "runtime/base/file.h"
#include "server/devices/registry.h"

namespace fusiond::server {

struct ProberOptions {
  std::vector<std::string> environment;  // what the CUDA driver reads
  std::string driver_path;               // libcuda; empty = by the loader
  absl::Duration timeout = absl::Seconds(20);
  absl::Duration again = absl::Seconds(2);  // doubles
  absl::Duration again_limit = absl::Minutes(5);
  std::function<void(const std::string&)> log = [](const std::string&) {};  // of changes
  std::function<void()> on_probed = [] {};  // after each update of the registry
};

class DeviceProber {
 public:
  // Begins with a probe. Errors: RESOURCE_EXHAUSTED without descriptors.
  static absl::StatusOr<std::unique_ptr<DeviceProber>> Start(ProberOptions options,
                                                             DeviceRegistry* registry);
  ~DeviceProber();

  // Probes once more, as soon as a running probe is over.
  void ProbeAgain();

 private:
  DeviceProber(ProberOptions options, DeviceRegistry* registry, base::UniqueFd asked,
               base::UniqueFd stop);
  void Loop();
  v1::DevicesResponse Probe();

  const ProberOptions options_;
  DeviceRegistry* const registry_;
  const base::UniqueFd asked_;  // eventfd
  const base::UniqueFd stop_;   // eventfd; never read, so that it stays readable
  std::thread thread_;
};

// Runs a probe and waits for it, at most until `timeout` or until `stop` is readable. UNAVAILABLE
// when it does not start, crashes or is not done in time.
absl::StatusOr<v1::DevicesResponse> RunProbe(const ProberOptions& options, int stop);
// The probe's own side: what this process sees, also when that is nothing.
v1::DevicesResponse ProbeHere(const std::string& driver_path);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_DEVICES_PROBER_H_
