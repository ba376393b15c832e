// A Device for tests: buffers are memfds, an executable adds bytes, and work can be held back.
//
// LAUNCH with n tensors and one extent e: tensor n-1 := sum of the others, over e bytes.
// Executables are registered by digest. Thread-safety: settings and counters may be used from any
// thread, the rest on the loop's.
#ifndef FUSIOND_TESTS_CHANNEL_FAKE_DEVICE_H_
#define FUSIOND_TESTS_CHANNEL_FAKE_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/memfd.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "runtime/channel/device.h"

namespace fusiond::testing {

class FakeBuffer : public channel::SessionBuffer {
 public:
  FakeBuffer(base::UniqueFd fd, base::Mapping mapping, uint64_t bytes, std::atomic<int>* live)
      : SessionBuffer(bytes), fd(std::move(fd)), mapping(std::move(mapping)), live_(live) {
    ++*live_;
  }
  ~FakeBuffer() override { --*live_; }

  base::UniqueFd fd;
  base::Mapping mapping;

 private:
  std::atomic<int>* const live_;
};

class FakeExecutable : public channel::SessionExecutable {
 public:
  FakeExecutable(uint32_t tensors, uint32_t extents, std::atomic<int>* live)
      : SessionExecutable(tensors, extents), live_(live) {
    ++*live_;
  }
  ~FakeExecutable() override { --*live_; }

 private:
  std::atomic<int>* const live_;
};

inline base::Digest AddDigest() { return base::Sha256("add"); }           // 3 tensors, 1 extent
inline base::Digest SlowAddDigest() { return base::Sha256("slow add"); }  // loaded by a later Poll
inline base::Digest WideDigest() { return base::Sha256("wide"); }  // 1024 tensors, 8192 extents
inline base::Digest LosesContextDigest() { return base::Sha256("lose"); }  // calls on_lose

class FakeDevice : public channel::Device {
 public:
  // While true, launches and copies are kept and not run, each for at most `hold_for`.
  std::atomic<bool> hold{false};
  absl::Duration hold_for = absl::InfiniteDuration();
  std::atomic<int> live_buffers{0};
  std::atomic<int> live_executables{0};
  std::atomic<int> launches{0};
  std::function<void()> on_lose = [] {};

  void Load(const base::Digest& digest, LoadCallback done) override {
    if (digest == SlowAddDigest()) {
      loads_.push_back(std::move(done));
    } else if (digest == AddDigest() || digest == LosesContextDigest()) {
      loses_ = digest == LosesContextDigest();
      done(std::make_shared<FakeExecutable>(3, 1, &live_executables));
    } else if (digest == WideDigest()) {
      done(std::make_shared<FakeExecutable>(channel::kMaxTensors, channel::kMaxExtents,
                                            &live_executables));
    } else {
      done(absl::NotFoundError(absl::StrCat("executable ", digest.Hex())));
    }
  }

  absl::StatusOr<channel::AllocatedBuffer> Allocate(uint64_t bytes, channel::MemoryKind) override {
    if (bytes > kMaxBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("limit is ", kMaxBytes, " bytes, asked for ", bytes));
    }
    FUSIOND_ASSIGN_OR_RETURN(base::SharedMemory memory,
                             base::CreatePeerWritable("fake-buffer", bytes));
    base::UniqueFd fd = std::move(memory.fd);
    auto buffer = std::make_shared<FakeBuffer>(base::UniqueFd(), std::move(memory.mapping), bytes,
                                               &live_buffers);
    return channel::AllocatedBuffer{std::move(buffer), channel::MemoryKind::kHost, std::move(fd)};
  }

  absl::StatusOr<std::shared_ptr<channel::SessionBuffer>> Import(base::UniqueFd fd, uint64_t bytes,
                                                                 channel::MemoryKind) override {
    FUSIOND_ASSIGN_OR_RETURN(base::Mapping mapping, base::Mapping::Map(fd.get(), bytes, true));
    return std::make_shared<FakeBuffer>(std::move(fd), std::move(mapping), bytes, &live_buffers);
  }

  void Launch(const channel::LaunchRequest& request, channel::Ticket ticket) override {
    ++launches;
    if (loses_) on_lose();
    // Any values come here: only the kernel's own shapes say how far a tensor reaches.
    const uint64_t extent = static_cast<uint64_t>(request.extents[0]);
    std::vector<std::shared_ptr<channel::SessionBuffer>> keep;
    std::vector<char*> data;
    channel::Outcome outcome;
    for (uint32_t i = 0; i < request.tensors.size(); ++i) {
      auto* buffer = static_cast<FakeBuffer*>(request.tensors[i].buffer);
      const uint64_t offset = request.tensors[i].offset;
      if (extent > buffer->bytes() - offset) {
        outcome.code = channel::CompletionCode::kInvalidArgument;
        outcome.reason = channel::CompletionReason::kBufferRange;
        outcome.index = i;
        outcome.limit = buffer->bytes();
        outcome.actual = offset + extent;
        return ticket.Finish(outcome);
      }
      keep.push_back(buffer->shared_from_this());
      data.push_back(buffer->mapping.data() + offset);
    }
    Run(std::move(ticket), [extent, data, keep = std::move(keep)] {
      for (uint64_t at = 0; at < extent; ++at) {
        char sum = 0;
        for (size_t i = 0; i + 1 < data.size(); ++i) sum = static_cast<char>(sum + data[i][at]);
        data.back()[at] = sum;
      }
    });
  }

  void Copy(const channel::CopyRequest& request, channel::Ticket ticket) override {
    auto source = std::static_pointer_cast<FakeBuffer>(request.source.buffer->shared_from_this());
    auto destination =
        std::static_pointer_cast<FakeBuffer>(request.destination.buffer->shared_from_this());
    Run(std::move(ticket),
        [=, from = request.source.offset, to = request.destination.offset, bytes = request.bytes] {
          std::memcpy(destination->mapping.data() + to, source->mapping.data() + from, bytes);
        });
  }

  absl::Duration Poll() override {
    for (LoadCallback& done : std::exchange(loads_, {})) {
      done(std::make_shared<FakeExecutable>(3, 1, &live_executables));
    }
    const absl::Duration now = base::Clock::System().Now();
    while (!held_.empty() && (!hold || held_.front().due <= now)) {
      Held held = std::move(held_.front());
      held_.pop_front();
      held.work();
      held.ticket.Finish(channel::Outcome());
    }
    return held_.empty() ? absl::InfiniteDuration() : absl::Microseconds(100);
  }

  void ForgetRing(uint64_t) override {}

 private:
  static constexpr uint64_t kMaxBytes = 1 << 20;
  struct Held {
    channel::Ticket ticket;
    std::function<void()> work;
    absl::Duration due;
  };

  void Run(channel::Ticket ticket, std::function<void()> work) {
    if (hold) {
      held_.push_back({std::move(ticket), std::move(work), base::Clock::System().Now() + hold_for});
    } else {
      work();
      ticket.Finish(channel::Outcome());
    }
  }

  bool loses_ = false;
  std::vector<LoadCallback> loads_;
  std::deque<Held> held_;
};

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_CHANNEL_FAKE_DEVICE_H_
