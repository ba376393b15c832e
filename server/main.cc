// fusiond: one binary, three roles. Without --role it is the supervisor
// (server/lifecycle/daemon.h); --role=compile is a compile process (server/pool/compile_role.h),
// --role=worker a worker or, with --probe, the device probe. The supervisor starts the others;
// people start the supervisor.
//
// The environment is read here and nowhere below.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "runtime/base/file.h"
#include "runtime/base/framing.h"
#include "runtime/base/standard_streams.h"
#include "runtime/channel/socket.h"
#include "runtime/worker/worker_main.h"
#include "server/devices/prober.h"
#include "server/engine/plan_job.h"
#include "server/flags.h"
#include "server/lifecycle/daemon.h"
#include "server/lifecycle/stop_limit.h"
#include "server/lifecycle/systemd.h"
#include "server/log.h"
#include "server/pool/compile_role.h"
#include "server/pool/host_limits.h"
#include "server/process/child_process.h"
#include "server/process/harden.h"
#include "server/process/seccomp.h"

extern char** environ;

namespace fusiond::server {
namespace {

constexpr char kVersion[] = FUSIOND_VERSION;  // set by CMake from the project's

// What a stop may take beyond --drain.
constexpr absl::Duration kMostStop = absl::Seconds(10);

Daemon* running_daemon = nullptr;  // for the signal handlers alone

std::string Environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value == nullptr ? "" : value;
}

// Empty where there is no folder that only this user can have made.
std::string DefaultSockets() {
  if (::geteuid() == 0) return "/run/fusiond";
  const std::string runtime = Environment("XDG_RUNTIME_DIR");
  return runtime.empty() ? "" : runtime + "/fusiond";
}

std::string DefaultState() {
  if (::geteuid() == 0) return "/var/lib/fusiond";
  const std::string cache = Environment("XDG_CACHE_HOME"), home = Environment("HOME");
  if (cache.empty() && home.empty()) return "";
  return (cache.empty() ? home + "/.cache" : cache) + "/fusiond";
}

std::vector<std::string> EnvironmentThatStartsWith(std::initializer_list<const char*> prefixes) {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    for (const char* prefix : prefixes) {
      if (absl::StartsWith(variable, prefix)) kept.push_back(variable);
    }
  }
  return kept;
}

// As many descriptors as we are allowed: each client costs some.
void RaiseDescriptorLimit() {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// From systemd: sockets by the names in the .socket unit, and the watchdog.
void TakeFromSystemd(DaemonOptions& options) {
  for (const auto& [name, fd] : ListeningSockets(
           Environment("LISTEN_FDS"), Environment("LISTEN_PID"), Environment("LISTEN_FDNAMES"))) {
    if (name == "control") options.control_fd = fd;
    if (name == "channel") options.channel_fd = fd;
  }
  options.watchdog = WatchdogPeriod(Environment("WATCHDOG_USEC"), Environment("WATCHDOG_PID"));
}

std::string Text(const absl::Status& status) {
  return status.ToString(absl::StatusToStringMode::kWithNoExtraData);
}

int RunCompile() {
  const absl::Status status = RunCompileRole(RunPlanJob);
  Log("error", absl::StrCat("compile process pid=", ::getpid(), " ends: ", Text(status)));
  return kDaemonFailed;
}

int RunProbeRole(const std::string& driver) {
  const absl::Status sent = base::WriteFrame(kChildSocket, ProbeHere(driver).SerializeAsString());
  return sent.ok() ? kDaemonOk : kDaemonFailed;
}

int RunWorkerRole(const std::string& device, const std::string& driver) {
  const std::string who = absl::StrCat("worker pid=", ::getpid(), " device=", device, " ");
  worker::WorkerOptions options;
  options.device = device;
  options.driver_path = driver;
  options.adopt_socket.reset(kChildSocket);
  options.host_memory_bytes = ReadHostLimits("").memory_bytes;
  options.log = [who](const std::string& level, const std::string& line) {
    Log(level, who + line);
  };
  // Stays open behind RunWorker, for last words to the supervisor.
  const int last_words = ::fcntl(kChildSocket, F_DUPFD_CLOEXEC, kChildSocket + 1);
  options.give_up = [who, last_words](const absl::Status& why) {
    Log("error", who + "ends: " + Text(why));
    channel::SendMessage(last_words, why.message().substr(0, channel::kMaxMessageBytes), {},
                         absl::ZeroDuration())
        .IgnoreError();
    ::_exit(kDaemonFailed);
  };
  const auto give_up = options.give_up;
  const absl::Status hardened = Harden();
  if (!hardened.ok()) give_up(hardened);
  options.before_serving = [gpu = device != "cpu"] { return EnterWorkerSandbox(gpu); };
  absl::StatusOr<channel::ReceivedMessage> first =
      channel::ReceiveMessage(kChildSocket, absl::Seconds(10));
  if (!first.ok() || first->fds.size() != 1)
    give_up(absl::UnavailableError("no socket for executables came"));
  options.fetch_socket = std::move(first->fds[0]);
  // SIGTERM asks for a drain; it is read by the loop, so that nothing runs in a handler.
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);  // NOLINT(concurrency-mt-unsafe): the only thread
  base::UniqueFd drain(::signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK));
  options.drain_fd = drain.get();
  const absl::Status status = worker::RunWorker(std::move(options));
  if (!status.ok()) give_up(status);
  // What runs at a common exit, in a driver or in a sanitizer, may need what was given up.
  ::_exit(kDaemonOk);
}

// Says why there is no start. Returns the exit code.
int FailToStart(const absl::Status& status) {
  const bool listens = absl::IsAlreadyExists(status), locked = absl::IsAborted(status);
  Log("error", absl::StrCat(Text(status),
                            listens  ? "; stop that process, or name another folder by --sockets"
                            : locked ? "; stop that process, or name another folder by --state"
                                     : ""));
  return listens ? kDaemonAddressInUse : locked ? kDaemonStateInUse : kDaemonFailed;
}

int RunSupervisor(const DaemonOptions& options) {
  const std::string notify_socket = Environment("NOTIFY_SOCKET");
  absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(options, Log);
  if (!daemon.ok()) return FailToStart(daemon.status());
  running_daemon = daemon->get();
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    signal == SIGHUP ? running_daemon->RequestReload() : running_daemon->RequestStop();
  };
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
  DaemonEvents events;
  events.ready = [&](const std::string& cache) {
    Log("info", absl::StrCat("serving at ", options.sockets, ", cache in ", cache));
    NotifySystemd(notify_socket, "READY=1");
  };
  events.stopping = [&] {
    NotifySystemd(notify_socket, "STOPPING=1");
    const bool journal = IsJournal(Environment("JOURNAL_STREAM"), STDERR_FILENO);
    LimitStop(options.drain_grace + kMostStop, kDaemonFailed, journal ? "<3>" : "error ");
  };
  events.waits_for = StopWaitsFor;
  events.alive = [&] { NotifySystemd(notify_socket, "WATCHDOG=1"); };
  (*daemon)->Run(events);
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  signal(SIGHUP, SIG_IGN);
  return kDaemonOk;
}

Flags Defaults() {
  Flags defaults;
  DaemonOptions& daemon = defaults.daemon;
  daemon.version = kVersion;
  daemon.sockets = DefaultSockets();
  daemon.state = DefaultState();
  // What the CUDA driver reads, how libraries are found, and where the log goes; nothing that NVRTC
  // reads options from.
  daemon.worker_environment =
      EnvironmentThatStartsWith({"CUDA_", "NVIDIA_", "LD_LIBRARY_PATH=", "JOURNAL_STREAM=", "TZ="});
  daemon.compile_environment =
      EnvironmentThatStartsWith({"LD_LIBRARY_PATH=", "JOURNAL_STREAM=", "TZ="});
  // A compile touches 12 MB anew: 140 page faults instead of 3000, a twentieth of its time.
  daemon.compile_environment.push_back("GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
  return defaults;
}

int Main(int argc, char** argv) {
  base::HoldStandardStreams(argv);
  // Errors of the write instead; and until there is something to reload.
  for (int ignored : {SIGPIPE, SIGXFSZ, SIGHUP}) signal(ignored, SIG_IGN);
#ifdef NDEBUG
  // A packaged Abseil may be built without NDEBUG: it then keeps a graph of all lock orders, under
  // one lock of the process, at every lock of ours and of gRPC's.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  std::variant<Flags, int> parsed = ParseFlags(argc, argv, Defaults());
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  Flags& flags = std::get<Flags>(parsed);
  DaemonOptions& options = flags.daemon;
  if (!flags.check_config) SetUpLog(flags.log_level, Environment("JOURNAL_STREAM"));
  if (flags.role == "compile") return RunCompile();
  if (flags.role == "worker") {
    return flags.probe ? RunProbeRole(options.driver_path)
                       : RunWorkerRole(flags.device, options.driver_path);
  }
  TakeFromSystemd(options);
  if (options.sockets.empty() && (options.control_fd < 0 || options.channel_fd < 0)) {
    std::fprintf(stderr, "fusiond: XDG_RUNTIME_DIR is not set: say where with --sockets\n");
    return kDaemonUsage;
  }
  if (flags.check_config) {
    const std::vector<std::string> problems = CheckHost(options);
    for (const std::string& problem : problems)
      std::fprintf(stderr, "fusiond: %s\n", problem.c_str());
    return problems.empty() ? kDaemonOk : kDaemonUsage;
  }
  RaiseDescriptorLimit();
  options.worker_arguments = {absl::StrCat("--log-level=", flags.log_level)};
  options.log_hits = LogsDebug();
  return RunSupervisor(options);
}

}  // namespace
}  // namespace fusiond::server

int main(int argc, char** argv) { return fusiond::server::Main(argc, argv); }
