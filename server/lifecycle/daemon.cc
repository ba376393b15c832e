#include "server/lifecycle/daemon.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
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
#include "server/devices/prober.h"
#include "server/devices/registry.h"
#include "server/engine/engine.h"
#include "server/pool/compile_pool.h"
#include "server/pool/host_limits.h"
#include "server/process/thread_room.h"
#include "server/service/inline_executor.h"

namespace fusiond::server {
namespace {

constexpr int kMaxCompileProcesses = 64;
// Of the memory that is available: what the memory tier of the cache takes at most, and what the
// calls of one identity, besides what gRPC buffers for them.
constexpr int64_t kCacheShare = 4;
constexpr int64_t kCallShare = 8;
// After this the daemon serves without knowing NVRTC or the devices: what hangs may hang for ever.
constexpr absl::Duration kMaxStart = absl::Seconds(30);

// Of one identity's daemon, gRPC's among them. Whoever has fewer is better told so now.
constexpr int kMostThreads = 32;

// How often sockets and state folder are looked after.
constexpr absl::Duration kLookInterval = absl::Seconds(1);

// What workers get at least to end what is in flight, however long calls took.
constexpr absl::Duration kMinWorkerGrace = absl::Seconds(1);

absl::Duration Now() { return base::Clock::System().Now(); }

// Something has happened, told from a signal handler or another thread to main's.
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

bool IsHit(const CallRecord& call) {
  return call.status.ok() &&
         (call.source == v1::Source_Name(v1::MEMORY) || call.source == v1::Source_Name(v1::DISK));
}

std::string FormatCall(const CallRecord& call) {
  return absl::StrCat(
      "rpc=", call.rpc, " identity=", call.identity->Name(),
      " code=", absl::StatusCodeToString(call.status.code()),
      call.key.empty() ? "" : " key=", call.key, call.source.empty() ? "" : " source=", call.source,
      " ms=", absl::ToDoubleMilliseconds(call.took),
      // Quotes what clients sent: nothing in it may look like another field or line.
      call.status.ok()
          ? ""
          : absl::StrCat(" error=\"", absl::Utf8SafeCEscape(call.status.message()), "\""));
}

absl::StatusOr<channel::UnixListener> Listen(const DaemonOptions& options, const char* name,
                                             int type, int fd) {
  if (fd >= 0) return channel::UnixListener::Adopt(base::UniqueFd(fd));
  FUSIOND_RETURN_IF_ERROR(base::MakeFolders(options.sockets));
  return channel::UnixListener::Listen(absl::StrCat(options.sockets, "/", name), type,
                                       options.socket_mode);
}

// Null without a state folder. A folder that cannot be used now is the store's to cope with.
absl::StatusOr<std::unique_ptr<cache::Store>> OpenStore(const DaemonOptions& options,
                                                        const LogLine& log) {
  if (options.state.empty()) return nullptr;
  cache::LevelDbStoreOptions store;
  store.folder = absl::StrCat(options.state, "/cache");
  store.allow_network_fs = options.allow_network_fs;
  store.log = [log](absl::string_view line) { log("warning", std::string(line)); };
  absl::StatusOr<std::unique_ptr<cache::LevelDbStore>> opened =
      cache::LevelDbStore::Create(std::move(store));
  if (absl::IsAlreadyExists(opened.status())) {
    return absl::AbortedError(
        absl::StrCat("state folder ", options.state, ": ", opened.status().message()));
  }
  FUSIOND_RETURN_IF_ERROR(opened.status());
  return *std::move(opened);
}

}  // namespace

// In order of construction; destroyed in reverse.
struct Daemon::Parts {
  DaemonOptions options;
  HostLimits host;
  LogLine log;
  Signal stop, reload, learned;  // learned: something of NVRTC or the devices
  std::atomic<bool> probed{false};
  DeviceRegistry devices;
  Grants grants;
  std::unique_ptr<Quotas> quotas;
  StartGate gate;
  CallTracker tracker;
  std::unique_ptr<cache::Cache> cache;
  std::unique_ptr<CompilePool> pool;
  std::unique_ptr<PoolJobRunner> runner;
  std::unique_ptr<CompileEngine> engine;
  std::unique_ptr<FusiondLogic> logic;
  std::unique_ptr<ChannelServer> channel;
  std::unique_ptr<InlineExecutor> executor;
  std::unique_ptr<ControlServer> control;
  std::unique_ptr<DeviceProber> prober;
  // Main's alone.
  bool nvrtc_known = false;
  std::string nvrtc;        // identity in keys
  bool nvrtc_here = false;  // the identity is that of one that compiles, to be kept
  std::string nvrtc_said;

  // Why nothing is kept on disk although that was not asked for; else empty.
  std::string NoState() const {
    return options.state.empty() && !options.memory_only
               ? "no folder is given (--state), and neither XDG_CACHE_HOME nor HOME says where one "
                 "would be"
               : "";
  }

  void FillStatus(v1::StatusResponse& status) const {
    channel->FillStatus(status);
    const CallTracker::Counts counts = tracker.counts();
    v1::StatusResponse::Calls& calls = *status.mutable_calls();
    calls.set_active(static_cast<uint32_t>(counts.active));
    calls.set_ended(counts.ended);
    calls.set_failed(counts.failed);
    calls.set_refused(quotas->refused());
    calls.set_connections(static_cast<uint32_t>(control->connections()));
    if (const std::string why = NoState(); !why.empty())
      status.add_degraded(absl::StrCat("cache is in memory alone: ", why));
    if (const std::string problem = control->problem(); !problem.empty())
      status.add_degraded(problem);
  }

  CompilePoolOptions PoolOptions() {
    CompilePoolOptions pool;
    pool.spawn.environment = options.compile_environment;
    pool.setup.set_nvrtc_path(options.nvrtc_path);
    for (const std::string& folder : options.nvrtc_folders) pool.setup.add_nvrtc_folders(folder);
    pool.setup.set_nvrtc_root_owned_only(options.nvrtc_root_owned_only);
    const auto memory = static_cast<uint64_t>(options.compile_memory_bytes);
    pool.setup.set_memory_limit_bytes(memory);
    pool.processes = options.compile_processes > 0
                         ? options.compile_processes
                         : CompileProcessCount(host, memory, kMaxCompileProcesses);
    pool.run_limit = options.compile_limit;
    pool.log = [this](absl::string_view line) { log("warning", std::string(line)); };
    pool.on_nvrtc = [this] { learned.Raise(); };
    return pool;
  }

  int64_t CallMemory() const {
    return ShareOfMemory(host, kCallShare, kLeastCallMemory, options.call_memory_bytes);
  }
  int64_t CacheMemory() const {
    return ShareOfMemory(host, kCacheShare, 0, options.cache_memory_bytes);
  }
  // Nobody should wonder why a flag is not followed.
  void TellMemory() const {
    const auto tell = [this](const char* flag, int64_t said, int64_t taken) {
      if (taken == said) return;
      log("info", absl::StrCat(flag, " is ", taken, " bytes instead of ", said,
                               ": of memory there are ", host.available_bytes));
    };
    tell("--call-memory", options.call_memory_bytes, CallMemory());
    tell("--cache-memory", options.cache_memory_bytes, CacheMemory());
  }

  ControlOptions MakeControlOptions() {
    ControlOptions control;
    control.memory_per_identity =
        std::min(control.memory_per_identity, static_cast<size_t>(CallMemory()));
    control.log = log;
    return control;
  }

  ChannelOptions MakeChannelOptions() {
    ChannelOptions channel;
    channel.workers.environment = options.worker_environment;
    channel.workers.arguments = options.worker_arguments;
    channel.workers.driver_path = options.driver_path;
    channel.workers.log = log;
    return channel;
  }

  LogicOptions MakeLogicOptions() {
    LogicOptions made;
    made.version = options.version;
    made.cache_path = options.state.empty() ? "" : absl::StrCat(options.state, "/cache");
    made.limits = options.limits;
    return made;
  }

  ProberOptions MakeProberOptions() {
    ProberOptions prober;
    prober.environment = options.worker_environment;
    prober.driver_path = options.driver_path;
    prober.log = [this](const std::string& line) { log("info", line); };
    prober.on_probed = [this] {
      probed.store(true, std::memory_order_relaxed);  // ordered by the eventfd
      learned.Raise();
    };
    return prober;
  }
};

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Daemon::~Daemon() {
  // Whatever may still call into the engine goes first.
  parts_->prober.reset();
  parts_->gate.Open();
  if (parts_->control != nullptr) parts_->control->Stop(absl::ZeroDuration());
  if (parts_->channel != nullptr) parts_->channel->Stop();
  if (parts_->pool != nullptr) parts_->pool->Shutdown(absl::ZeroDuration());
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options, LogLine log) {
  auto daemon = std::unique_ptr<Daemon>(new Daemon(std::make_unique<Parts>()));
  Parts& parts = *daemon->parts_;
  parts.options = options;
  parts.log = std::move(log);
  parts.host = ReadHostLimits("");
  parts.TellMemory();
  parts.quotas = std::make_unique<Quotas>(QuotaOptions{.bytes = parts.CallMemory()});
  if (const std::string why = parts.NoState(); !why.empty())
    parts.log("warning", "the cache is in memory alone: " + why);
  FUSIOND_RETURN_IF_ERROR(CheckRoomForThreads(kMostThreads));

  // Sockets first: a second daemon must not get as far as the cache.
  FUSIOND_ASSIGN_OR_RETURN(channel::UnixListener control,
                           Listen(options, "control.sock", SOCK_STREAM, options.control_fd));
  FUSIOND_ASSIGN_OR_RETURN(channel::UnixListener channel,
                           Listen(options, "channel.sock", SOCK_SEQPACKET, options.channel_fd));
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<cache::Store> store, OpenStore(options, parts.log));
  cache::CacheOptions cache_options;
  cache_options.memory_bytes = static_cast<size_t>(parts.CacheMemory());
  parts.cache = std::make_unique<cache::Cache>(cache_options, std::move(store));

  FUSIOND_ASSIGN_OR_RETURN(parts.pool, CompilePool::Create(parts.PoolOptions()));
  parts.runner = std::make_unique<PoolJobRunner>(parts.pool.get());
  parts.engine =
      std::make_unique<CompileEngine>(EngineOptions(), parts.cache.get(), parts.runner.get());
  const Admission admit = MakeAdmission(options);
  parts.channel =
      std::make_unique<ChannelServer>(parts.MakeChannelOptions(), std::move(channel), admit,
                                      parts.cache.get(), &parts.devices, &parts.grants);
  ChannelServer* const channel_server = parts.channel.get();
  parts.logic = std::make_unique<FusiondLogic>(
      parts.MakeLogicOptions(), parts.engine.get(), parts.cache.get(), parts.pool.get(),
      &parts.devices, &parts.grants,
      [&parts](v1::StatusResponse& status) { parts.FillStatus(status); });
  parts.executor = std::make_unique<InlineExecutor>(
      [channel_server](const Identity& identity) { return channel_server->ConnectAs(identity); });
  const ServiceParts services = {parts.logic.get(),
                                 parts.executor.get(),
                                 &parts.tracker,
                                 &parts.gate,
                                 parts.quotas.get(),
                                 [&parts](const CallRecord& call) {
                                   if (IsHit(call) && !parts.options.log_hits) return;
                                   parts.log(call.status.ok() ? "info" : "warning",
                                             FormatCall(call));
                                 }};
  parts.control = std::make_unique<ControlServer>(parts.MakeControlOptions(), std::move(control),
                                                  admit, services);
  FUSIOND_RETURN_IF_ERROR(parts.channel->Start());
  FUSIOND_RETURN_IF_ERROR(parts.control->Start());
  FUSIOND_ASSIGN_OR_RETURN(parts.prober,
                           DeviceProber::Start(parts.MakeProberOptions(), &parts.devices));
  return daemon;
}

// Keys name the NVRTC that compiles. Without one the last that was used stands in, so that what it
// compiled is found.
void Daemon::FollowNvrtc() {
  const absl::StatusOr<internal::v1::NvrtcInfo> nvrtc =
      parts_->pool->WaitForNvrtc(absl::ZeroDuration());
  const std::string& state = parts_->options.state;
  if (nvrtc.ok()) {
    parts_->nvrtc = nvrtc->identity();
    if (!state.empty()) {
      const absl::Status kept = cache::RememberNvrtcIdentity(state, nvrtc->identity());
      parts_->nvrtc_here = true;
      if (!kept.ok())
        parts_->log("warning", absl::StrCat("NVRTC's identity is not kept: ", kept.message()));
    }
  } else if (parts_->nvrtc.empty() && !state.empty()) {
    parts_->nvrtc = cache::LastNvrtcIdentity(state).value_or("");
  }
  // Known is also that there is none, or that no process starts to say so.
  parts_->nvrtc_known = nvrtc.ok() || absl::IsNotFound(nvrtc.status()) ||
                        parts_->pool->GetStatus().start_failures > 0;
  parts_->logic->SetNvrtc(parts_->nvrtc);
  const std::string said =
      nvrtc.ok()
          ? absl::StrCat("NVRTC ", nvrtc->major(), ".", nvrtc->minor(), " at ", nvrtc->path())
          : absl::StrCat(absl::IsNotFound(nvrtc.status()) ? "no NVRTC: " : "NVRTC is not known: ",
                         nvrtc.status().message());
  if (parts_->nvrtc_known && said != parts_->nvrtc_said) {
    parts_->log(nvrtc.ok() ? "info" : "warning", said);
    parts_->nvrtc_said = said;
  }
}

void Daemon::MakeReady(const DaemonEvents& events) {
  parts_->logic->SetState(FusiondLogic::State::kServing);
  parts_->control->SetServing();
  parts_->gate.Open();
  events.ready(DescribeCache());
}

std::string Daemon::DescribeCache() const {
  const std::string& state = parts_->options.state;
  const std::string none = parts_->NoState();
  if (state.empty()) return none.empty() ? "memory" : absl::StrCat("memory alone: ", none);
  const std::string degraded = parts_->cache->Degraded();
  return degraded.empty() ? state : absl::StrCat("memory for now, not in ", state, ": ", degraded);
}

void Daemon::LookAfterFiles() {
  parts_->control->LookAfterSocket();
  parts_->channel->LookAfterSocket();
  // The cache looks after its own folder.
  if (parts_->nvrtc_here)
    cache::RememberNvrtcIdentity(parts_->options.state, parts_->nvrtc).IgnoreError();
}

// Asks every thread that clients depend on to show that it turns; the engine's look into the cache.
bool Daemon::AllAlive() {
  const absl::Duration limit = parts_->options.watchdog / 4;
  return parts_->channel->Responds(limit) && parts_->control->Responds(limit) &&
         parts_->pool->Responds(limit) && parts_->engine->Responds(limit);
}

void Daemon::Run(const DaemonEvents& events) {
  const absl::Duration give_up = Now() + kMaxStart;
  const absl::Duration watchdog = parts_->options.watchdog;
  absl::Duration next_check =
      watchdog == absl::ZeroDuration() ? absl::InfiniteDuration() : Now() + watchdog / 2;
  absl::Duration next_look = Now() + kLookInterval;
  while (true) {
    absl::Duration wait = std::min(next_check, next_look) - Now();
    if (!parts_->gate.open()) wait = std::min(wait, give_up - Now());
    pollfd waiting[] = {{parts_->stop.fd(), POLLIN, 0},
                        {parts_->reload.fd(), POLLIN, 0},
                        {parts_->learned.fd(), POLLIN, 0}};
    const int64_t wait_ms = absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)));
    if (::poll(waiting, 3, static_cast<int>(std::max<int64_t>(wait_ms, 0))) < 0 && errno != EINTR)
      break;
    if (parts_->stop.Take()) break;
    if (parts_->reload.Take()) {
      parts_->log("info", "looking for GPUs and NVRTC again");
      parts_->prober->ProbeAgain();
      parts_->pool->Refresh();
    }
    if (parts_->learned.Take()) FollowNvrtc();
    if (!parts_->gate.open() &&
        ((parts_->nvrtc_known && parts_->probed.load(std::memory_order_relaxed)) ||
         Now() >= give_up)) {
      MakeReady(events);
    }
    if (Now() >= next_look) {
      next_look = Now() + kLookInterval;
      LookAfterFiles();
    }
    if (Now() >= next_check) {
      next_check = Now() + watchdog / 2;
      AllAlive() ? events.alive() : parts_->log("error", "a thread does not respond");
    }
  }
  events.stopping();
  Drain(events);
}

void Daemon::Drain(const DaemonEvents& events) {
  const absl::Duration deadline = Now() + parts_->options.drain_grace;
  parts_->logic->SetState(FusiondLogic::State::kDraining);
  parts_->control->BeginDrain();
  parts_->log("info", "draining");  // true from here on
  events.waits_for("the probe of devices");
  parts_->prober.reset();
  parts_->gate.Open();  // whoever waits is told
  events.waits_for("running calls");
  if (!parts_->tracker.WaitUntilIdle(deadline - Now()))
    parts_->log("warning", absl::StrCat(parts_->tracker.counts().active, " calls are cancelled"));
  // Only now, since calls of Execute run on workers.
  events.waits_for("launches of workers");
  parts_->channel->BeginDrain();
  if (!parts_->channel->WaitUntilDrained(std::max(deadline - Now(), kMinWorkerGrace)))
    parts_->log("warning", "launches that still run are lost");
  events.waits_for("compile processes");
  parts_->pool->Shutdown(absl::ZeroDuration());
  events.waits_for("gRPC, whose threads may be missing (a limit of threads?)");
  parts_->control->Stop(absl::Milliseconds(200));
  events.waits_for("channel.sock");
  parts_->channel->Stop();
  events.waits_for("the cache");
  parts_->log("info", "stopped");
}

void Daemon::RequestStop() { parts_->stop.Raise(); }
void Daemon::RequestReload() { parts_->reload.Raise(); }

}  // namespace fusiond::server
