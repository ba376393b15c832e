#include "runtime/channel/supervisor_connection.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusiond::channel {
namespace {

// As for workers: a client that does not read its replies is dropped.
constexpr absl::Duration kReplyTimeout = absl::ZeroDuration();

}  // namespace

absl::StatusOr<SupervisorConnection::Request> SupervisorConnection::Next() {
  FUSIOND_ASSIGN_OR_RETURN(ReceivedMessage message, ReceiveMessage(fd(), absl::ZeroDuration()));
  FUSIOND_ASSIGN_OR_RETURN(MessageType type, PeekType(message));
  if (!greeted_) {
    FUSIOND_ASSIGN_OR_RETURN(Hello hello, DecodeRequest<Hello>(message));
    HelloReply reply = Make<HelloReply>();
    reply.abi_major = kAbiMajor;
    reply.abi_minor = kAbiMinor;
    absl::StatusOr<Negotiated> negotiated = Negotiate(hello);
    if (!negotiated.ok()) {
      internal::SetReply(negotiated.status(), &reply.head);
      FUSIOND_RETURN_IF_ERROR(Send(fd(), reply, {}, kReplyTimeout));
      return negotiated.status();
    }
    negotiated_ = *negotiated;
    greeted_ = true;
    reply.abi_minor = negotiated_.abi_minor;
    reply.features = negotiated_.features;
    FUSIOND_RETURN_IF_ERROR(Send(fd(), reply, {}, kReplyTimeout));
    return HelloDone();
  }
  switch (type) {
    case MessageType::kLease: {
      FUSIOND_ASSIGN_OR_RETURN(Lease lease, DecodeRequest<Lease>(message));
      return LeaseRequest{DigestOf(lease.digest)};
    }
    case MessageType::kOpenDevice: {
      FUSIOND_ASSIGN_OR_RETURN(OpenDevice open, DecodeRequest<OpenDevice>(message));
      return DeviceRequest{open.device};
    }
    case MessageType::kWhyEnded: {
      FUSIOND_ASSIGN_OR_RETURN(WhyEnded why, DecodeRequest<WhyEnded>(message));
      return WhyRequest{why.process};
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "connection: message type ", static_cast<uint32_t>(type), " is not for the supervisor"));
  }
}

absl::Status SupervisorConnection::SendLease(int memfd, uint64_t bytes) {
  LeaseReply reply = Make<LeaseReply>();
  reply.bytes = bytes;
  return Send(fd(), reply, {memfd}, kReplyTimeout);
}

absl::Status SupervisorConnection::RefuseLease(const absl::Status& why) {
  return SendError<LeaseReply>(fd(), why, kReplyTimeout);
}

absl::Status SupervisorConnection::SendWhy(const absl::StatusOr<std::string>& how) {
  if (!how.ok()) return SendError<WhyEndedReply>(fd(), how.status(), kReplyTimeout);
  WhyEndedReply reply = Make<WhyEndedReply>();
  internal::SetText(*how, &reply.head);
  return Send(fd(), reply, {}, kReplyTimeout);
}

absl::Status SupervisorConnection::RefuseDevice(const absl::Status& why) {
  return SendError<OpenDeviceReply>(fd(), why, kReplyTimeout);
}

absl::Status SupervisorConnection::PassTo(int worker_socket, absl::Duration timeout) && {
  Adopt adopt = Make<Adopt>();
  adopt.abi_minor = negotiated_.abi_minor;
  adopt.features = negotiated_.features;
  FUSIOND_RETURN_IF_ERROR(Send(worker_socket, adopt, {fd()}, timeout));
  socket_.reset();
  return absl::OkStatus();
}

}  // namespace fusiond::channel
