#include "runtime/channel/messages.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace fusiond::channel {
namespace {

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("message: ", what));
}

absl::Status CheckKind(uint32_t kind) {
  if (kind == static_cast<uint32_t>(MemoryKind::kHost) ||
      kind == static_cast<uint32_t>(MemoryKind::kDevice)) {
    return absl::OkStatus();
  }
  return Malformed(absl::StrCat("memory kind ", kind, " is unknown"));
}

}  // namespace

Hello MakeHello() {
  Hello hello = Make<Hello>();
  hello.magic = kHelloMagic;
  hello.abi_major = kAbiMajor;
  hello.abi_minor = kAbiMinor;
  hello.features = kAllFeatures;
  return hello;
}

absl::StatusOr<OpenDevice> MakeOpenDevice(absl::string_view device) {
  OpenDevice message = Make<OpenDevice>();
  if (device.empty() || device.size() >= sizeof(message.device)) {
    return absl::InvalidArgumentError(absl::StrCat("device name: limit is ",
                                                   sizeof(message.device) - 1, " bytes, '", device,
                                                   "' has ", device.size()));
  }
  std::memcpy(message.device, device.data(), device.size());
  return message;
}

absl::StatusOr<MessageType> PeekType(const ReceivedMessage& message) {
  MessageHeader header;
  if (message.size < sizeof(header)) {
    return Malformed(absl::StrCat("at least ", sizeof(header), " bytes, got ", message.size));
  }
  std::memcpy(&header, message.bytes, sizeof(header));
  if (header.bytes != message.size) {
    return Malformed(absl::StrCat("announces ", header.bytes, " bytes, has ", message.size));
  }
  if (header.type < static_cast<uint32_t>(MessageType::kHello) ||
      header.type > static_cast<uint32_t>(MessageType::kWhyEndedReply)) {
    return Malformed(absl::StrCat("type ", header.type, " is unknown"));
  }
  return static_cast<MessageType>(header.type);
}

namespace internal {

absl::Status CheckRequest(const ReceivedMessage& message, MessageType type, size_t bytes,
                          size_t fds) {
  absl::StatusOr<MessageType> found = PeekType(message);
  if (!found.ok()) return found.status();
  if (*found != type) {
    return Malformed(absl::StrCat("type ", static_cast<uint32_t>(*found), " where ",
                                  static_cast<uint32_t>(type), " is expected"));
  }
  const std::string name = absl::StrCat("type ", static_cast<uint32_t>(type));
  if (message.size != bytes) {
    return Malformed(absl::StrCat(name, " has ", bytes, " bytes, got ", message.size));
  }
  if (message.fds.size() != fds) {
    return Malformed(absl::StrCat(name, " has ", fds, " descriptors, got ", message.fds.size()));
  }
  return absl::OkStatus();
}

absl::Status CheckReply(const ReceivedMessage& message, MessageType type, size_t bytes,
                        size_t fds) {
  // An error carries no descriptor. The code is read again, and judged, by ReplyStatus.
  ReplyHead head{};
  std::memcpy(&head, message.bytes, std::min(message.size, sizeof(head)));
  absl::Status status = CheckRequest(message, type, bytes, head.code == 0 ? fds : 0);
  if (status.ok()) return status;
  return absl::InternalError(absl::StrCat("malformed reply: ", status.message()));
}

absl::Status ReplyStatus(const ReplyHead& head) {
  if (head.code == 0) return absl::OkStatus();
  const size_t length = ::strnlen(head.text, sizeof(head.text));
  if (head.code > static_cast<uint32_t>(absl::StatusCode::kUnauthenticated) ||
      length == sizeof(head.text)) {
    return absl::InternalError(absl::StrCat("malformed reply: code ", head.code));
  }
  return absl::Status(static_cast<absl::StatusCode>(head.code),
                      absl::string_view(head.text, length));
}

void SetReply(const absl::Status& status, ReplyHead* head) {
  head->code = static_cast<uint32_t>(status.code());
  SetText(status.message(), head);
}

void SetText(absl::string_view text, ReplyHead* head) {
  text = text.substr(0, sizeof(head->text) - 1);
  std::memcpy(head->text, text.data(), text.size());
}

std::string TextOf(const ReplyHead& head) {
  return std::string(head.text, ::strnlen(head.text, sizeof(head.text)));
}

absl::Status CheckFields(const Hello& m) {
  if (m.magic != kHelloMagic) return Malformed("HELLO has a wrong magic");
  return absl::OkStatus();
}

absl::Status CheckFields(const OpenDevice& m) {
  const size_t length = ::strnlen(m.device, sizeof(m.device));
  if (length == 0 || length == sizeof(m.device)) {
    return Malformed("OPEN_DEVICE: the name is empty or has no end");
  }
  return absl::OkStatus();
}

absl::Status CheckFields(const Allocate& m) { return CheckKind(m.kind); }
absl::Status CheckFields(const Import& m) { return CheckKind(m.kind); }

}  // namespace internal

absl::StatusOr<Negotiated> Negotiate(const Hello& hello) {
  if (hello.abi_major != kAbiMajor) {
    return absl::FailedPreconditionError(absl::StrCat(
        "channel ABI: the client has version ", hello.abi_major, ".", hello.abi_minor,
        ", this daemon has ", kAbiMajor, ".", kAbiMinor, "; the major versions must be equal"));
  }
  return Negotiated{std::min(hello.abi_minor, kAbiMinor), hello.features & kAllFeatures};
}

base::Digest DigestOf(const uint8_t (&bytes)[32]) {
  base::Digest digest;
  std::copy(std::begin(bytes), std::end(bytes), digest.bytes.begin());
  return digest;
}

}  // namespace fusiond::channel
