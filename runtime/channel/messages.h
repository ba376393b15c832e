// The messages of the channel's SOCK_SEQPACKET connection: one packet each, fixed size and fixed
// number of descriptors.
//
//   to the supervisor   HELLO, then any number of LEASE and WHY_ENDED, then at most one OPEN_DEVICE
//   to the worker       OPEN_RING, LOAD, UNLOAD, ALLOC, IMPORT, FREE_BUFFER, GOODBYE
//   supervisor→worker   ADOPT (on the worker's own socket): serve this connection
//
// A client has one request in flight a connection; each has one reply. OPEN_DEVICE is answered by
// the worker once it has the connection, by the supervisor only when it fails. A packet that does
// not decode ends the connection.
//
// HELLO and its reply keep size and field places in all versions, so that any two versions can tell
// each other why they do not fit.
//
// Thread-safety: values and pure functions.
#ifndef FUSIOND_RUNTIME_CHANNEL_MESSAGES_H_
#define FUSIOND_RUNTIME_CHANNEL_MESSAGES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/sha256.h"
#include "runtime/channel/device.h"
#include "runtime/channel/layout.h"
#include "runtime/channel/socket.h"

namespace fusiond::channel {

enum class MessageType : uint32_t {
  kHello = 1,
  kHelloReply = 2,
  kLease = 3,
  kLeaseReply = 4,
  kOpenDevice = 5,
  kOpenDeviceReply = 6,
  kOpenRing = 7,
  kOpenRingReply = 8,
  kLoad = 9,
  kLoadReply = 10,
  kUnload = 11,
  kUnloadReply = 12,
  kAllocate = 13,
  kAllocateReply = 14,
  kImport = 15,
  kImportReply = 16,
  kFreeBuffer = 17,
  kFreeBufferReply = 18,
  kGoodbye = 19,
  kGoodbyeReply = 20,
  kAdopt = 21,
  kWhyEnded = 22,
  kWhyEndedReply = 23,
};

struct MessageHeader {
  uint32_t type;
  uint32_t bytes;  // of the whole message
};

// Head of every reply. On an error the rest of the message is zero and carries no descriptor.
struct ReplyHead {
  MessageHeader header;
  uint32_t code;     // absl::StatusCode
  uint32_t process;  // OPEN_DEVICE: the worker's process id, as it knows it (ABI 1.1); else zero
  char text[512];    // the error, or WHY_ENDED's answer; ends with a zero byte; cut to fit
};

inline constexpr uint64_t kHelloMagic = 0x6f6c6c6568647366;  // "fsdhello"

struct Hello {
  static constexpr MessageType kType = MessageType::kHello;
  static constexpr size_t kFds = 0;
  MessageHeader header;
  uint64_t magic;
  uint16_t abi_major;
  uint16_t abi_minor;
  uint32_t reserved0;
  uint64_t features;
  uint64_t reserved[4];
};
struct HelloReply {
  static constexpr MessageType kType = MessageType::kHelloReply;
  static constexpr size_t kFds = 0;
  ReplyHead head;
  uint16_t abi_major;  // the daemon's
  uint16_t abi_minor;  // negotiated
  uint32_t reserved0;
  uint64_t features;  // negotiated
  uint64_t reserved[4];
};

struct Lease {
  static constexpr MessageType kType = MessageType::kLease;
  static constexpr size_t kFds = 0;
  MessageHeader header;
  uint8_t digest[32];
};
struct LeaseReply {
  static constexpr MessageType kType = MessageType::kLeaseReply;
  static constexpr size_t kFds = 1;  // immutable memfd with the serialised executable
  ReplyHead head;
  uint64_t bytes;
};

// What became of a worker of this identity; answered once that worker has ended (ABI 1.2).
struct WhyEnded {
  static constexpr MessageType kType = MessageType::kWhyEnded;
  static constexpr size_t kFds = 0;
  MessageHeader header;
  uint32_t process;  // as OPEN_DEVICE's reply named it
  uint32_t reserved;
};
struct WhyEndedReply {
  static constexpr MessageType kType = MessageType::kWhyEndedReply;
  static constexpr size_t kFds = 0;
  ReplyHead head;  // NOT_FOUND: no such worker of this identity
};

struct OpenDevice {
  static constexpr MessageType kType = MessageType::kOpenDevice;
  static constexpr size_t kFds = 0;
  MessageHeader header;
  char device[64];  // "cpu" or a device UUID; zero-padded
};
struct OpenDeviceReply {
  static constexpr MessageType kType = MessageType::kOpenDeviceReply;
  static constexpr size_t kFds = 0;
  ReplyHead head;
  uint64_t epoch;
  uint32_t stream_slots;  // a ring
  uint32_t max_rings;     // a session
};

struct OpenRing {
  static constexpr MessageType kType = MessageType::kOpenRing;
  static constexpr size_t kFds = 0;
  MessageHeader header;
  uint32_t entries;     // power of two
  uint32_t slab_bytes;  // multiple of 4096
};
struct OpenRingReply {
  static constexpr MessageType kType = MessageType::kOpenRingReply;
  static constexpr size_t kFds = 4;  // region A, region B, eventfd to the worker, to the client
  ReplyHead head;
  uint32_t entries;
  uint32_t slab_bytes;
};

struct Load {
  static constexpr MessageType kType = MessageType::kLoad;
  static constexpr size_t kFds = 0;
  MessageHeader header;
  uint8_t digest[32];
};
struct LoadReply {
  static constexpr MessageType kType = MessageType::kLoadReply;
  static constexpr size_t kFds = 0;
  ReplyHead head;
  Handle executable;
  uint32_t tensors;
  uint32_t extents;
};

struct Unload {
  static constexpr MessageType kType = MessageType::kUnload;
  static constexpr size_t kFds = 0;
  MessageHeader header;
  Handle executable;
};
struct UnloadReply {
  static constexpr MessageType kType = MessageType::kUnloadReply;
  static constexpr size_t kFds = 0;
  ReplyHead head;
};

struct Allocate {
  static constexpr MessageType kType = MessageType::kAllocate;
  static constexpr size_t kFds = 0;
  MessageHeader header;
  uint64_t bytes;
  uint32_t kind;  // MemoryKind asked for
  uint32_t reserved;
};
struct AllocateReply {
  static constexpr MessageType kType = MessageType::kAllocateReply;
  static constexpr size_t kFds = 1;  // the memory
  ReplyHead head;
  Handle buffer;
  uint64_t bytes;
  uint32_t kind;
  uint32_t reserved;
};

struct Import {
  static constexpr MessageType kType = MessageType::kImport;
  static constexpr size_t kFds = 1;  // the memory
  MessageHeader header;
  uint64_t bytes;
  uint32_t kind;
  uint32_t reserved;
};
struct ImportReply {
  static constexpr MessageType kType = MessageType::kImportReply;
  static constexpr size_t kFds = 0;
  ReplyHead head;
  Handle buffer;
};

struct FreeBuffer {
  static constexpr MessageType kType = MessageType::kFreeBuffer;
  static constexpr size_t kFds = 0;
  MessageHeader header;
  Handle buffer;
};
struct FreeBufferReply {
  static constexpr MessageType kType = MessageType::kFreeBufferReply;
  static constexpr size_t kFds = 0;
  ReplyHead head;
};

struct Goodbye {
  static constexpr MessageType kType = MessageType::kGoodbye;
  static constexpr size_t kFds = 0;
  MessageHeader header;
};
struct GoodbyeReply {
  static constexpr MessageType kType = MessageType::kGoodbyeReply;
  static constexpr size_t kFds = 0;
  ReplyHead head;
};

struct Adopt {
  static constexpr MessageType kType = MessageType::kAdopt;
  static constexpr size_t kFds = 1;  // the client's connection
  MessageHeader header;
  uint16_t abi_minor;
  uint16_t reserved0;
  uint32_t reserved1;
  uint64_t features;
};

static_assert(sizeof(ReplyHead) == 528);
static_assert(sizeof(Hello) == 64 && sizeof(HelloReply) == 576);

// What both ends may use after HELLO.
struct Negotiated {
  uint16_t abi_minor = kAbiMinor;
  uint64_t features = kAllFeatures;
};

// A zeroed message with its header filled in.
template <typename M>
M Make() {
  static_assert(std::is_trivially_copyable_v<M> && sizeof(M) <= kMaxMessageBytes);
  M message;
  std::memset(static_cast<void*>(&message), 0, sizeof(message));
  MessageHeader header{static_cast<uint32_t>(M::kType), sizeof(M)};
  std::memcpy(&message, &header, sizeof(header));
  return message;
}

Hello MakeHello();
// INVALID_ARGUMENT when the name is empty or longer than 63 bytes.
absl::StatusOr<OpenDevice> MakeOpenDevice(absl::string_view device);

// The type that a packet announces. INVALID_ARGUMENT when it is too short for a header, its length
// is not the announced one, or the type is unknown.
absl::StatusOr<MessageType> PeekType(const ReceivedMessage& message);

namespace internal {
absl::Status CheckRequest(const ReceivedMessage& message, MessageType type, size_t bytes,
                          size_t fds);
absl::Status CheckReply(const ReceivedMessage& message, MessageType type, size_t bytes, size_t fds);
absl::Status ReplyStatus(const ReplyHead& head);
void SetReply(const absl::Status& status, ReplyHead* head);
void SetText(absl::string_view text, ReplyHead* head);
std::string TextOf(const ReplyHead& head);
// Rules beyond size and counts; INVALID_ARGUMENT names the field.
absl::Status CheckFields(const Hello& m);
absl::Status CheckFields(const OpenDevice& m);
absl::Status CheckFields(const Allocate& m);
absl::Status CheckFields(const Import& m);
}  // namespace internal

// Decodes a request: exact size, exactly M::kFds descriptors, field rules. INVALID_ARGUMENT names
// what is wrong. The descriptors stay in `message`.
template <typename M>
absl::StatusOr<M> DecodeRequest(const ReceivedMessage& message) {
  if (absl::Status s = internal::CheckRequest(message, M::kType, sizeof(M), M::kFds); !s.ok()) {
    return s;
  }
  M decoded;
  std::memcpy(static_cast<void*>(&decoded), message.bytes, sizeof(M));
  if constexpr (requires { internal::CheckFields(decoded); }) {
    if (absl::Status s = internal::CheckFields(decoded); !s.ok()) return s;
  }
  return decoded;
}

// Decodes a reply: the peer's error status when it carries one, INTERNAL when it is malformed.
template <typename M>
absl::StatusOr<M> DecodeReply(const ReceivedMessage& message) {
  if (absl::Status s = internal::CheckReply(message, M::kType, sizeof(M), M::kFds); !s.ok()) {
    return s;
  }
  M decoded;
  std::memcpy(static_cast<void*>(&decoded), message.bytes, sizeof(M));
  if (absl::Status s = internal::ReplyStatus(decoded.head); !s.ok()) return s;
  return decoded;
}

template <typename M>
absl::Status Send(int fd, const M& message, absl::Span<const int> fds, absl::Duration timeout) {
  return SendMessage(fd, {reinterpret_cast<const char*>(&message), sizeof(M)}, fds, timeout);
}

// Sends reply M with an error and nothing else. `status` must not be OK.
template <typename M>
absl::Status SendError(int fd, const absl::Status& status, absl::Duration timeout) {
  M reply = Make<M>();
  internal::SetReply(status, &reply.head);
  return Send(fd, reply, {}, timeout);
}

// FAILED_PRECONDITION naming both versions when the majors differ; otherwise the smaller minor
// version and the common features.
absl::StatusOr<Negotiated> Negotiate(const Hello& hello);

base::Digest DigestOf(const uint8_t (&bytes)[32]);

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_MESSAGES_H_
