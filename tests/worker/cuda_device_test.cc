// The CUDA device behind a worker's loop, on a driver that fails as told.
#include "runtime/worker/cuda_device.h"

#include <sys/eventfd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "runtime/base/clock.h"
#include "runtime/channel/client_session.h"
#include "runtime/channel/socket.h"
#include "runtime/channel/supervisor_connection.h"
#include "runtime/channel/worker_loop.h"
#include "tests/cuda/fake_driver.h"
#include "tests/executable/sample_executable.h"
#include "tests/support/status_matchers.h"

namespace fusiond::worker {
namespace {

using channel::MemoryKind;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kTotal = size_t{8} << 20, kFree = size_t{3} << 20;

// A Hopper card with memory enough for tensors and none for a workspace.
class FakeGpu : public cuda::FakeDriver {
 public:
  FakeGpu() {
    cuda::Driver& d = table();
    using namespace cuda;  // NOLINT(google-build-using-namespace): a table of its types
    d.DeviceGetCount = [](int* count) { return *count = 1, kSuccess; };
    d.DeviceGet = [](CUdevice* device, int) { return *device = 0, kSuccess; };
    d.DeviceGetName = [](char* name, int, CUdevice) {
      return std::strcpy(name, "NVIDIA H200"), kSuccess;
    };
    d.DeviceGetUuid = [](CUuuid* uuid, CUdevice) { return *uuid = {}, kSuccess; };
    d.DeviceGetAttribute = [](int* value, int attribute, CUdevice) {
      *value = attribute == kAttributeCcMajor ? 9 : attribute == kAttributeCcMinor ? 0 : 1;
      return kSuccess;
    };
    d.DeviceTotalMem = [](size_t* bytes, CUdevice) { return *bytes = kTotal, kSuccess; };
    d.PrimaryCtxRetain = [](CUcontext*, CUdevice) { return kSuccess; };
    d.PrimaryCtxRelease = [](CUdevice) { return kSuccess; };
    d.CtxSetCurrent = [](CUcontext) { return kSuccess; };
    d.StreamCreate = [](CUstream*, unsigned) { return kSuccess; };
    d.StreamDestroy = [](CUstream) { return kSuccess; };
    d.StreamSynchronize = [](CUstream) { return kSuccess; };
    d.EventCreate = [](CUevent* event, unsigned) {
      return *event = reinterpret_cast<CUevent>(1), kSuccess;
    };
    d.EventDestroy = [](CUevent) { return kSuccess; };
    d.EventRecord = [](CUevent, CUstream) { return kSuccess; };
    d.EventQuery = [](CUevent) { return kSuccess; };
    d.MemGetInfo = [](size_t* free, size_t* total) {
      return *free = kFree, *total = kTotal, kSuccess;
    };
    d.MemAlloc = [](CUdeviceptr*, size_t) { return kOutOfMemory; };
    d.MemCreate = [](CUmemGenericAllocationHandle*, size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) { return bytes > kFree ? kOutOfMemory : kSuccess; };
    d.MemRelease = [](CUmemGenericAllocationHandle) { return kSuccess; };
    d.MemAddressReserve = [](CUdeviceptr* address, size_t, size_t, CUdeviceptr,
                             unsigned long long) { return *address = 1 << 21, kSuccess; };
    d.MemAddressFree = [](CUdeviceptr, size_t) { return kSuccess; };
    d.MemMap = [](CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) {
      return kSuccess;
    };
    d.MemUnmap = [](CUdeviceptr, size_t) { return kSuccess; };
    d.MemSetAccess = [](CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) { return kSuccess; };
    d.MemExportToShareableHandle = [](void* fd, CUmemGenericAllocationHandle, int,
                                      unsigned long long) {
      return *static_cast<int*>(fd) = ::eventfd(0, EFD_CLOEXEC), kSuccess;
    };
  }
};

// Gives one executable for every digest.
class FakeSource : public ExecutableSource {
 public:
  void Fetch(const base::Digest&, Callback done) override {
    executable::Executable sample = executable::SampleExecutable();
    sample.steps.pop_back();   // a host's
    sample.guards.pop_back();  // all buffers of the fake lie at one address
    done(std::move(sample));
  }
};

class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CudaDeviceOptions options;
    options.host_memory = &host_memory_;
    options.on_lost = [this](absl::Status why) { loop_->Lose(std::move(why)); };
    options.on_stuck = [] { stuck() = true; };
    options.hung_after = absl::Milliseconds(1);
    options.stuck_after = stuck_after();
    stuck() = false;
    ASSERT_OK_AND_ASSIGN(device_, CudaDevice::Create(gpu_.driver(), cuda::UuidToString({}),
                                                     &source_, std::move(options)));
    ASSERT_OK_AND_ASSIGN(loop_, channel::WorkerLoop::Create(device_.get(), {}));
    session_ = Connect();
    other_ = Connect();
    thread_ = std::thread([this] { ended_ = loop_->Run(); });
  }
  virtual absl::Duration stuck_after() const { return absl::InfiniteDuration(); }
  static std::atomic<bool>& stuck() {
    static std::atomic<bool> is;
    return is;
  }
  // A deadline that has not passed when the worker takes the launch.
  static absl::Duration Soon() { return base::Clock::System().Now() + absl::Milliseconds(300); }
  // Before the loop runs.
  std::unique_ptr<channel::ClientSession> Connect() {
    auto pair = *channel::SocketPair();
    EXPECT_THAT(loop_->AddConnection(std::move(pair.second), {}), IsOk());
    const absl::StatusOr<channel::ReceivedMessage> opened =
        channel::ReceiveMessage(pair.first.get(), absl::Minutes(1));
    EXPECT_THAT(opened, IsOk());
    const absl::StatusOr<channel::OpenDeviceReply> reply =
        channel::DecodeReply<channel::OpenDeviceReply>(*opened);
    EXPECT_THAT(reply, IsOk());
    return std::make_unique<channel::ClientSession>(
        std::make_shared<channel::ClientConnection>(std::move(pair.first), absl::Minutes(1),
                                                    "the worker"),
        channel::Negotiated(), *reply);
  }
  void TearDown() override {
    session_.reset();
    other_.reset();
    loop_->Stop();
    thread_.join();
    loop_.reset();
  }

  // Launches the sample once; the ring that it is outstanding on.
  absl::StatusOr<std::unique_ptr<channel::ClientRing>> Launch(
      channel::ClientSession& session, absl::Duration deadline = absl::InfiniteDuration(),
      bool timed = false) {
    FUSIOND_ASSIGN_OR_RETURN(auto ring, session.OpenRing());
    FUSIOND_ASSIGN_OR_RETURN(auto loaded, session.Load(base::Sha256("sample")));
    FUSIOND_ASSIGN_OR_RETURN(auto x, session.Allocate(1 << 20, MemoryKind::kDevice));
    const channel::TensorArgument tensors[] = {{x.handle, 0}, {x.handle, 4096}};
    const int64_t extents[] = {4, 16, 0};
    channel::LaunchCommand command;
    command.executable = loaded.handle;
    command.tensors = tensors;
    command.extents = extents;
    command.deadline = deadline;
    command.timed = timed;
    FUSIOND_RETURN_IF_ERROR(ring->Launch(command));
    ring->Flush();
    return ring;
  }
  // And how it ends.
  absl::Status LaunchOnce(absl::Duration deadline = absl::InfiniteDuration()) {
    FUSIOND_ASSIGN_OR_RETURN(auto ring, Launch(*session_, deadline));
    FUSIOND_RETURN_IF_ERROR(ring->Wait(absl::Minutes(1)));
    channel::CompletionEntry done;
    EXPECT_EQ(ring->Reap({&done, 1}), 1u);
    return ring->StatusOf(done);
  }

  void GiveWorkspace() {
    gpu_.table().MemAlloc = [](cuda::CUdeviceptr* address, size_t) {
      return *address = 4096, cuda::kSuccess;
    };
    gpu_.table().MemFree = [](cuda::CUdeviceptr) { return cuda::kSuccess; };
    gpu_.table().EventElapsedTime = [](float*, cuda::CUevent, cuda::CUevent) {
      return cuda::kSuccess;
    };
  }

  // Nothing that is enqueued ends until ready(); early() counts streams waited for before that.
  void HoldWork() {
    ready() = false;
    early() = 0;
    gpu_.table().EventQuery = [](cuda::CUevent) {
      return ready() ? cuda::kSuccess : cuda::kNotReady;
    };
    gpu_.table().StreamSynchronize = [](cuda::CUstream stream) {
      early() += stream != nullptr && !ready();
      return cuda::kSuccess;
    };
    gpu_.table().StreamCreate = [](cuda::CUstream* stream, unsigned) {
      return *stream = reinterpret_cast<cuda::CUstream>(1), cuda::kSuccess;
    };
  }
  static std::atomic<bool>& ready() {
    static std::atomic<bool> is;
    return is;
  }
  static std::atomic<int>& early() {
    static std::atomic<int> count;
    return count;
  }

  FakeGpu gpu_;
  HostMemory host_memory_;
  FakeSource source_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<channel::WorkerLoop> loop_;
  std::unique_ptr<channel::ClientSession> session_, other_;
  std::thread thread_;
  absl::Status ended_;
};

TEST_F(CudaDeviceTest, OutOfMemoryNamesNeedFreeAndTotalF45) {
  EXPECT_THAT(session_->Allocate(5 << 20, MemoryKind::kDevice),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("6291456 bytes needed, 3145728 free of 8388608")));
  // The sample's workspace is 4096 bytes.
  EXPECT_THAT(LaunchOnce(), StatusIs(absl::StatusCode::kResourceExhausted,
                                     HasSubstr("4096 bytes needed, 3 MiB free of 8")));
  GiveWorkspace();
  EXPECT_THAT(LaunchOnce(), IsOk());  // the context stays
}

TEST_F(CudaDeviceTest, LostContextNamesDriversErrorAndExecutableF42) {
  GiveWorkspace();
  gpu_.table().EventQuery = [](cuda::CUevent) { return cuda::kIllegalAddress; };
  EXPECT_THAT(LaunchOnce(), StatusIs(absl::StatusCode::kAborted,
                                     AllOf(HasSubstr("CONTEXT_LOST: device error 700"),
                                           HasSubstr("the worker"), HasSubstr("open another"))));
  thread_.join();
  EXPECT_THAT(
      ended_,
      StatusIs(absl::StatusCode::kAborted,
               HasSubstr(absl::StrCat("running: executable ", base::Sha256("sample").Hex()))));
  thread_ = std::thread([] {});
}

// No call of CUDA stops a kernel: the process must end, and does.
TEST_F(CudaDeviceTest, KernelThatNeverEndsEndsTheWorkerF44) {
  GiveWorkspace();
  gpu_.table().EventQuery = [](cuda::CUevent) { return cuda::kNotReady; };
  ASSERT_OK_AND_ASSIGN(const auto waiting, Launch(*other_));
  EXPECT_THAT(LaunchOnce(Soon()), StatusIs(absl::StatusCode::kDeadlineExceeded));
  ASSERT_THAT(waiting->Wait(absl::Minutes(1)), IsOk());
  channel::CompletionEntry done;
  ASSERT_EQ(waiting->Reap({&done, 1}), 1u);
  EXPECT_THAT(waiting->StatusOf(done), StatusIs(absl::StatusCode::kAborted));
  thread_.join();
  EXPECT_THAT(ended_,
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr(absl::StrCat("hung: executable ", base::Sha256("sample").Hex()))));
  thread_ = std::thread([] {});
}

// The deadline is a client's word; no sum with it may overflow.
TEST_F(CudaDeviceTest, LastDeadlineThereIsMarksNoDeviceAsHungF44) {
  static int asked;  // by the loop alone
  asked = 0;
  GiveWorkspace();
  gpu_.table().EventQuery = [](cuda::CUevent) {
    return ++asked > 100 ? cuda::kSuccess : cuda::kNotReady;
  };
  ASSERT_OK_AND_ASSIGN(const auto ring, Launch(*session_, absl::Hours(1e9)));
  ASSERT_THAT(ring->Wait(absl::Minutes(1)), IsOk());
  channel::CompletionEntry done;
  ASSERT_EQ(ring->Reap({&done, 1}), 1u);
  EXPECT_THAT(ring->StatusOf(done), IsOk());
}

class StuckCudaDeviceTest : public CudaDeviceTest {
 protected:
  absl::Duration stuck_after() const override { return absl::Milliseconds(1); }
};

// The loop notices nothing while the driver does not return.
TEST_F(StuckCudaDeviceTest, HungDeviceIsNoticedWhileTheLoopIsInTheDriverF44) {
  GiveWorkspace();
  gpu_.table().EventQuery = [](cuda::CUevent) {
    const absl::Duration give_up = base::Clock::System().Now() + absl::Seconds(20);
    while (!stuck() && base::Clock::System().Now() < give_up) std::this_thread::yield();
    return cuda::kNotReady;
  };
  EXPECT_THAT(LaunchOnce(Soon()), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(stuck());
}

TEST_F(CudaDeviceTest, OnlyLaunchesThatAskAreTimed) {
  static std::atomic<int> recorded;
  recorded = 0;
  GiveWorkspace();
  gpu_.table().EventRecord = [](cuda::CUevent, cuda::CUstream) {
    return ++recorded, cuda::kSuccess;
  };
  gpu_.table().EventElapsedTime = [](float* ms, cuda::CUevent, cuda::CUevent) {
    return *ms = 5, cuda::kSuccess;
  };
  for (const bool timed : {true, false}) {
    recorded = 0;
    ASSERT_OK_AND_ASSIGN(const auto ring, Launch(*session_, absl::InfiniteDuration(), timed));
    ASSERT_THAT(ring->Wait(absl::Minutes(1)), IsOk());
    channel::CompletionEntry done;
    ASSERT_EQ(ring->Reap({&done, 1}), 1u);
    EXPECT_THAT(ring->StatusOf(done), IsOk());
    EXPECT_EQ(done.device_ns, timed ? 5'000'000u : 0u);
    EXPECT_EQ(recorded, timed ? 2 : 1);
  }
}

// What comes behind work in flight and fails is answered in its turn; nobody waits for that turn.
TEST_F(CudaDeviceTest, LaunchThatFailsBehindALongOneHoldsUpNoOtherF45) {
  GiveWorkspace();
  HoldWork();
  ASSERT_OK_AND_ASSIGN(const auto first, Launch(*session_));
  ASSERT_THAT(first->Nop(7), IsOk());  // answered once the launch has been taken
  ASSERT_THAT(first->Wait(absl::Minutes(1)), IsOk());
  gpu_.launch_result = cuda::kOutOfMemory;
  ASSERT_OK_AND_ASSIGN(const auto second, Launch(*session_));
  ASSERT_THAT(other_->Load(base::Sha256("sample")), IsOk());  // the loop serves others
  EXPECT_EQ(early(), 0);
  ready() = true;
  ASSERT_THAT(second->Wait(absl::Minutes(1)), IsOk());
  channel::CompletionEntry done;
  ASSERT_EQ(second->Reap({&done, 1}), 1u);
  EXPECT_THAT(second->StatusOf(done),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("3 MiB free of 8")));
  EXPECT_EQ(early(), 0);
}

// A client that leaves with work in flight is waited for by nobody.
TEST_F(CudaDeviceTest, WorkOfAClientThatLeftHoldsUpNoOtherF28) {
  static std::atomic<int> destroyed;
  destroyed = 0;
  GiveWorkspace();
  HoldWork();
  gpu_.table().StreamDestroy = [](cuda::CUstream) { return ++destroyed, cuda::kSuccess; };
  {
    ASSERT_OK_AND_ASSIGN(const auto ring, Launch(*session_));
    // Answered only once the entry before it has been taken.
    ASSERT_THAT(ring->Nop(7), IsOk());
    ASSERT_THAT(ring->Wait(absl::Minutes(1)), IsOk());
  }
  session_.reset();
  // The loop serves others, and has seen the end of the first by the time that it answers.
  for (int i = 0; i < 3; ++i) ASSERT_THAT(other_->Load(base::Sha256("sample")), IsOk());
  EXPECT_EQ(early(), 0);
  ready() = true;
  while (destroyed == 0) std::this_thread::yield();
  EXPECT_EQ(early(), 0);
}

}  // namespace
}  // namespace fusiond::worker
