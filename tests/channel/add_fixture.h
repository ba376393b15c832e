// A session with a ring, an executable that adds, and three buffers: what tests of sessions begin
// with.
//
// Thread-safety: thread-compatible.
#ifndef FUSIOND_TESTS_CHANNEL_ADD_FIXTURE_H_
#define FUSIOND_TESTS_CHANNEL_ADD_FIXTURE_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/memfd.h"
#include "runtime/channel/client_ring.h"
#include "runtime/channel/client_session.h"
#include "tests/channel/fake_device.h"
#include "tests/channel/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond::channel {

inline constexpr absl::Duration kPatience = absl::Seconds(60);

// Waits for `count` completions, in order of arrival.
inline std::vector<CompletionEntry> Collect(ClientRing& ring, size_t count) {
  std::vector<CompletionEntry> all;
  while (all.size() < count) {
    absl::Status waited = ring.Wait(kPatience);
    EXPECT_THAT(waited, testing::IsOk());
    if (!waited.ok()) break;
    CompletionEntry out[16];
    const size_t got = ring.Reap(out);
    all.insert(all.end(), out, out + got);
  }
  return all;
}

inline absl::Status Finish(ClientRing& ring) {
  std::vector<CompletionEntry> completions = Collect(ring, 1);
  return completions.size() == 1 ? ToStatus(completions[0]) : absl::UnknownError("none");
}

struct MappedBuffer {
  Handle handle;
  base::Mapping mapping;
};

inline MappedBuffer AllocateHost(ClientSession& session, uint64_t bytes) {
  auto buffer = session.Allocate(bytes, MemoryKind::kHost);
  EXPECT_THAT(buffer, testing::IsOk());
  auto mapping = base::Mapping::Map(buffer->fd.get(), bytes, true);
  EXPECT_THAT(mapping, testing::IsOk());
  return {buffer->handle, *std::move(mapping)};
}

struct AddFixture {
  explicit AddFixture(testing::ThreadDaemon& daemon, const RingGeometry& geometry = {})
      : session(daemon.Open()),
        ring(*session->OpenRing(geometry)),
        add(session->Load(testing::AddDigest())->handle),
        a(AllocateHost(*session, 4096)),
        b(AllocateHost(*session, 4096)),
        c(AllocateHost(*session, 4096)) {}

  absl::Status Launch(int64_t extent, uint64_t cookie = 0) {
    const TensorArgument tensors[] = {{a.handle, 0}, {b.handle, 0}, {c.handle, 0}};
    return ring->Launch({.executable = add,
                         .tensors = tensors,
                         .extents = absl::MakeConstSpan(&extent, 1),
                         .cookie = cookie});
  }

  std::unique_ptr<ClientSession> session;
  std::unique_ptr<ClientRing> ring;
  Handle add;
  MappedBuffer a, b, c;
};

}  // namespace fusiond::channel

#endif  // FUSIOND_TESTS_CHANNEL_ADD_FIXTURE_H_
