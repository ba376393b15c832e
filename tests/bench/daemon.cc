#include "tests/bench/daemon.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cc/paths.h"
#include "compiler/ir/text.h"
#include "runtime/base/status_macros.h"

namespace fusiond::bench {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(30);
// Compiled and thrown away: what the benchmarks compile shares no key with it.
constexpr char kWarmUpGraph[] = R"(fir 1
%x = input : f64[3,5]
%y = cosh %x
output %y
)";

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const std::string& program,
                                                      const std::vector<std::string>& flags) {
  std::unique_ptr<Daemon> daemon(new Daemon);
  FUSIOND_RETURN_IF_ERROR(daemon->Spawn(program, flags));
  FUSIOND_RETURN_IF_ERROR(daemon->Connect());
  FUSIOND_RETURN_IF_ERROR(daemon->WarmUp());
  return daemon;
}

Daemon::~Daemon() {
  client_.reset();
  process_.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

absl::Status Daemon::Spawn(const std::string& program, const std::vector<std::string>& flags) {
  std::string folder = std::filesystem::temp_directory_path() / "fusiond_bench_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return base::ErrnoStatus(errno, "make " + folder);
  folder_ = folder;
  sockets_ = folder + "/sockets";
  server::SpawnOptions spawn;
  spawn.program = program;
  spawn.arguments = {"--sockets=" + sockets_, "--state=" + folder + "/state", "--nvrtc-any-owner",
                     "--log-level=error"};
  spawn.arguments.insert(spawn.arguments.end(), flags.begin(), flags.end());
  for (char** variable = environ; *variable != nullptr; ++variable)
    spawn.environment.emplace_back(*variable);
  FUSIOND_ASSIGN_OR_RETURN(process_, server::ChildProcess::Spawn(spawn));
  return absl::OkStatus();
}

absl::Status Daemon::Connect() {
  const absl::Time deadline = absl::Now() + kStartTimeout;
  while (true) {
    if (::access(client::ControlSocket(sockets_).c_str(), F_OK) == 0) {
      absl::StatusOr<std::unique_ptr<client::Client>> client =
          client::Client::Connect(sockets_, absl::Seconds(2));
      if (client.ok()) {
        client_ = *std::move(client);
        return absl::OkStatus();
      }
    }
    if (const auto exit = process_->Reap())
      return absl::FailedPreconditionError("the daemon " + exit->ToString());
    if (absl::Now() > deadline)
      return absl::DeadlineExceededError("the daemon does not answer at " + sockets_);
    absl::SleepFor(absl::Milliseconds(5));
  }
}

absl::Status Daemon::WarmUp() {
  const absl::Time deadline = absl::Now() + kStartTimeout;
  target_ = "h200";
  // The probe runs beside the start.
  for (bool asked = false; !asked;) {
    FUSIOND_ASSIGN_OR_RETURN(const v1::DevicesResponse devices, client_->Devices());
    for (const auto& device : devices.devices()) {
      if (device.uuid() != "cpu" && device.problem().empty()) {
        target_ = device.uuid();
        asked = true;
        break;
      }
    }
    asked = asked || !devices.problem().empty() || absl::Now() > deadline;
    if (!asked) absl::SleepFor(absl::Milliseconds(5));
  }
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, ir::Parse(kWarmUpGraph));
  return client_->Compile(graph, target_).status();
}

}  // namespace fusiond::bench
