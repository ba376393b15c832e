// A whole worker on the CPU device: a supervisor's end on one side, a client session on the other.
#include <poll.h>

#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "compiler/import/graph_proto.h"
#include "compiler/ir/graph.h"
#include "runtime/base/clock.h"
#include "runtime/base/memfd.h"
#include "runtime/base/status_macros.h"
#include "runtime/channel/client_session.h"
#include "runtime/channel/socket.h"
#include "runtime/channel/supervisor_connection.h"
#include "runtime/executable/serialise.h"
#include "runtime/worker/executable_source.h"
#include "runtime/worker/worker_main.h"
#include "tests/support/no_threads.h"
#include "tests/support/status_matchers.h"

namespace fusiond::worker {
namespace {

using channel::MemoryKind;
using executable::Executable;
using executable::Formula;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;

void WaitReadable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  ASSERT_EQ(poll(&waiting, 1, 10000), 1);
}

// y = x * s over f32[n, 4], s a scalar input.
Executable ScaleExecutable() {
  ir::Graph graph;
  const ir::ValueId x = *graph.AddInput(ir::TensorType(base::DType::kFloat, {ir::kSymbolic, 4}));
  const ir::ValueId s = *graph.AddInput(ir::ScalarType(base::DType::kDouble));
  graph.AddOutput(*graph.Add(ir::Op::kMul, {x, s}));
  Executable e;
  e.arch = e.profile = "cpu";
  e.inputs = {{base::DType::kFloat, false, executable::MemorySpace::kDevice, {-1, 4}, {-1, 1}},
              {base::DType::kDouble, true, executable::MemorySpace::kDevice, {}, {}}};
  executable::OutputSpec y;
  y.shape = {Formula::Extent(0, 0), Formula::Constant(4)};
  y.strides = {Formula::Constant(4), Formula::Constant(1)};
  e.outputs = {y};
  executable::HostEvaluateStep step;
  step.graph = graph_proto::ToBytes(graph);
  e.steps = {step};
  return e;
}

using Change = std::function<void(Executable&)>;

// Executables whose own text and graph differ; a record from disk may be one.
const std::pair<const char*, Change> kDisagreements[] = {
    {"dtype", [](Executable& e) { e.inputs[0].dtype = base::DType::kDouble; }},
    {"scalar", [](Executable& e) { e.inputs[1].scalar = false; }},
    {"input's rank", [](Executable& e) { e.inputs[0].shape = e.inputs[0].strides = {4}; }},
    {"one input fewer", [](Executable& e) { e.inputs.pop_back(); }},
    {"output's dtype", [](Executable& e) { e.outputs[0].dtype = base::DType::kHalf; }},
    {"output's rank",
     [](Executable& e) {
       e.outputs[0].shape.pop_back();
       e.outputs[0].strides.pop_back();
     }},
    {"one output more", [](Executable& e) { e.outputs.push_back(e.outputs[0]); }},
};

Executable Changed(const Change& change) {
  Executable e = ScaleExecutable();
  if (change) change(e);
  return e;
}

// Its output is said to be smaller than what the graph computes.
void ClaimOneRow(Executable& e) { e.outputs[0].shape[0] = Formula::Constant(1); }
// All rows in the place of one: any number of elements in few bytes.
void Expand(Executable& e) {
  e.inputs[0].strides = {0, 1};
  e.outputs[0].strides[0] = Formula::Constant(0);
}

// Takes seconds for many rows.
void Lengthen(Executable& e) {
  ir::Graph graph;
  ir::ValueId x = *graph.AddInput(ir::TensorType(base::DType::kFloat, {ir::kSymbolic, 4}));
  graph.AddInput(ir::ScalarType(base::DType::kDouble)).IgnoreError();
  for (int i = 0; i < 4000; ++i) x = *graph.Add(ir::Op::kNeg, {x});
  graph.AddOutput(x);
  executable::HostEvaluateStep step;
  step.graph = graph_proto::ToBytes(graph);
  e.steps = {step};
}

base::Digest DigestOf(const Executable& e) {
  return executable::ExecutableDigest(executable::Serialise(e));
}

class CpuWorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    digest_ = Keep(ScaleExecutable());
    Keep(Changed(ClaimOneRow));
    Keep(Changed(Expand));
    Keep(Changed(Lengthen));
    for (const auto& [name, change] : kDisagreements) Keep(Changed(change));
    ASSERT_OK_AND_ASSIGN(auto adopt, channel::SocketPair());
    ASSERT_OK_AND_ASSIGN(auto fetch, channel::SocketPair());
    adopt_ = std::move(adopt.first);
    fetch_ = std::move(fetch.first);
    WorkerOptions options;
    options.device = "cpu";
    options.adopt_socket = std::move(adopt.second);
    options.fetch_socket = std::move(fetch.second);
    worker_ = std::thread([options = std::move(options)]() mutable {
      worker_status() = RunWorker(std::move(options));
    });
    supervisor_ = std::thread([this] { ServeFetches(); });
  }
  void TearDown() override {
    session_.reset();
    adopt_.reset();  // the worker exits when its supervisor hangs up
    worker_.join();
    fetch_stop_ = true;
    supervisor_.join();
    EXPECT_THAT(worker_status(), IsOk());
  }

  static absl::Status& worker_status() {
    static absl::Status status;
    return status;
  }

  base::Digest Keep(const Executable& executable) {
    const base::Digest digest = DigestOf(executable);
    kept_.emplace(digest.Hex(), executable::Serialise(executable));
    return digest;
  }

  void ServeFetches() {
    while (!fetch_stop_) {
      pollfd waiting{fetch_.get(), POLLIN, 0};
      if (poll(&waiting, 1, 20) != 1) continue;
      absl::StatusOr<FetchRequest> request = ReceiveFetchRequest(fetch_.get());
      if (absl::IsUnavailable(request.status())) return;
      if (!request.ok()) continue;
      base::Digest wanted;
      std::memcpy(wanted.bytes.data(), request->digest, wanted.bytes.size());
      const auto found = kept_.find(wanted.Hex());
      if (found == kept_.end()) {
        EXPECT_THAT(
            SendFetchError(fetch_.get(), request->id, absl::NotFoundError("no such executable")),
            IsOk());
        continue;
      }
      absl::StatusOr<base::UniqueFd> memfd = base::CreateImmutable("lease", found->second);
      ASSERT_THAT(memfd, IsOk());
      EXPECT_THAT(SendFetchReply(fetch_.get(), request->id, memfd->get(), found->second.size()),
                  IsOk());
    }
  }

  // The client says HELLO and OPEN_DEVICE; this end answers and passes it on, as the supervisor
  // does.
  void Connect() {
    ASSERT_OK_AND_ASSIGN(auto pair, channel::SocketPair());
    std::thread supervisor([this, fd = std::move(pair.second)]() mutable {
      channel::SupervisorConnection connection(std::move(fd));
      for (bool passed = false; !passed;) {
        WaitReadable(connection.fd());
        absl::StatusOr<channel::SupervisorConnection::Request> request = connection.Next();
        ASSERT_THAT(request.status(), IsOk());
        if (!std::holds_alternative<channel::SupervisorConnection::DeviceRequest>(*request))
          continue;
        ASSERT_THAT(std::move(connection).PassTo(adopt_.get(), absl::Seconds(5)), IsOk());
        passed = true;
      }
    });
    absl::StatusOr<channel::SupervisorClient> client =
        channel::SupervisorClient::Greet(std::move(pair.first));
    ASSERT_THAT(client.status(), IsOk());
    absl::StatusOr<std::unique_ptr<channel::ClientSession>> session = client->OpenDevice("cpu");
    supervisor.join();
    ASSERT_THAT(session.status(), IsOk());
    session_ = *std::move(session);
  }

  std::map<std::string, std::string> kept_;  // by digest; constant once the worker runs
  base::Digest digest_;
  base::UniqueFd adopt_, fetch_;
  std::thread worker_, supervisor_;
  std::atomic<bool> fetch_stop_{false};
  std::unique_ptr<channel::ClientSession> session_;
};

TEST(WorkerTest, WithoutAThreadItEndsWithTheReason) {
  ASSERT_OK_AND_ASSIGN(auto adopt, channel::SocketPair());
  ASSERT_OK_AND_ASSIGN(auto fetch, channel::SocketPair());
  WorkerOptions options;
  options.device = "cpu";
  options.adopt_socket = std::move(adopt.second);
  options.fetch_socket = std::move(fetch.second);
  const fusiond::testing::NoThreads none;
  EXPECT_THAT(RunWorker(std::move(options)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       ::testing::HasSubstr("starts no more threads")));
}

TEST_F(CpuWorkerTest, LaunchComputesInSharedMemory) {
  Connect();
  ASSERT_OK_AND_ASSIGN(auto loaded, session_->Load(digest_));
  EXPECT_EQ(loaded.tensors, 2u);
  EXPECT_EQ(loaded.extents, 2u);
  ASSERT_OK_AND_ASSIGN(auto x, session_->Allocate(4096, MemoryKind::kHost));
  ASSERT_OK_AND_ASSIGN(auto y, session_->Allocate(4096, MemoryKind::kHost));
  ASSERT_OK_AND_ASSIGN(base::Mapping x_map, base::Mapping::Map(x.fd.get(), 4096, true));
  ASSERT_OK_AND_ASSIGN(base::Mapping y_map, base::Mapping::Map(y.fd.get(), 4096, true));
  auto* in = reinterpret_cast<float*>(x_map.data());
  for (int i = 0; i < 12; ++i) in[i] = static_cast<float>(i);
  ASSERT_OK_AND_ASSIGN(auto ring, session_->OpenRing());
  channel::LaunchCommand command;
  const channel::TensorArgument tensors[] = {{x.handle, 0}, {y.handle, 16}};
  double scale = 2.5;
  int64_t extents[] = {3, 0};
  std::memcpy(&extents[1], &scale, 8);
  command.executable = loaded.handle;
  command.tensors = tensors;
  command.extents = extents;
  command.cookie = 77;
  ASSERT_THAT(ring->Launch(command), IsOk());
  ASSERT_THAT(ring->Wait(absl::Seconds(10)), IsOk());
  channel::CompletionEntry done;
  ASSERT_EQ(ring->Reap({&done, 1}), 1u);
  EXPECT_EQ(done.cookie, 77u);
  EXPECT_THAT(channel::ToStatus(done), IsOk());
  const auto* out = reinterpret_cast<const float*>(y_map.data() + 16);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(out[i], 2.5f * static_cast<float>(i)) << i;
}

TEST_F(CpuWorkerTest, LaunchOutsideItsBufferIsRefusedAndTheSessionGoesOn) {
  Connect();
  ASSERT_OK_AND_ASSIGN(auto loaded, session_->Load(digest_));
  ASSERT_OK_AND_ASSIGN(auto x, session_->Allocate(4096, MemoryKind::kHost));
  ASSERT_OK_AND_ASSIGN(auto ring, session_->OpenRing());
  const channel::TensorArgument tensors[] = {{x.handle, 0}, {x.handle, 2048}};
  for (int64_t rows : {int64_t{1} << 39, int64_t{129}, int64_t{1}}) {
    const int64_t extents[] = {rows, 0};
    channel::LaunchCommand command;
    command.executable = loaded.handle;
    command.tensors = tensors;
    command.extents = extents;
    ASSERT_THAT(ring->Launch(command), IsOk());
    ASSERT_THAT(ring->Wait(absl::Seconds(10)), IsOk());
    channel::CompletionEntry done;
    ASSERT_EQ(ring->Reap({&done, 1}), 1u);
    if (rows == 1) {
      EXPECT_THAT(channel::ToStatus(done), IsOk());
    } else {
      EXPECT_THAT(channel::ToStatus(done), StatusIs(absl::StatusCode::kInvalidArgument));
    }
  }
}

TEST_F(CpuWorkerTest, ExecutableThatItsGraphContradictsIsNotLoaded) {
  Connect();
  for (const auto& [name, change] : kDisagreements) {
    EXPECT_THAT(session_->Load(DigestOf(Changed(change))),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
  }
}

TEST_F(CpuWorkerTest, NoLaunchReachesBeyondWhatWasChecked) {
  Connect();
  ASSERT_OK_AND_ASSIGN(auto x, session_->Allocate(4096, MemoryKind::kHost));
  ASSERT_OK_AND_ASSIGN(auto ring, session_->OpenRing());
  const auto launch = [&](const Change& change, int64_t rows) -> absl::Status {
    FUSIOND_ASSIGN_OR_RETURN(auto loaded, session_->Load(DigestOf(Changed(change))));
    const channel::TensorArgument tensors[] = {{x.handle, 0}, {x.handle, 2048}};
    const int64_t extents[] = {rows, 0};
    channel::LaunchCommand command;
    command.executable = loaded.handle;
    command.tensors = tensors;
    command.extents = extents;
    FUSIOND_RETURN_IF_ERROR(ring->Launch(command));
    FUSIOND_RETURN_IF_ERROR(ring->Wait(absl::Seconds(10)));
    channel::CompletionEntry done;
    EXPECT_EQ(ring->Reap({&done, 1}), 1u);
    return channel::ToStatus(done);
  };
  EXPECT_THAT(launch(ClaimOneRow, 1), IsOk());
  EXPECT_THAT(launch(ClaimOneRow, 100), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(launch(Expand, 1000), IsOk());
  EXPECT_THAT(
      launch(Expand, int64_t{1} << 40),
      StatusIs(absl::StatusCode::kResourceExhausted,
               ::testing::ContainsRegex(
                   "out of memory: 35184372088840 bytes needed, [0-9]+ MiB free of [1-9]")));
  EXPECT_THAT(launch(nullptr, 1), IsOk());
}

// Nobody waits for it any more, and others may wait behind it.
TEST_F(CpuWorkerTest, EvaluationEndsAtItsDeadline) {
  Connect();
  constexpr int64_t kRows = 25000;
  ASSERT_OK_AND_ASSIGN(auto loaded, session_->Load(DigestOf(Changed(Lengthen))));
  ASSERT_OK_AND_ASSIGN(auto x, session_->Allocate(32 * kRows, MemoryKind::kHost));
  ASSERT_OK_AND_ASSIGN(auto ring, session_->OpenRing());
  const channel::TensorArgument tensors[] = {{x.handle, 0}, {x.handle, 16 * kRows}};
  const int64_t extents[] = {kRows, 0};
  channel::LaunchCommand command;
  command.executable = loaded.handle;
  command.tensors = tensors;
  command.extents = extents;
  command.deadline = base::Clock::System().Now() + absl::Milliseconds(50);
  ASSERT_THAT(ring->Launch(command), IsOk());
  ASSERT_THAT(ring->Wait(absl::Minutes(5)), IsOk());
  channel::CompletionEntry done;
  ASSERT_EQ(ring->Reap({&done, 1}), 1u);
  EXPECT_THAT(channel::ToStatus(done),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       ::testing::ContainsRegex("limit [1-9][0-9]*, actual [1-9]")));
}

TEST_F(CpuWorkerTest, UnknownDigestIsNotFound) {
  Connect();
  EXPECT_THAT(session_->Load(base::Sha256("nothing")), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CpuWorkerTest, F28_ClientsThatHangUpLeaveTheWorkerServing) {
  for (int round = 0; round < 20; ++round) {
    Connect();
    ASSERT_OK_AND_ASSIGN(auto loaded, session_->Load(digest_));
    ASSERT_OK_AND_ASSIGN(auto x, session_->Allocate(1 << 20, MemoryKind::kHost));
    ASSERT_OK_AND_ASSIGN(auto ring, session_->OpenRing());
    const channel::TensorArgument tensors[] = {{x.handle, 0}, {x.handle, 1 << 19}};
    const int64_t extents[] = {1000, 0};
    channel::LaunchCommand command;
    command.executable = loaded.handle;
    command.tensors = tensors;
    command.extents = extents;
    ASSERT_THAT(ring->Launch(command), IsOk());
    ring->Flush();
    session_.reset();
  }
}

TEST_F(CpuWorkerTest, MoreMemoryThanTheMachineHasIsRefusedWithFigures) {
  Connect();
  EXPECT_THAT(
      session_->Allocate(uint64_t{1} << 60, MemoryKind::kHost),
      StatusIs(absl::StatusCode::kResourceExhausted,
               ::testing::ContainsRegex("1152921504606846976 bytes needed, [0-9]+ free of [1-9]")));
  EXPECT_THAT(session_->Allocate(4096, MemoryKind::kHost), IsOk());
}

}  // namespace
}  // namespace fusiond::worker
