// Both ends of a session, through a supervisor, in threads of one process.
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/memfd.h"
#include "runtime/channel/client_ring.h"
#include "runtime/channel/client_session.h"
#include "runtime/channel/region.h"
#include "tests/channel/add_fixture.h"
#include "tests/channel/fake_device.h"
#include "tests/channel/open_fds.h"
#include "tests/channel/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond::channel {
namespace {

using ::fusiond::testing::AddDigest;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::kLeased;
using ::fusiond::testing::LosesContextDigest;
using ::fusiond::testing::OpenFds;
using ::fusiond::testing::SlowAddDigest;
using ::fusiond::testing::StatusIs;
using ::fusiond::testing::ThreadDaemon;
using ::fusiond::testing::WideDigest;
using ::testing::HasSubstr;

TEST(SessionTest, LaunchAddsInSharedMemory) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  std::memset(f.a.mapping.data(), 3, 4096);
  std::memset(f.b.mapping.data(), 4, 4096);
  ASSERT_THAT(f.Launch(100, 42), IsOk());
  std::vector<CompletionEntry> done = Collect(*f.ring, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_THAT(ToStatus(done[0]), IsOk());
  EXPECT_EQ(done[0].cookie, 42u);
  EXPECT_EQ(done[0].epoch, f.session->epoch());
  EXPECT_EQ(f.c.mapping.view().substr(0, 101), std::string(100, 7) + '\0');
  EXPECT_EQ(f.ring->outstanding(), 0u);
  EXPECT_THAT(f.ring->Wait(kPatience), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(SessionTest, CopyMovesBytesBetweenBuffers) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  std::strcpy(f.a.mapping.data() + 8, "over there");
  ASSERT_THAT(
      f.ring->Copy({.source = {f.a.handle, 8}, .destination = {f.b.handle, 96}, .bytes = 11}),
      IsOk());
  EXPECT_THAT(Finish(*f.ring), IsOk());
  EXPECT_STREQ(f.b.mapping.data() + 96, "over there");
}

TEST(SessionTest, ManyNopsInBatchesKeepTheirCookies) {
  ThreadDaemon daemon;
  auto session = daemon.Open();
  ASSERT_OK_AND_ASSIGN(auto ring, session->OpenRing({32, 4096}));
  uint64_t sent = 0, seen = 0;
  while (seen < 5000) {
    while (ring->credits() > 0) ASSERT_THAT(ring->Nop(sent++), IsOk());
    EXPECT_THAT(ring->Nop(0), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("32")));
    for (const CompletionEntry& entry : Collect(*ring, 1)) ASSERT_EQ(entry.cookie, seen++);
  }
}

TEST(SessionTest, WidestLaunchPassesAllArguments) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  ASSERT_OK_AND_ASSIGN(auto wide, f.session->Load(WideDigest()));
  EXPECT_EQ(wide.tensors, kMaxTensors);
  std::vector<TensorArgument> tensors(kMaxTensors, TensorArgument{f.a.handle, 0});
  tensors.back() = {f.c.handle, 0};
  std::vector<int64_t> extents(kMaxExtents, 8);
  std::memset(f.a.mapping.data(), 1, 8);
  const LaunchCommand command{.executable = wide.handle, .tensors = tensors, .extents = extents};
  // More of them than the slab holds at once.
  for (int i = 0; i < 20; ++i) {
    absl::Status queued = f.ring->Launch(command);
    if (absl::IsResourceExhausted(queued)) {
      EXPECT_THAT(queued, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("slab")));
      Collect(*f.ring, 1);
      --i;
      continue;
    }
    ASSERT_THAT(queued, IsOk());
  }
  for (const CompletionEntry& entry : Collect(*f.ring, f.ring->outstanding())) {
    EXPECT_THAT(ToStatus(entry), IsOk());
  }
  EXPECT_EQ(f.c.mapping.data()[7], static_cast<char>(1023));
  tensors.push_back(tensors[0]);
  EXPECT_THAT(f.ring->Launch({.executable = wide.handle, .tensors = tensors, .extents = extents}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1025")));
}

TEST(SessionTest, BadLaunchesAreAnsweredWithWhatIsWrong) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  const TensorArgument good[] = {{f.a.handle, 0}, {f.b.handle, 0}, {f.c.handle, 0}};
  const int64_t extent[] = {16};
  const Handle stale{f.add.slot, f.add.generation + 1};
  const TensorArgument unknown[] = {{f.a.handle, 0}, {{99, 1}, 0}, {f.c.handle, 0}};
  const TensorArgument beyond[] = {{f.a.handle, 0}, {f.b.handle, 0}, {f.c.handle, ~uint64_t{0}}};
  const TensorArgument just_beyond[] = {{f.a.handle, 0}, {f.b.handle, 4097}, {f.c.handle, 0}};
  const TensorArgument short_one[] = {{f.a.handle, 4090}, {f.b.handle, 0}, {f.c.handle, 0}};
  const struct {
    LaunchCommand command;
    absl::StatusCode code;
    const char* text;
  } cases[] = {
      {{.executable = stale, .tensors = good, .extents = extent},
       absl::StatusCode::kNotFound,
       "unknown executable"},
      {{.executable = f.add, .tensors = absl::MakeSpan(good, 2), .extents = extent},
       absl::StatusCode::kInvalidArgument,
       "tensors, limit 3, actual 2"},
      {{.executable = f.add, .tensors = good, .extents = {}},
       absl::StatusCode::kInvalidArgument,
       "extents, limit 1, actual 0"},
      {{.executable = f.add, .tensors = unknown, .extents = extent},
       absl::StatusCode::kNotFound,
       "unknown buffer, index 1, actual 99"},
      {{.executable = f.add, .tensors = beyond, .extents = extent},
       absl::StatusCode::kInvalidArgument,
       "index 2, limit 4096, actual 18446744073709551615"},
      {{.executable = f.add, .tensors = just_beyond, .extents = extent},
       absl::StatusCode::kInvalidArgument,
       "index 1, limit 4096, actual 4097"},  // before the device has seen it
      {{.executable = f.add, .tensors = short_one, .extents = extent},
       absl::StatusCode::kInvalidArgument,
       "index 0, limit 4096, actual 4106"},
      {{.executable = f.add, .tensors = good, .extents = extent, .stream_slot = 16},
       absl::StatusCode::kInvalidArgument,
       "stream slot, limit 16, actual 16"},
      {{.executable = f.add, .tensors = good, .extents = extent, .deadline = absl::Nanoseconds(5)},
       absl::StatusCode::kDeadlineExceeded,
       "limit 5"},
  };
  for (const auto& c : cases) {
    ASSERT_THAT(f.ring->Launch(c.command), IsOk());
    EXPECT_THAT(Finish(*f.ring), StatusIs(c.code, HasSubstr(c.text)));
  }
  ASSERT_THAT(f.ring->Copy({{f.a.handle, 0}, {f.a.handle, 8}, 9}), IsOk());
  EXPECT_THAT(Finish(*f.ring), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overlap")));
  ASSERT_THAT(f.ring->Copy({{f.a.handle, 0}, {f.b.handle, 4000}, 97}), IsOk());
  EXPECT_THAT(Finish(*f.ring), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("index 1, limit 4096, actual 4097")));
  ASSERT_THAT(f.Launch(16), IsOk()) << "the session goes on";
  EXPECT_THAT(Finish(*f.ring), IsOk());
}

TEST(SessionTest, RequestsFailWithTheDevicesReason) {
  ThreadDaemon daemon;
  auto session = daemon.Open();
  EXPECT_THAT(session->Load(base::Sha256("no such")).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("executable")));
  EXPECT_THAT(session->Allocate(uint64_t{1} << 40, MemoryKind::kHost).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("limit is")));
  EXPECT_THAT(session->Allocate(0, MemoryKind::kHost).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(session->Unload({0, 1}), StatusIs(absl::StatusCode::kNotFound, HasSubstr("0:1")));
  EXPECT_THAT(session->OpenRing({3, 4096}).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(session->Lost());
}

TEST(SessionTest, SlowLoadIsAnsweredLater) {
  ThreadDaemon daemon;
  auto session = daemon.Open();
  ASSERT_OK_AND_ASSIGN(auto loaded, session->Load(SlowAddDigest()));
  EXPECT_EQ(loaded.tensors, 3u);
  EXPECT_THAT(session->Unload(loaded.handle), IsOk());
  EXPECT_THAT(session->Unload(loaded.handle), StatusIs(absl::StatusCode::kNotFound));
}

TEST(SessionTest, LeaseIsImmutable) {
  ThreadDaemon daemon;
  ASSERT_OK_AND_ASSIGN(SupervisorClient client, SupervisorClient::Connect(daemon.path()));
  ASSERT_OK_AND_ASSIGN(auto lease, client.Lease(AddDigest()));
  ASSERT_OK_AND_ASSIGN(base::Mapping mapping,
                       base::Mapping::Map(lease.fd.get(), lease.bytes, false));
  EXPECT_EQ(mapping.view(), kLeased);
  EXPECT_THAT(client.Lease(base::Sha256("other")).status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(client.OpenDevice("GPU-0").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no device GPU-0")));
  EXPECT_THAT(client.OpenDevice("cpu"), IsOk()) << "a refusal is not the end";
}

TEST(SessionTest, ImportedMemoryIsUsed) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  ASSERT_OK_AND_ASSIGN(base::SharedMemory mine, base::CreatePeerWritable("mine", 4096));
  ASSERT_OK_AND_ASSIGN(Handle imported, f.session->Import(mine.fd.get(), 4096, MemoryKind::kHost));
  std::strcpy(mine.mapping.data(), "mine");
  ASSERT_THAT(f.ring->Copy({{imported, 0}, {f.a.handle, 0}, 5}), IsOk());
  EXPECT_THAT(Finish(*f.ring), IsOk());
  EXPECT_STREQ(f.a.mapping.data(), "mine");
  EXPECT_THAT(f.session->Import(mine.fd.get(), 8192, MemoryKind::kHost).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("8192")));
  base::UniqueFd unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_THAT(f.session->Import(unsealed.get(), 4096, MemoryKind::kHost).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("seals")));
}

TEST(SessionTest, F30_ClientThatNeverReapsBlocksOnlyItself) {
  ThreadDaemon daemon;
  AddFixture lazy(daemon, {4, 4096});
  AddFixture other(daemon);
  for (int i = 0; i < 4; ++i) ASSERT_THAT(lazy.Launch(8), IsOk());
  lazy.ring->Flush();
  EXPECT_THAT(lazy.Launch(8), StatusIs(absl::StatusCode::kResourceExhausted));
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(other.Launch(8), IsOk());
    ASSERT_THAT(Finish(*other.ring), IsOk());
  }
  EXPECT_EQ(Collect(*lazy.ring, 4).size(), 4u);
}

TEST(SessionTest, F35_BufferFreedWithWorkInFlightLivesUntilItsCompletion) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  daemon.device.hold = true;
  std::memset(f.a.mapping.data(), 1, 8);
  ASSERT_THAT(f.Launch(8), IsOk());
  f.ring->Flush();
  while (daemon.device.launches == 0) std::this_thread::yield();
  ASSERT_THAT(f.session->Free(f.c.handle), IsOk());
  EXPECT_THAT(f.session->Free(f.c.handle), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(daemon.device.live_buffers, 3);
  daemon.device.hold = false;
  EXPECT_THAT(Finish(*f.ring), IsOk());
  EXPECT_EQ(f.c.mapping.data()[7], 1);
  ASSERT_THAT(f.Launch(8), IsOk());
  EXPECT_THAT(Finish(*f.ring), StatusIs(absl::StatusCode::kNotFound, HasSubstr("index 2")));
  EXPECT_EQ(daemon.device.live_buffers, 2);
}

TEST(SessionTest, F37_HandlesOfAnotherSessionMeanNothing) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  auto thief = daemon.Open();
  ASSERT_OK_AND_ASSIGN(auto ring, thief->OpenRing());
  ASSERT_THAT(ring->Copy({{f.a.handle, 0}, {f.b.handle, 0}, 8}), IsOk());
  EXPECT_THAT(Finish(*ring), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(thief->Free(f.a.handle), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(thief->Unload(f.add), StatusIs(absl::StatusCode::kNotFound));
}

TEST(SessionTest, F31_EndOfTheWorkerCompletesWhatWasOutstanding) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  daemon.device.hold = true;
  for (uint64_t i = 0; i < 5; ++i) ASSERT_THAT(f.Launch(8, i), IsOk());
  f.ring->Flush();
  ASSERT_THAT(f.Launch(8, 5), IsOk());  // not even flushed
  while (daemon.device.launches < 5) std::this_thread::yield();
  daemon.StopWorker();
  std::vector<CompletionEntry> done = Collect(*f.ring, 6);
  ASSERT_EQ(done.size(), 6u);
  for (uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(done[i].cookie, i);
    EXPECT_THAT(ToStatus(done[i]), StatusIs(absl::StatusCode::kAborted, HasSubstr("CONTEXT_LOST")));
  }
  EXPECT_TRUE(f.session->Lost());
  EXPECT_EQ(f.ring->worker_state(), WorkerState::kLost);
  EXPECT_THAT(f.Launch(8), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(f.session->Load(AddDigest()).status(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(SessionTest, F42_LostContextIsToldToEveryEntry) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  AddFixture other(daemon);
  ASSERT_OK_AND_ASSIGN(auto fatal, f.session->Load(LosesContextDigest()));
  f.add = fatal.handle;
  ASSERT_THAT(f.Launch(8, 1), IsOk());
  ASSERT_THAT(f.ring->Nop(2), IsOk());
  f.ring->Flush();
  daemon.JoinWorker();
  EXPECT_THAT(daemon.run_status, StatusIs(absl::StatusCode::kInternal, "illegal address"));
  std::vector<CompletionEntry> done = Collect(*f.ring, 2);
  EXPECT_EQ(done[1].cookie, 2u);
  EXPECT_THAT(ToStatus(done[1]), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(other.ring->worker_state(), WorkerState::kLost);
}

TEST(SessionTest, DrainFinishesWorkInFlightAndRefusesNew) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  daemon.device.hold = true;
  ASSERT_THAT(f.Launch(8, 1), IsOk());
  f.ring->Flush();
  while (daemon.device.launches == 0) std::this_thread::yield();
  daemon.Drain(100);
  while (f.ring->worker_state() != WorkerState::kDraining) std::this_thread::yield();
  ASSERT_THAT(f.Launch(8, 2), IsOk());
  EXPECT_THAT(Finish(*f.ring), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("DRAINING")));
  daemon.device.hold = false;
  std::vector<CompletionEntry> done = Collect(*f.ring, 1);
  EXPECT_EQ(done[0].cookie, 1u);
  daemon.JoinWorker();
  EXPECT_THAT(daemon.run_status, IsOk());
}

TEST(SessionTest, DrainEndsAtItsDeadline) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  daemon.device.hold = true;
  ASSERT_THAT(f.Launch(8), IsOk());
  f.ring->Flush();
  while (daemon.device.launches == 0) std::this_thread::yield();
  daemon.Drain(1);
  daemon.JoinWorker();
  EXPECT_THAT(Finish(*f.ring), StatusIs(absl::StatusCode::kAborted));
}

TEST(SessionTest, GoodbyeFreesEverything) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  EXPECT_EQ(daemon.device.live_buffers, 3);
  EXPECT_EQ(daemon.device.live_executables, 1);
  EXPECT_THAT(f.session->Goodbye(), IsOk());
  auto next = daemon.Open();  // served after the goodbye
  EXPECT_EQ(daemon.device.live_buffers, 0);
  EXPECT_EQ(daemon.device.live_executables, 0);
  EXPECT_THAT(f.Launch(8), StatusIs(absl::StatusCode::kAborted));
}

TEST(SessionTest, HangUpFreesEverythingWithoutGoodbye) {
  ThreadDaemon daemon;
  const size_t before = OpenFds();
  { AddFixture f(daemon); }
  while (daemon.device.live_buffers != 0) std::this_thread::yield();
  while (OpenFds() != before) std::this_thread::yield();
}

TEST(SessionTest, RingsOfOneSessionServeTheirThreads) {
  ThreadDaemon daemon;
  AddFixture f(daemon);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto ring = f.session->OpenRing({16, 4096});
      ASSERT_THAT(ring, IsOk());
      const TensorArgument tensors[] = {{f.a.handle, 0}, {f.b.handle, 0}, {f.c.handle, 0}};
      const int64_t extent[] = {64};
      for (uint64_t i = 0; i < 500; ++i) {
        ASSERT_THAT((*ring)->Launch({f.add, tensors, extent, 0, i}), IsOk());
        std::vector<CompletionEntry> done = Collect(**ring, 1);
        ASSERT_EQ(done[0].cookie, i);
        ASSERT_THAT(ToStatus(done[0]), IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SessionTest, EventLoopCanWaitOnTheDescriptor) {
  ThreadDaemon daemon;
  auto session = daemon.Open();
  ASSERT_OK_AND_ASSIGN(auto ring, session->OpenRing());
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_THAT(ring->Nop(i), IsOk());
    ring->Flush();
    if (ring->BeginWait()) {
      pollfd fd{ring->wake_fd(), POLLIN, 0};
      ASSERT_EQ(poll(&fd, 1, -1), 1);
    }
    ring->EndWait();
    CompletionEntry out[1];
    ASSERT_EQ(ring->Reap(out), 1u);
    ASSERT_EQ(out[0].cookie, i);
  }
}

TEST(SessionTest, RingsOfASessionShareALimitOfBytes) {
  constexpr RingGeometry kRing{16, 4096};
  WorkerLoopOptions options;
  options.limits.max_ring_bytes = 2 * (RegionABytes(kRing) + RegionBBytes(kRing));
  ThreadDaemon daemon(options);
  auto session = daemon.Open();
  ASSERT_OK_AND_ASSIGN(auto first, session->OpenRing(kRing));
  ASSERT_OK_AND_ASSIGN(auto second, session->OpenRing(kRing));
  EXPECT_THAT(session->OpenRing(kRing).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("bytes a session")));
}

TEST(SessionTest, LimitsOfASessionAreNamed) {
  WorkerLoopOptions options;
  options.limits.max_rings = 2;
  options.limits.max_buffers = 1;
  options.limits.max_executables = 1;
  options.max_sessions = 1;
  ThreadDaemon daemon(options);
  auto session = daemon.Open();
  ASSERT_OK_AND_ASSIGN(auto first, session->OpenRing({16, 4096}));
  ASSERT_OK_AND_ASSIGN(auto second, session->OpenRing({16, 4096}));
  EXPECT_THAT(session->OpenRing({16, 4096}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("limit is 2")));
  EXPECT_THAT(session->Load(AddDigest()), IsOk());
  EXPECT_THAT(session->Load(AddDigest()).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("executables")));
  EXPECT_THAT(session->Allocate(8, MemoryKind::kHost), IsOk());
  EXPECT_THAT(session->Allocate(8, MemoryKind::kHost).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("buffers")));
  ASSERT_OK_AND_ASSIGN(SupervisorClient client, SupervisorClient::Connect(daemon.path()));
  EXPECT_THAT(client.OpenDevice("cpu").status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("sessions")));
}

}  // namespace
}  // namespace fusiond::channel
