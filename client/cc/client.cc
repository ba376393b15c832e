#include "client/cc/client.h"

#include <fcntl.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "client/cc/paths.h"
#include "client/cc/status_convert.h"
#include "compiler/import/graph_proto.h"
#include "proto/fusiond/v1/service.grpc.pb.h"
#include "runtime/base/clock.h"
#include "runtime/base/memfd.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/channel/client_session.h"
#include "runtime/channel/socket.h"
#include "runtime/executable/serialise.h"

namespace fusiond::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr absl::Duration kQuickTimeout = absl::Seconds(30);
// Between attempts to reach a worker.
constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
// A socket that a daemon is just making is not yet open to all whom it will admit.
constexpr absl::Duration kSocketIsReady = absl::Milliseconds(250);
// A graph and its executable, with room for the envelope.
constexpr int kMaxMessageBytes = 256 << 20;

// After this long without a word, and again as long without an answer to a ping, the daemon counts
// as gone. Daemons allow pings this often (server/control/control_server.cc).
constexpr int kKeepAliveMs = 10'000;
// Longer waits are endless: the clock's nanoseconds end in 2262.
constexpr absl::Duration kForever = absl::Hours(24 * 365 * 100);

using Time = std::chrono::system_clock::time_point;

Time In(absl::Duration wait) {
  if (wait >= kForever) return Time::max();
  return std::chrono::system_clock::now() + absl::ToChronoNanoseconds(wait);
}

// gRPC reads "unix:" and a path as a URI.
std::string UriOf(absl::string_view socket) {
  return absl::StrCat("unix:",
                      absl::StrReplaceAll(socket, {{"%", "%25"}, {"#", "%23"}, {"?", "%3F"}}));
}

std::string TextOf(const Message& message, const FieldDescriptor& field, int index) {
  const google::protobuf::Reflection& r = *message.GetReflection();
  return field.is_repeated() ? r.GetRepeatedString(message, &field, index)
                             : r.GetString(message, &field);
}

// protobuf sends texts that are no UTF-8 and does not read them; gRPC then answers UNIMPLEMENTED
// without a word.
absl::Status CheckTexts(const Message& message) {
  const google::protobuf::Reflection& r = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  r.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? r.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        FUSIOND_RETURN_IF_ERROR(CheckTexts(field->is_repeated()
                                               ? r.GetRepeatedMessage(message, field, i)
                                               : r.GetMessage(message, field)));
      } else if (field->type() == FieldDescriptor::TYPE_STRING) {
        const std::string text = TextOf(message, *field, i);
        if (base::ToUtf8(text) == text) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            field->full_name(), ": '", absl::CHexEscape(text.substr(0, 64)), "' is no UTF-8"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

struct Client::Rpc {
  std::string socket;
  absl::Duration patience;  // with a daemon that does not answer: Connect's
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Fusiond::Stub> stub;

  // A unary call, tried once more on UNAVAILABLE: after a restart of the daemon, or when it has
  // closed an idle connection, the first call on the old connection fails. Every rpc is idempotent.
  // A daemon that is gone for good is not waited for longer than when connecting.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::Fusiond::Stub::*method)(grpc::ClientContext*,
                                                                          const Request&,
                                                                          Response*),
                                const Request& request, absl::Duration timeout) {
    FUSIOND_RETURN_IF_ERROR(CheckTexts(request));
    const Time deadline = In(timeout);
    for (int attempt = 0;; ++attempt) {
      grpc::ClientContext context;
      context.set_deadline(deadline);
      Response response;
      const grpc::Status status = (stub.get()->*method)(&context, request, &response);
      if (status.ok()) return response;
      if (attempt > 0 || status.error_code() != grpc::StatusCode::UNAVAILABLE)
        return FromGrpc(status);
      FUSIOND_RETURN_IF_ERROR(
          WaitForDaemon(absl::FromChrono(deadline - std::chrono::system_clock::now())));
    }
  }

  // At most `limit`, and no longer than when connecting.
  absl::Status WaitForDaemon(absl::Duration limit = absl::InfiniteDuration()) const {
    const absl::Duration wait = std::min(patience, std::max(limit, absl::ZeroDuration()));
    const Time end = In(wait);
    if (channel->WaitForConnected(std::min(end, In(kSocketIsReady)))) return absl::OkStatus();
    if (::faccessat(AT_FDCWD, socket.c_str(), W_OK, AT_EACCESS) != 0 && errno == EACCES) {
      return absl::PermissionDeniedError(
          absl::StrCat("this user may not open ", socket,
                       "; a service admits whoever is in its sockets' group"));
    }
    if (channel->WaitForConnected(end)) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "no daemon answers at ", socket, " within ",
        absl::FormatDuration(wait < absl::Seconds(1) ? wait : absl::Trunc(wait, absl::Seconds(1))),
        ": ", WhyNobodyAnswers()));
  }

  std::string WhyNobodyAnswers() const {
    struct stat info;
    const int missing = ::stat(socket.c_str(), &info) == 0 ? 0 : errno;
    if (missing == ENOENT || missing == ENOTDIR) return "there is no such file";
    if (missing == 0 && !S_ISSOCK(info.st_mode)) return "it is no socket";
    const absl::StatusOr<base::UniqueFd> plain =
        channel::Connect(socket, SOCK_STREAM, absl::ZeroDuration());
    if (absl::IsUnavailable(plain.status())) return "nobody listens on it";
    if (!plain.ok()) return std::string(plain.status().message());
    // A server speaks first.
    pollfd answer = {plain->get(), POLLIN | POLLRDHUP, 0};
    ::poll(&answer, 1, static_cast<int>(absl::ToInt64Milliseconds(kSocketIsReady)));
    if (answer.revents == 0) return "who listens on it says nothing, as if stopped or hung";
    if ((answer.revents & (POLLHUP | POLLRDHUP)) != 0)
      return "who listens on it hangs up: a private daemon admits its own user only, and every "
             "daemon a limited number of connections of one user; its log says why";
    return "who listens on it is no fusiond";
  }
};

Client::Client(std::string folder, std::unique_ptr<Rpc> rpc)
    : folder_(std::move(folder)), rpc_(std::move(rpc)) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& folder,
                                                        absl::Duration timeout) {
  auto rpc = std::make_unique<Rpc>();
  rpc->socket = ControlSocket(folder);
  FUSIOND_RETURN_IF_ERROR(channel::CheckSocketPath(rpc->socket));
  rpc->patience = timeout;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // A daemon that is stopped or hung ends the calls that wait for it, the endless ones too.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepAliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepAliveMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A channel of its own: the process-wide pool would hand several clients one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  rpc->channel =
      grpc::CreateCustomChannel(UriOf(rpc->socket), grpc::InsecureChannelCredentials(), arguments);
  FUSIOND_RETURN_IF_ERROR(rpc->WaitForDaemon());
  rpc->stub = v1::Fusiond::NewStub(rpc->channel);
  return std::unique_ptr<Client>(new Client(folder, std::move(rpc)));
}

v1::CompileRequest Client::MakeRequest(const ir::Graph& graph, const std::string& target,
                                       absl::Span<const Layout> layouts, const Options& options) {
  v1::CompileRequest request;
  request.set_graph(graph_proto::ToBytes(graph));
  request.set_target(target);
  for (const Layout& layout : layouts) {
    v1::InputLayout* to = request.add_inputs();
    to->mutable_shape()->Add(layout.shape.begin(), layout.shape.end());
    to->mutable_strides()->Add(layout.strides.begin(), layout.strides.end());
    to->set_alignment(layout.alignment);
  }
  request.mutable_options()->insert(options.begin(), options.end());
  return request;
}

absl::StatusOr<Fusion> Client::Compile(const ir::Graph& graph, const std::string& target,
                                       absl::Span<const Layout> layouts, const Options& options,
                                       absl::Duration timeout) {
  Fusion fusion;
  FUSIOND_ASSIGN_OR_RETURN(fusion.response,
                           rpc_->Call(&v1::Fusiond::Stub::Compile,
                                      MakeRequest(graph, target, layouts, options), timeout));
  FUSIOND_ASSIGN_OR_RETURN(fusion.key, base::DigestFromBytes(fusion.response.key()));
  FUSIOND_ASSIGN_OR_RETURN(fusion.executable_digest,
                           base::DigestFromBytes(fusion.response.executable_digest()));
  return fusion;
}

absl::StatusOr<std::string> Client::LeaseBytes(const base::Digest& executable_digest) {
  FUSIOND_ASSIGN_OR_RETURN(channel::SupervisorClient supervisor,
                           channel::SupervisorClient::Connect(ChannelSocket(folder_)));
  FUSIOND_ASSIGN_OR_RETURN(channel::SupervisorClient::LeasedExecutable lease,
                           supervisor.Lease(executable_digest));
  FUSIOND_ASSIGN_OR_RETURN(base::Mapping mapping,
                           base::Mapping::Map(lease.fd.get(), lease.bytes, false));
  return std::string(mapping.view());
}

absl::StatusOr<executable::Executable> Client::Lease(const base::Digest& executable_digest) {
  FUSIOND_ASSIGN_OR_RETURN(std::string bytes, LeaseBytes(executable_digest));
  return executable::Deserialise(bytes);
}

absl::StatusOr<std::unique_ptr<LocalExecutable>> Client::LoadLocally(const Fusion& fusion,
                                                                     const cuda::Driver& driver,
                                                                     int sm_count) {
  FUSIOND_ASSIGN_OR_RETURN(executable::Executable executable, Lease(fusion.executable_digest));
  return LocalExecutable::Load(driver, std::move(executable), sm_count);
}

absl::StatusOr<std::unique_ptr<Session>> Client::OpenDevice(const std::string& device,
                                                            absl::Duration patience,
                                                            const SessionOptions& options) {
  const absl::Duration give_up = base::Clock::System().Now() + patience;
  absl::Duration pause = kFirstPause;
  while (true) {
    absl::StatusOr<std::unique_ptr<Session>> session = OpenDeviceOnce(device, options);
    if (!absl::IsUnavailable(session.status()) || base::Clock::System().Now() + pause > give_up)
      return session;
    absl::SleepFor(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

absl::StatusOr<std::unique_ptr<Session>> Client::OpenDeviceOnce(const std::string& device,
                                                                const SessionOptions& options) {
  channel::ClientOptions connection;
  connection.call_timeout = options.answer_limit;
  FUSIOND_ASSIGN_OR_RETURN(channel::SupervisorClient supervisor,
                           channel::SupervisorClient::Connect(ChannelSocket(folder_), connection));
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<channel::ClientSession> session,
                           supervisor.OpenDevice(device));
  return Session::Create(std::move(session), options);
}

absl::StatusOr<v1::ExplainResponse> Client::Explain(const v1::ExplainRequest& request) {
  return rpc_->Call(&v1::Fusiond::Stub::Explain, request,
                    request.schedule() ? absl::Minutes(2) : kQuickTimeout);
}

absl::StatusOr<v1::GetArtifactsResponse> Client::GetArtifacts(
    const v1::GetArtifactsRequest& request) {
  return rpc_->Call(&v1::Fusiond::Stub::GetArtifacts, request, absl::Minutes(2));
}

absl::StatusOr<v1::ExecuteResponse> Client::Execute(const v1::ExecuteRequest& request) {
  return rpc_->Call(&v1::Fusiond::Stub::Execute, request, absl::Minutes(2));
}

absl::StatusOr<v1::DevicesResponse> Client::Devices() {
  return rpc_->Call(&v1::Fusiond::Stub::Devices, v1::DevicesRequest(), kQuickTimeout);
}

absl::StatusOr<v1::StatusResponse> Client::GetStatus() {
  return rpc_->Call(&v1::Fusiond::Stub::Status, v1::StatusRequest(), kQuickTimeout);
}

absl::StatusOr<v1::CacheStatsResponse> Client::CacheStats() {
  return rpc_->Call(&v1::Fusiond::Stub::CacheStats, v1::CacheStatsRequest(), kQuickTimeout);
}

absl::StatusOr<v1::CacheListResponse> Client::CacheList(const v1::CacheListRequest& request) {
  return rpc_->Call(&v1::Fusiond::Stub::CacheList, request, kQuickTimeout);
}

absl::StatusOr<v1::CacheEvictResponse> Client::CacheEvict(const v1::CacheEvictRequest& request) {
  return rpc_->Call(&v1::Fusiond::Stub::CacheEvict, request, kQuickTimeout);
}

absl::Status Client::Warm(const v1::WarmRequest& request,
                          const std::function<void(const v1::WarmEvent&)>& on_event) {
  FUSIOND_RETURN_IF_ERROR(CheckTexts(request));
  FUSIOND_RETURN_IF_ERROR(rpc_->WaitForDaemon());
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::WarmEvent>> reader = rpc_->stub->Warm(&context, request);
  v1::WarmEvent event;
  int items = 0;
  while (reader->Read(&event)) {
    items += event.has_item() ? 1 : 0;
    on_event(event);
  }
  const absl::Status status = FromGrpc(reader->Finish());
  // Nobody cancels here: a daemon whose time to drain is over does.
  if (!absl::IsUnavailable(status) && !absl::IsCancelled(status)) return status;
  return absl::UnavailableError(
      absl::StrCat("the daemon at ", rpc_->socket, " is gone or does not answer, after ", items,
                   " of ", request.items_size() * request.targets_size(),
                   " items; what was compiled is in its cache, run it again for the rest (",
                   status.message(), ")"));
}

}  // namespace fusiond::client
