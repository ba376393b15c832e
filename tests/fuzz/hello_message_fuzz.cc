// Packets of the channel's socket: decoders of every message, then supervisor and worker as their
// receivers.
//
// Input: byte 0 = number of descriptors (mod 6), the rest is the packet.
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/channel/messages.h"
#include "runtime/channel/supervisor_connection.h"
#include "runtime/channel/worker_session.h"
#include "tests/channel/fake_device.h"

namespace fusiond::channel {
namespace {

template <typename... M>
void DecodeRequests(const ReceivedMessage& message) {
  (DecodeRequest<M>(message).status().IgnoreError(), ...);
}
template <typename... M>
void DecodeReplies(const ReceivedMessage& message) {
  (DecodeReply<M>(message).status().IgnoreError(), ...);
}

void Decode(const char* packet, size_t size, size_t fds) {
  ReceivedMessage message;
  message.size = std::min(size, kMaxMessageBytes);
  std::memcpy(message.bytes, packet, message.size);
  message.fds.resize(fds);
  DecodeRequests<Hello, Lease, OpenDevice, OpenRing, Load, Unload, Allocate, Import, FreeBuffer,
                 Goodbye, Adopt, WhyEnded>(message);
  DecodeReplies<HelloReply, LeaseReply, OpenDeviceReply, OpenRingReply, LoadReply, UnloadReply,
                AllocateReply, ImportReply, FreeBufferReply, GoodbyeReply, WhyEndedReply>(message);
  if (auto hello = DecodeRequest<Hello>(message); hello.ok()) {
    if (auto agreed = Negotiate(*hello); agreed.ok()) {
      FUSIOND_CHECK((agreed->features & ~kAllFeatures) == 0 && agreed->abi_minor <= kAbiMinor);
    }
  }
}

void SendTo(int socket, const char* packet, size_t size, size_t fds) {
  const int passed[kMaxMessageFds] = {socket, socket, socket, socket};
  SendMessage(socket, {packet, std::min(size, kMaxMessageBytes)},
              absl::MakeConstSpan(passed, std::min(fds, kMaxMessageFds)), absl::ZeroDuration())
      .IgnoreError();
}

void AskSupervisor(const char* packet, size_t size, size_t fds, bool greeted) {
  auto pair = SocketPair();
  FUSIOND_CHECK(pair.ok());
  SupervisorConnection connection(std::move(pair->first));
  if (greeted) {
    FUSIOND_CHECK(Send(pair->second.get(), MakeHello(), {}, absl::ZeroDuration()).ok());
    FUSIOND_CHECK(connection.Next().ok());
  }
  SendTo(pair->second.get(), packet, size, fds);
  connection.Next().status().IgnoreError();
}

void AskWorker(const char* packet, size_t size, size_t fds) {
  auto pair = SocketPair();
  FUSIOND_CHECK(pair.ok());
  testing::FakeDevice device;
  uint64_t next_ring_id = 1;
  auto session = std::make_shared<WorkerSession>(std::move(pair->first), Negotiated(), 1,
                                                 SessionLimits(), &device, &next_ring_id);
  SendTo(pair->second.get(), packet, size, fds);
  session->HandleMessage().IgnoreError();
}

}  // namespace
}  // namespace fusiond::channel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t fds = data[0] % 6;
  const char* packet = reinterpret_cast<const char*>(data + 1);
  fusiond::channel::Decode(packet, size - 1, fds);
  fusiond::channel::AskSupervisor(packet, size - 1, fds, false);
  fusiond::channel::AskSupervisor(packet, size - 1, fds, true);
  fusiond::channel::AskWorker(packet, size - 1, fds);
  return 0;
}
