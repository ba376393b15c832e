#include "server/lifecycle/daemon.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"
#include "runtime/channel/socket.h"
#include "server/cache/cache.h"
#include "server/cache/leveldb_store.h"
#include "server/cache/nvrtc_identity.h"
#include "server/channel/channel_server.h"
#include "server/control/control_server.h"
#include "server/devices/registry.h"
#include "server/engine/engine.h"
#include "server/pool/compile_pool.h"
#include "server/pool/host_limits.h"
#include "server/service/inline_executor.h"

namespace fusiond::server {
namespace {

constexpr int kMaxCompileProcesses = 64;
constexpr absl::Duration kProbeTimeout = absl::Seconds(20);
// How long the first requests may have to wait until NVRTC is known; without it their keys would be
// others.
constexpr absl::Duration kNvrtcWait = absl::Seconds(30);
// Without a GPU the probe is repeated, rarer and rarer (a driver that is still loading at boot).
constexpr absl::Duration kProbeAgain = absl::Seconds(2);
constexpr absl::Duration kProbeAgainLimit = absl::Minutes(5);

// Signals by eventfd: each bit of the counter's low half is no event of its own, so two counters
// are used.
class Signal {
 public:
  Signal() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const { return fd_.get(); }
  void Raise() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof(one));
  }
  bool Take() const {
    uint64_t count;
    return ::read(fd_.get(), &count, sizeof(count)) == sizeof(count);
  }

 private:
  const base::UniqueFd fd_;
};

Admission MakeAdmission(const DaemonOptions& options) {
  const uid_t own = ::geteuid();
  return [admit_all = options.admit_all, domain = options.sockets,
          own](const channel::PeerIdentity& peer) -> absl::StatusOr<Identity> {
    if (!admit_all && peer.uid != own) {
      return absl::PermissionDeniedError(
          absl::StrCat("uid ", peer.uid, " is not admitted: this daemon is private to uid ", own));
    }
    return Identity{domain, peer.uid, peer.uid == 0 || peer.uid == own};
  };
}

CompilePoolOptions PoolOptions(const DaemonOptions& options, const LogLine& log) {
  CompilePoolOptions pool;
  pool.setup.set_nvrtc_path(options.nvrtc_path);
  for (const std::string& folder : options.nvrtc_folders) pool.setup.add_nvrtc_folders(folder);
  pool.setup.set_nvrtc_root_owned_only(options.nvrtc_root_owned_only);
  pool.setup.set_memory_limit_bytes(static_cast<uint64_t>(options.compile_memory_bytes));
  pool.processes = options.compile_processes > 0
                       ? options.compile_processes
                       : CompileProcessCount(ReadHostLimits(""),
                                             static_cast<uint64_t>(options.compile_memory_bytes),
                                             kMaxCompileProcesses);
  pool.run_limit = options.compile_limit;
  pool.log = [log](absl::string_view line) { log("warning", std::string(line)); };
  return pool;
}

}  // namespace

// In order of construction; destroyed in reverse.
struct Daemon::Parts {
  DaemonOptions options;
  LogLine log;
  Signal stop, probe;
  DeviceRegistry devices;
  std::unique_ptr<cache::Cache> cache;
  std::unique_ptr<CompilePool> pool;
  std::unique_ptr<PoolJobRunner> runner;
  std::unique_ptr<CompileEngine> engine;
  std::unique_ptr<FusiondLogic> logic;
  CallTracker tracker;
  std::unique_ptr<ChannelServer> channel;
  std::unique_ptr<InlineExecutor> executor;
  std::unique_ptr<ControlServer> control;
  std::string known_nvrtc;
};

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Daemon::~Daemon() {
  // Whatever may still call into the engine goes first.
  if (parts_->control != nullptr) parts_->control->Stop(absl::ZeroDuration());
  if (parts_->channel != nullptr) parts_->channel->Stop();
  if (parts_->pool != nullptr) parts_->pool->Shutdown(absl::ZeroDuration());
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options, LogLine log) {
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  parts->log = log;

  // Sockets first: a second daemon must not get as far as the cache.
  FUSIOND_RETURN_IF_ERROR(base::MakeFolders(options.sockets));
  FUSIOND_ASSIGN_OR_RETURN(
      channel::UnixListener control,
      channel::UnixListener::Listen(absl::StrCat(options.sockets, "/control.sock"), SOCK_STREAM,
                                    options.socket_mode));
  FUSIOND_ASSIGN_OR_RETURN(
      channel::UnixListener channel,
      channel::UnixListener::Listen(absl::StrCat(options.sockets, "/channel.sock"), SOCK_SEQPACKET,
                                    options.socket_mode));

  std::unique_ptr<cache::Store> store;
  if (!options.state.empty()) {
    FUSIOND_RETURN_IF_ERROR(base::MakeFolders(options.state));
    cache::LevelDbStoreOptions store_options;
    store_options.folder = absl::StrCat(options.state, "/cache");
    store_options.allow_network_fs = options.allow_network_fs;
    store_options.log = [log](absl::string_view line) { log("warning", std::string(line)); };
    absl::StatusOr<std::unique_ptr<cache::LevelDbStore>> opened =
        cache::LevelDbStore::Create(std::move(store_options));
    if (absl::IsAlreadyExists(opened.status())) {
      return absl::AbortedError(
          absl::StrCat("state folder ", options.state, ": ", opened.status().message()));
    }
    FUSIOND_RETURN_IF_ERROR(opened.status());
    store = *std::move(opened);
  }
  cache::CacheOptions cache_options;
  cache_options.memory_bytes = static_cast<size_t>(options.cache_memory_bytes);
  parts->cache = std::make_unique<cache::Cache>(cache_options, std::move(store));

  FUSIOND_ASSIGN_OR_RETURN(parts->pool, CompilePool::Create(PoolOptions(options, log)));
  parts->runner = std::make_unique<PoolJobRunner>(parts->pool.get());
  parts->engine =
      std::make_unique<CompileEngine>(EngineOptions(), parts->cache.get(), parts->runner.get());

  const Admission admit = MakeAdmission(options);
  ChannelOptions channel_options;
  channel_options.worker_environment = options.worker_environment;
  channel_options.driver_path = options.driver_path;
  channel_options.log = [log](const std::string& line) { log("info", line); };
  parts->channel = std::make_unique<ChannelServer>(std::move(channel_options), std::move(channel),
                                                   admit, parts->cache.get(), &parts->devices);
  LogicOptions logic_options;
  logic_options.version = options.version;
  logic_options.cache_path = options.state.empty() ? "" : absl::StrCat(options.state, "/cache");
  logic_options.limits = options.limits;
  parts->logic = std::make_unique<FusiondLogic>(
      logic_options, parts->engine.get(), parts->cache.get(), parts->pool.get(), &parts->devices,
      [channel = parts->channel.get()](v1::StatusResponse& status) {
        channel->FillStatus(status);
      });
  parts->executor =
      std::make_unique<InlineExecutor>([channel = parts->channel.get()](const Identity& identity) {
        return channel->ConnectAs(identity);
      });
  parts->control = std::make_unique<ControlServer>(
      ControlOptions(), std::move(control), admit, parts->logic.get(), parts->executor.get(),
      &parts->tracker, [log](const CallRecord& call) {
        log(call.status.ok() ? "info" : "warning",
            absl::StrCat(
                "rpc=", call.rpc, " identity=", call.identity->Name(),
                " code=", absl::StatusCodeToString(call.status.code()),
                call.key.empty() ? "" : " key=", call.key, call.source.empty() ? "" : " source=",
                call.source, " ms=", absl::ToDoubleMilliseconds(call.took),
                call.status.ok() ? "" : absl::StrCat(" error=\"", call.status.message(), "\"")));
      });
  auto daemon = std::unique_ptr<Daemon>(new Daemon(std::move(parts)));
  daemon->FollowNvrtc();
  daemon->ProbeDevices();
  FUSIOND_RETURN_IF_ERROR(daemon->parts_->channel->Start());
  FUSIOND_RETURN_IF_ERROR(daemon->parts_->control->Start());
  return daemon;
}

// Keys name the NVRTC that compiles. Without one the last that was used stands in, so that what it
// compiled is found.
void Daemon::FollowNvrtc() {
  absl::StatusOr<internal::v1::NvrtcInfo> nvrtc = parts_->pool->WaitForNvrtc(kNvrtcWait);
  const std::string& state = parts_->options.state;
  if (nvrtc.ok()) {
    parts_->known_nvrtc = nvrtc->identity();
    parts_->log("info",
                absl::StrCat("NVRTC ", nvrtc->major(), ".", nvrtc->minor(), " at ", nvrtc->path()));
    if (!state.empty()) {
      absl::Status kept = cache::RememberNvrtcIdentity(state, nvrtc->identity());
      if (!kept.ok())
        parts_->log("warning", absl::StrCat("NVRTC's identity is not kept: ", kept.message()));
    }
  } else {
    parts_->log("warning", absl::StrCat("no NVRTC: ", nvrtc.status().message()));
    if (!state.empty()) parts_->known_nvrtc = cache::LastNvrtcIdentity(state).value_or("");
  }
  parts_->logic->SetNvrtc(parts_->known_nvrtc);
}

void Daemon::ProbeDevices() {
  absl::StatusOr<v1::DevicesResponse> probed =
      RunProbe(parts_->options.worker_environment, parts_->options.driver_path, kProbeTimeout);
  v1::DevicesResponse devices;
  if (probed.ok()) {
    devices = *std::move(probed);
  } else {
    devices.set_problem(std::string(probed.status().message()));
  }
  parts_->log("info", devices.devices_size() == 0 ? absl::StrCat("no GPU: ", devices.problem())
                                                  : absl::StrCat("GPUs: ", devices.devices_size()));
  parts_->devices.Update(devices);
}

void Daemon::Run(const std::function<void()>& ready, const std::function<void()>& stopping) {
  ready();
  absl::Duration pause = kProbeAgain;
  absl::Duration next_probe = base::Clock::System().Now() + pause;
  while (true) {
    int timeout_ms = -1;
    if (!parts_->devices.HasGpu()) {
      const absl::Duration left = next_probe - base::Clock::System().Now();
      timeout_ms = static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(left)));
    }
    pollfd waiting[] = {{parts_->stop.fd(), POLLIN, 0}, {parts_->probe.fd(), POLLIN, 0}};
    const int count = ::poll(waiting, 2, timeout_ms);
    if (count < 0 && errno != EINTR) break;
    if (parts_->stop.Take()) break;
    const bool asked = parts_->probe.Take();
    if (asked) pause = kProbeAgain;
    if (asked || (!parts_->devices.HasGpu() && base::Clock::System().Now() >= next_probe)) {
      ProbeDevices();
      next_probe = base::Clock::System().Now() + pause;
      pause = std::min(2 * pause, kProbeAgainLimit);
    }
  }
  stopping();
  Drain();
}

void Daemon::Drain() {
  parts_->log("info", "draining");
  parts_->logic->SetDraining();
  parts_->control->BeginDrain();
  parts_->channel->BeginDrain();
  const bool idle = parts_->tracker.WaitUntilIdle(parts_->options.drain_grace);
  if (!idle) parts_->log("warning", absl::StrCat(parts_->tracker.active(), " calls are cancelled"));
  parts_->pool->Shutdown(absl::ZeroDuration());
  parts_->control->Stop(absl::Milliseconds(200));
  parts_->channel->Stop();
  parts_->log("info", "stopped");
}

void Daemon::RequestStop() { parts_->stop.Raise(); }
void Daemon::RequestProbe() { parts_->probe.Raise(); }

}  // namespace fusiond::server
