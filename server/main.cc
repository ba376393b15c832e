// fusiond: one binary, three roles. Without --role it is the supervisor
// (server/lifecycle/daemon.h); --role=compile is a compile process (server/pool/compile_role.h),
// --role=worker a worker or, with --probe, the device probe. The supervisor starts the others;
// people start the supervisor.
//
// The environment is read here and nowhere below.
#include <signal.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"
#include "runtime/base/framing.h"
#include "runtime/channel/socket.h"
#include "runtime/worker/worker_main.h"
#include "server/devices/prober.h"
#include "server/engine/plan_job.h"
#include "server/lifecycle/daemon.h"
#include "server/lifecycle/systemd.h"
#include "server/pool/compile_role.h"
#include "server/process/child_process.h"
#include "server/process/harden.h"
#include "server/process/seccomp.h"

extern char** environ;

namespace fusiond::server {
namespace {

constexpr char kVersion[] = FUSIOND_VERSION;  // set by CMake from the project's

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

// The level as the journal reads it at the start of a line: sd-daemon(3).
class JournalLevel : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const absl::string_view level = message.level >= spdlog::level::err    ? "<3>"
                                    : message.level == spdlog::level::warn ? "<4>"
                                    : message.level == spdlog::level::info ? "<6>"
                                                                           : "<7>";
    line.append(level.begin(), level.end());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JournalLevel>();
  }
};

void SetUpLog(const std::string& level) {
  auto logger = spdlog::stderr_logger_mt("fusiond");
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<JournalLevel>('*');
  // The journal adds time and process.
  formatter->set_pattern(IsJournal(Environment("JOURNAL_STREAM"), STDERR_FILENO)
                             ? "%*%v"
                             : "%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->set_formatter(std::move(formatter));
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(logger);
}

void Log(const std::string& level, const std::string& line) {
  spdlog::log(spdlog::level::from_str(level), "{}", line);
}

int RunCompile() {
  const absl::Status status = RunCompileRole(RunPlanJob);
  std::fprintf(stderr, "fusiond compile process: %s\n", status.ToString().c_str());
  return kDaemonFailed;
}

int RunProbeRole(const std::string& driver) {
  const absl::Status sent = base::WriteFrame(kChildSocket, ProbeHere(driver).SerializeAsString());
  return sent.ok() ? kDaemonOk : kDaemonFailed;
}

int RunWorkerRole(const std::string& device, const std::string& driver) {
  worker::WorkerOptions options;
  options.device = device;
  options.driver_path = driver;
  options.adopt_socket.reset(kChildSocket);
  const absl::Status hardened = Harden();
  if (!hardened.ok()) {
    std::fprintf(stderr, "fusiond worker: %s\n", hardened.ToString().c_str());
    return kDaemonFailed;
  }
  options.before_serving = [gpu = device != "cpu"] { return EnterWorkerSandbox(gpu); };
  absl::StatusOr<channel::ReceivedMessage> first =
      channel::ReceiveMessage(kChildSocket, absl::Seconds(10));
  if (!first.ok() || first->fds.size() != 1) {
    std::fprintf(stderr, "fusiond worker: no socket for executables came\n");
    return kDaemonFailed;
  }
  options.fetch_socket = std::move(first->fds[0]);
  // SIGTERM asks for a drain; it is read by the loop, so that nothing runs in a handler.
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);
  base::UniqueFd drain(::signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK));
  options.drain_fd = drain.get();
  const int pid = ::getpid();
  options.log = [pid, device](const std::string& line) {
    std::fprintf(stderr, "worker pid=%d device=%s %s\n", pid, device.c_str(), line.c_str());
  };
  const absl::Status status = worker::RunWorker(std::move(options));
  if (!status.ok()) {
    std::fprintf(stderr, "worker pid=%d device=%s ends: %s\n", pid, device.c_str(),
                 status.ToString().c_str());
  }
  // What runs at a common exit, in a driver or in a sanitizer, may need what was given up.
  ::_exit(status.ok() ? kDaemonOk : kDaemonFailed);
}

int ExitFor(const absl::Status& status) {
  if (absl::IsAlreadyExists(status)) return kDaemonAddressInUse;
  if (absl::IsAborted(status)) return kDaemonStateInUse;
  return kDaemonFailed;
}

int RunSupervisor(const DaemonOptions& options) {
  const std::string notify_socket = Environment("NOTIFY_SOCKET");
  absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(options, Log);
  if (!daemon.ok()) {
    Log("error", std::string(daemon.status().ToString()));
    return ExitFor(daemon.status());
  }
  running_daemon = daemon->get();
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    signal == SIGHUP ? running_daemon->RequestReload() : running_daemon->RequestStop();
  };
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
  DaemonEvents events;
  events.ready = [&] {
    Log("info", absl::StrCat("serving at ", options.sockets, ", cache in ",
                             options.state.empty() ? "memory" : options.state));
    NotifySystemd(notify_socket, "READY=1");
  };
  events.stopping = [&] { NotifySystemd(notify_socket, "STOPPING=1"); };
  events.alive = [&] { NotifySystemd(notify_socket, "WATCHDOG=1"); };
  (*daemon)->Run(events);
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  signal(SIGHUP, SIG_IGN);
  return kDaemonOk;
}

int Main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  DaemonOptions options;
  options.version = kVersion;
  options.sockets = DefaultSockets();
  options.state = DefaultState();
  // What the CUDA driver reads, and how libraries are found; nothing that NVRTC reads options from.
  options.worker_environment = EnvironmentThatStartsWith({"CUDA_", "NVIDIA_", "LD_LIBRARY_PATH="});
  options.compile_environment = EnvironmentThatStartsWith({"LD_LIBRARY_PATH="});
  // A compile touches 12 MB anew: 140 page faults instead of 3000, a twentieth of its time.
  options.compile_environment.push_back("GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
  std::string role, device = "cpu", log_level = "info";
  bool probe = false, check = false, memory_only = false, service = false, any_owner = false;
  double drain_s = 5, compile_limit_s = 60;

  CLI::App app{
      "fusiond compiles tensor fusion graphs to GPU kernels once, keeps them, and launches them.\n"
      "Exit codes: 0 stopped, 1 failed, 2 wrong usage, 3 another daemon listens there, 4 the state "
      "folder is in use."};
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.set_version_flag("--version", kVersion);
  app.set_config("--config", "", "file with these options, one NAME=VALUE a line");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.add_flag("--check-config", check, "check options and end");
  app.add_option("--sockets", options.sockets, "folder for control.sock and channel.sock")
      ->capture_default_str();
  app.add_option("--state", options.state, "folder of the cache")->capture_default_str();
  app.add_flag("--memory-only", memory_only, "keep nothing on disk");
  app.add_flag("--service", service,
               "admit every user that can open the sockets (mode 0660) instead of this one alone");
  app.add_flag("--allow-network-fs", options.allow_network_fs,
               "allow the state folder on NFS and the like");
  app.add_option("--nvrtc", options.nvrtc_path,
                 "libnvrtc to use; default: the loader's, then --nvrtc-folder");
  app.add_option("--nvrtc-folder", options.nvrtc_folders, "folders to look for libnvrtc in")
      ->take_all();
  app.add_flag("--nvrtc-any-owner", any_owner,
               "as root or as a service, also take a libnvrtc that others could replace");
  app.add_option("--compile-processes", options.compile_processes,
                 "0 = as many as processors and memory allow")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--compile-memory", options.compile_memory_bytes,
                 "bytes that one compile process may use")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--compile-limit", compile_limit_s, "seconds that one compile may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--driver", options.driver_path, "libcuda to use");
  app.add_option("--cache-memory", options.cache_memory_bytes, "bytes of the memory tier")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--drain", drain_s, "seconds that running calls get after SIGTERM")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--log-level", log_level,
                 "how much is logged; calls that the cache answers at debug")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_option("--role", role, "compile or worker; used by the daemon itself")->group("Internal");
  app.add_option("--device", device, "of a worker")->group("Internal");
  app.add_flag("--probe", probe, "of a worker: report devices and end")->group("Internal");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDaemonOk : kDaemonUsage;
  }
  if (role == "compile") return RunCompile();
  if (role == "worker")
    return probe ? RunProbeRole(options.driver_path) : RunWorkerRole(device, options.driver_path);
  if (!role.empty()) {
    std::fprintf(stderr, "fusiond: --role is compile or worker, not '%s'\n", role.c_str());
    return kDaemonUsage;
  }
  if (memory_only) options.state.clear();
  TakeFromSystemd(options);
  if (options.sockets.empty() && (options.control_fd < 0 || options.channel_fd < 0)) {
    std::fprintf(stderr, "fusiond: XDG_RUNTIME_DIR is not set: say where with --sockets\n");
    return kDaemonUsage;
  }
  options.admit_all = service;
  options.nvrtc_root_owned_only = (service || ::geteuid() == 0) && !any_owner;
  options.socket_mode = service ? 0660 : 0600;
  options.drain_grace = absl::Seconds(drain_s);
  options.compile_limit = absl::Seconds(compile_limit_s);
  if (check) return kDaemonOk;
  RaiseDescriptorLimit();
  SetUpLog(log_level);
  options.log_hits = spdlog::should_log(spdlog::level::debug);
  return RunSupervisor(options);
}

}  // namespace
}  // namespace fusiond::server

int main(int argc, char** argv) { return fusiond::server::Main(argc, argv); }
