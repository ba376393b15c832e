// Ring entries and argument slab, as a hostile client may leave them, through a whole
// WorkerSession.
//
// Input: byte 0 = entries (mod 9), byte 1 = lie about the submission tail (signed, 0 = none), byte
// 2 = lie about the completion head; then 64 bytes an entry; the rest goes into the slab. The
// session has executable 0:1 (three tensors, one extent) and buffers 0:1, 1:1, 2:1 of 64 bytes.
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/sha256.h"
#include "runtime/channel/completion.h"
#include "runtime/channel/messages.h"
#include "runtime/channel/region.h"
#include "runtime/channel/worker_session.h"
#include "tests/channel/fake_device.h"

namespace fusiond::channel {
namespace {

constexpr RingGeometry kGeometry{8, 4096};

class Harness {
 public:
  Harness() {
    auto pair = SocketPair();
    FUSIOND_CHECK(pair.ok());
    client_ = std::move(pair->second);
    session_ = std::make_shared<WorkerSession>(std::move(pair->first), Negotiated(), 1,
                                               SessionLimits(), &device_, &next_ring_id_);
    FUSIOND_CHECK(session_->Start().ok());
    FUSIOND_CHECK(ReceiveMessage(client_.get(), absl::ZeroDuration()).ok());
    OpenRing open = Make<OpenRing>();
    open.entries = kGeometry.entries;
    open.slab_bytes = kGeometry.slab_bytes;
    ReceivedMessage opened = Ask(open);
    auto regions = MapRegions(opened.fds[0].get(), opened.fds[1].get(), kGeometry);
    FUSIOND_CHECK(regions.ok());
    regions_ = *std::move(regions);
    Load load = Make<Load>();
    const base::Digest add = testing::AddDigest();
    std::memcpy(load.digest, add.bytes.data(), sizeof(load.digest));
    Ask(load);
    Allocate allocate = Make<Allocate>();
    allocate.bytes = 64;
    allocate.kind = static_cast<uint32_t>(MemoryKind::kHost);
    for (int i = 0; i < 3; ++i) Ask(allocate);
  }

  // False when the session ended and a new harness is needed.
  bool Run(const uint8_t* data, size_t size) {
    const uint32_t entries = data[0] % 9;
    const auto tail_lie = static_cast<int8_t>(data[1]);
    const auto head_lie = static_cast<int8_t>(data[2]);
    data += 3;
    size -= 3;
    for (uint32_t i = 0; i < entries; ++i) {
      SubmissionEntry entry;
      const size_t bytes = std::min(size, sizeof(entry));
      std::memcpy(static_cast<void*>(&entry), data, bytes);
      data += bytes;
      size -= bytes;
      regions_.a.entries[(index_ + i) % kGeometry.entries] = entry;
    }
    std::memcpy(regions_.a.slab, data, std::min<size_t>(size, kGeometry.slab_bytes));
    regions_.a.control->completion_head.value = index_ + static_cast<uint32_t>(head_lie);
    regions_.a.control->submission_tail.value = index_ + entries + static_cast<uint32_t>(tail_lie);
    const auto& ring = session_->rings()[0];
    auto served = session_->ServeRing(ring, 32);
    ring->Publish();
    if (!served.ok()) return false;
    FUSIOND_CHECK(session_->in_flight() == 0);  // exactly one answer each
    for (size_t i = 0; i < *served; ++i) {
      const CompletionEntry& answer = regions_.b.entries[(index_ + i) % kGeometry.entries];
      FUSIOND_CHECK(answer.code <= static_cast<uint32_t>(CompletionCode::kDraining));
      ToStatus(answer).IgnoreError();
    }
    index_ += static_cast<uint32_t>(*served);
    return tail_lie == 0 && head_lie == 0;
  }

 private:
  template <typename M>
  ReceivedMessage Ask(const M& request) {
    FUSIOND_CHECK(Send(client_.get(), request, {}, absl::ZeroDuration()).ok());
    FUSIOND_CHECK(session_->HandleMessage().ok());
    auto reply = ReceiveMessage(client_.get(), absl::ZeroDuration());
    FUSIOND_CHECK(reply.ok());
    return *std::move(reply);
  }

  testing::FakeDevice device_;
  uint64_t next_ring_id_ = 1;
  base::UniqueFd client_;
  std::shared_ptr<WorkerSession> session_;
  ClientRegions regions_;
  uint32_t index_ = kFirstIndex;
};

}  // namespace
}  // namespace fusiond::channel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* harness = new std::unique_ptr<fusiond::channel::Harness>();
  if (size < 3) return 0;
  if (*harness == nullptr) *harness = std::make_unique<fusiond::channel::Harness>();
  if (!(*harness)->Run(data, size)) harness->reset();
  return 0;
}
