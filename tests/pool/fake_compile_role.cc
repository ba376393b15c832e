#include "tests/pool/fake_compile_role.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/base/framing.h"
#include "server/pool/compile_pool.h"
#include "server/pool/compile_role.h"
#include "server/process/child_process.h"

namespace fusiond::server {
namespace {

[[noreturn]] void Hang() {
  while (true) ::sched_yield();
}

[[noreturn]] void EatMemory() {
  std::vector<std::unique_ptr<std::string>> blocks;
  while (true) blocks.push_back(std::make_unique<std::string>(1 << 20, 'x'));
}

// Deeper than any stack.
int Recurse(int depth) {
  volatile char frame[4096] = {static_cast<char>(depth)};
  return depth == 0 ? frame[0] : Recurse(depth + 1) + frame[0];
}

// A supervisor with one hanging job. Writes the pid of the process that runs it to kChildSocket.
int RunDoomedSupervisor() {
  CompilePoolOptions options;
  options.spawn.arguments = {"--role=compile"};
  options.setup.set_nvrtc_path("/nonexistent");
  auto pool = *CompilePool::Create(std::move(options));
  CompileRequest request;
  request.job.mutable_plan()->set_graph("hang");
  if (!pool->Submit(std::move(request), [](const CompileOutcome&) {}).ok()) return 2;
  while (true) {
    for (const CompilePoolStatus::Process& process : pool->GetStatus().processes) {
      if (process.state != CompileProcess::State::kBusy) continue;
      const pid_t pid = process.pid;
      if (::write(kChildSocket, &pid, sizeof(pid)) != sizeof(pid)) return 3;
      while (true) ::pause();
    }
    ::sched_yield();
  }
}

}  // namespace

absl::StatusOr<internal::v1::PlanResult> FakePlan(const internal::v1::PlanJob& job) {
  static int jobs = 0;
  ++jobs;
  absl::string_view command = job.graph();
  internal::v1::PlanResult result;
  if (absl::ConsumePrefix(&command, "echo:")) {
    result.set_canonical_ir(std::string(command));
    result.set_explanation(absl::StrCat(jobs));
    return result;
  }
  if (absl::ConsumePrefix(&command, "error:")) return absl::InvalidArgumentError(command);
  if (command == "hang") Hang();
  if (command == "trap") __builtin_trap();
  if (command == "abort") std::abort();
  if (command == "exit") ::_exit(9);
  if (command == "be killed") ::raise(SIGKILL);
  if (command == "socket") ::socket(AF_INET, SOCK_STREAM, 0);
  if (command == "open") {
    return absl::UnimplementedError(absl::StrCat("fd ", ::open("/etc/passwd", O_RDONLY)));
  }
  if (command == "eat") EatMemory();
  if (command == "eat and abort") {
    try {
      EatMemory();
    } catch (const std::bad_alloc&) {
      std::abort();
    }
  }
  if (command == "overflow") result.set_explanation(absl::StrCat(Recurse(1)));
  if (command == "huge") result.set_canonical_ir(std::string(kMaxReplyBytes + 1, 'x'));
  return result;
}

int RunCompile() {
  absl::Status status = RunCompileRole(FakePlan);
  std::fprintf(stderr, "compile role: %s\n", status.ToString().c_str());
  return 1;
}

int RunRole(const std::string& role) {
  if (role == "compile") return RunCompile();
  if (role == "supervisor") return RunDoomedSupervisor();
  if (role == "broken") return 5;  // ends before it is ready
  if (role == "damaged") {
    ::signal(SIGBUS, SIG_DFL);  // sanitizers end the process by an exit of their own
    ::raise(SIGBUS);
  }
  if (role == "unfit") {
    internal::v1::CompileReady ready;
    ready.set_failed("limit memory: Operation not permitted");
    return base::WriteFrame(kChildSocket, ready.SerializeAsString()).ok() ? (Hang(), 0) : 1;
  }
  if (role == "mute") Hang();  // never ready
  if (role == "nonsense") {    // first message is none
    return ::write(kChildSocket, "\x02\0\0\0\xff\xff", 6) == 6 ? (Hang(), 0) : 1;
  }
  return 64;
}

}  // namespace fusiond::server

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (absl::StartsWith(first, "--role=")) return fusiond::server::RunRole(first.substr(7));
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
