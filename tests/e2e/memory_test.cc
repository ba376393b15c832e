// The daemon where memory is short: in a cgroup of its own, with a limit.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cc/paths.h"
#include "compiler/import/graph_proto.h"
#include "proto/fusiond/v1/service.grpc.pb.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "server/process/harden.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::TestDaemon;

constexpr int64_t kMiB = int64_t{1} << 20;

// A cgroup with a limit of memory, for as long as it lives.
class Cgroup {
 public:
  explicit Cgroup(int64_t bytes) {
    for (const auto& [root, limit, events] :
         {Files{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"},
          Files{"/sys/fs/cgroup", "memory.max", "memory.events"}}) {
      folder_ = absl::StrCat(root, "/fusiond_test.", ::getpid());
      events_ = absl::StrCat(folder_, "/", events);
      made_ = ::mkdir(folder_.c_str(), 0755) == 0;
      if (made_ && Write(absl::StrCat(folder_, "/", limit), absl::StrCat(bytes))) return;
      Remove();
    }
  }
  ~Cgroup() { Remove(); }
  Cgroup(const Cgroup&) = delete;

  bool made() const { return made_; }
  std::string processes() const { return folder_ + "/cgroup.procs"; }
  bool killed_nobody() const {
    const std::string events = base::ReadFile(events_, 1 << 16).value_or("");
    return absl::StrContains(events, "oom_kill 0\n");
  }

 private:
  struct Files {
    const char *root, *limit, *events;
  };
  // A file of the kernel's: never made, since any folder would do then.
  static bool Write(const std::string& path, const std::string& text) {
    const base::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return file.valid() && base::WriteAll(file.get(), text).ok();
  }
  void Remove() {
    if (made_) ::rmdir(folder_.c_str());
    made_ = false;
  }

  std::string folder_, events_;
  bool made_ = false;
};

grpc::Status Negate(v1::Fusiond::Stub& stub, int64_t bytes) {
  v1::ExecuteRequest request;
  request.set_graph(graph_proto::ToBytes(testing::Graph("%a=input:f32[-1]\n%b=neg %a\noutput %b")));
  request.set_target("cpu");
  v1::InlineTensor* input = request.add_inputs();
  input->set_dtype(v1::FLOAT);
  input->add_shape(bytes / 4);
  input->set_data(std::string(static_cast<size_t>(bytes), '\0'));
  grpc::ClientContext context;
  v1::ExecuteResponse response;
  return stub.Execute(&context, request, &response);
}

TEST(MemoryTest, CallsOfASmallCgroupAreRefusedBeforeTheyAreKilled) {
  if (!server::MemoryLimitWorks()) GTEST_SKIP() << "this build takes memory of its own (sanitizer)";
  const Cgroup cgroup(512 * kMiB);
  if (!cgroup.made()) GTEST_SKIP() << "no cgroup with a limit of memory can be made here";
  TestDaemon daemon;
  daemon.Through(
      {"/bin/sh", "-c", absl::StrCat("echo $$ > ", cgroup.processes(), "; exec \"$@\""), "sh"});
  daemon.Serve();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  const auto stub = v1::Fusiond::NewStub(
      grpc::CreateCustomChannel("unix:" + client::ControlSocket(daemon.sockets()),
                                grpc::InsecureChannelCredentials(), arguments));
  base::Mutex mutex;
  std::vector<std::thread> callers;
  for (int i = 0; i < 30; ++i) {
    callers.emplace_back([&] {
      const grpc::Status status = Negate(*stub, 15 * kMiB);
      const base::MutexLock lock(&mutex);
      EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
          << status.error_code() << ": " << status.error_message();
    });
  }
  for (std::thread& caller : callers) caller.join();
  const grpc::Status later = Negate(*stub, 15 * kMiB);
  EXPECT_TRUE(later.ok()) << later.error_message();
  EXPECT_TRUE(cgroup.killed_nobody());
  EXPECT_EQ(daemon.Stop(SIGTERM), 0) << daemon.log();
}

}  // namespace
}  // namespace fusiond
