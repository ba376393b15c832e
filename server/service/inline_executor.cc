#include "server/service/inline_executor.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/memfd.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "runtime/channel/client_ring.h"
#include "runtime/channel/client_session.h"
#include "runtime/executable/binding.h"
#include "runtime/executable/serialise.h"

namespace fusiond::server {
namespace {

constexpr absl::Duration kMaxWait = absl::Minutes(5);      // for one launch or copy
constexpr absl::Duration kLook = absl::Milliseconds(200);  // how often the caller is looked after

using channel::MemoryKind;

absl::Duration Now() { return base::Clock::System().Now(); }

absl::Status Cancelled() { return absl::CancelledError("cancelled by the caller"); }

// Whether anybody still waits for the answer.
absl::Status CheckCaller(const InlineExecutor::Call& call) {
  if (call.cancelled()) return Cancelled();
  if (Now() >= call.deadline) return absl::DeadlineExceededError("the call's deadline has passed");
  return absl::OkStatus();
}

// Buffers of one tensor: host memory, and device memory where the device has its own.
struct Staged {
  channel::ClientSession::RemoteBuffer host;
  base::Mapping mapping;
  channel::ClientSession::RemoteBuffer device;
};

class OneRun {
 public:
  OneRun(const InlineExecutor::Call& call, channel::ClientSession* session,
         std::unique_ptr<channel::ClientRing> ring)
      : call_(call),
        session_(*session),
        ring_(std::move(ring)),
        has_device_memory_(call.device != "cpu") {}

  absl::Status Stage(absl::string_view data, uint64_t bytes) {
    Staged staged;
    const uint64_t size = std::max<uint64_t>(bytes, 1);
    FUSIOND_ASSIGN_OR_RETURN(staged.host, session_.Allocate(size, MemoryKind::kHost));
    FUSIOND_ASSIGN_OR_RETURN(staged.mapping, base::Mapping::Map(staged.host.fd.get(), size, true));
    std::copy(data.begin(), data.end(), staged.mapping.data());
    if (has_device_memory_) {
      FUSIOND_ASSIGN_OR_RETURN(staged.device, session_.Allocate(size, MemoryKind::kDevice));
      FUSIOND_RETURN_IF_ERROR(Copy(staged.host, staged.device, size));
    }
    staged_.push_back(std::move(staged));
    return absl::OkStatus();
  }

  absl::Status Launch(channel::Handle executable, absl::Span<const int64_t> numbers) {
    std::vector<channel::TensorArgument> tensors;
    for (const Staged& staged : staged_) {
      tensors.push_back({has_device_memory_ ? staged.device.handle : staged.host.handle, 0});
    }
    channel::LaunchCommand command;
    command.executable = executable;
    command.tensors = tensors;
    command.extents = numbers;
    command.deadline = call_.deadline;
    command.timed = true;
    FUSIOND_RETURN_IF_ERROR(ring_->Launch(command));
    return WaitForOne();
  }

  absl::Status Fetch(size_t tensor, std::string* to, uint64_t bytes) {
    Staged& staged = staged_[tensor];
    if (has_device_memory_)
      FUSIOND_RETURN_IF_ERROR(Copy(staged.device, staged.host, staged.host.bytes));
    to->assign(staged.mapping.data(), bytes);
    return absl::OkStatus();
  }

  int64_t device_ns() const { return device_ns_; }

 private:
  absl::Status Copy(const channel::ClientSession::RemoteBuffer& from,
                    const channel::ClientSession::RemoteBuffer& to, uint64_t bytes) {
    channel::CopyCommand command;
    command.source = {from.handle, 0};
    command.destination = {to.handle, 0};
    command.bytes = bytes;
    command.deadline = call_.deadline;
    FUSIOND_RETURN_IF_ERROR(ring_->Copy(command));
    return WaitForOne();
  }

  absl::Status WaitForOne() {
    const absl::Duration start = Now(), give_up = std::min(start + kMaxWait, call_.deadline);
    absl::Status waited;
    do {
      if (call_.cancelled()) return Cancelled();
      waited = ring_->Wait(std::min(kLook, give_up - Now()));
    } while (absl::IsDeadlineExceeded(waited) && Now() < give_up);
    if (absl::IsDeadlineExceeded(waited)) {
      return absl::DeadlineExceededError(absl::StrCat(
          "not done ", absl::FormatDuration(Now() - start), " after its launch: ", session_.peer(),
          " is stopped, hung or busy; the launch is left to it"));
    }
    FUSIOND_RETURN_IF_ERROR(waited);
    channel::CompletionEntry done;
    if (ring_->Reap({&done, 1}) != 1) return absl::InternalError("the worker answered nothing");
    device_ns_ = static_cast<int64_t>(done.device_ns);
    return ring_->StatusOf(done);
  }

  const InlineExecutor::Call& call_;
  channel::ClientSession& session_;
  const std::unique_ptr<channel::ClientRing> ring_;
  const bool has_device_memory_;
  std::vector<Staged> staged_;
  int64_t device_ns_ = 0;
};

int64_t ScalarBits(const v1::InlineTensor& tensor) {
  int64_t bits = 0;
  std::memcpy(&bits, tensor.data().data(), std::min(sizeof(bits), tensor.data().size()));
  return bits;
}

executable::TensorArg ToArgument(const v1::InlineTensor& tensor) {
  executable::TensorArg argument;
  if (tensor.scalar()) return argument;
  argument.shape.assign(tensor.shape().begin(), tensor.shape().end());
  argument.strides.resize(argument.shape.size());
  int64_t stride = 1;
  for (size_t d = argument.shape.size(); d-- > 0;) {
    argument.strides[d] = stride;
    stride *= std::max<int64_t>(argument.shape[d], 1);
  }
  return argument;
}

std::string Kind(int dtype, bool scalar, int rank) {
  const bool known = dtype >= static_cast<int>(base::DType::kBool) &&
                     dtype <= static_cast<int>(base::DType::kDouble);
  return absl::StrCat(known ? std::string(base::DTypeName(static_cast<base::DType>(dtype)))
                            : absl::StrCat("dtype ", dtype),
                      scalar ? " scalar" : absl::StrCat(" tensor of rank ", rank));
}

}  // namespace

absl::Status CheckInlineTensors(const executable::Executable& executable,
                                const v1::ExecuteRequest& request) {
  if (request.inputs_size() != static_cast<int>(executable.inputs.size())) {
    return absl::InvalidArgumentError(absl::StrCat("inputs: expected ", executable.inputs.size(),
                                                   ", given ", request.inputs_size()));
  }
  for (int i = 0; i < request.inputs_size(); ++i) {
    const v1::InlineTensor& tensor = request.inputs(i);
    const executable::InputSpec& spec = executable.inputs[i];
    if (static_cast<int>(tensor.dtype()) != static_cast<int>(spec.dtype) ||
        tensor.scalar() != spec.scalar || tensor.shape_size() != static_cast<int>(spec.rank())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "inputs[", i, "]: expected ",
          Kind(static_cast<int>(spec.dtype), spec.scalar, static_cast<int>(spec.rank())),
          ", given ", Kind(tensor.dtype(), tensor.scalar(), tensor.shape_size())));
    }
    unsigned __int128 bytes =
        tensor.scalar() ? 8 : static_cast<unsigned>(base::ByteSize(spec.dtype));
    for (int64_t extent : tensor.shape()) {
      if (extent < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("inputs[", i, "]: negative extent ", extent));
      }
      bytes *= static_cast<uint64_t>(extent);
      // Far beyond any data; one more factor cannot overflow 128 bits.
      if (bytes >> 62 != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("inputs[", i, "]: more than ", int64_t{1} << 62,
                         " bytes of data expected, given ", tensor.data().size()));
      }
    }
    if (bytes != tensor.data().size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("inputs[", i, "]: ", static_cast<uint64_t>(bytes),
                       " bytes of data expected, given ", tensor.data().size()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::ExecuteResponse> InlineExecutor::RunNow(const Call& call) {
  FUSIOND_RETURN_IF_ERROR(CheckCaller(call));
  const v1::ExecuteRequest& request = *call.request;
  FUSIOND_ASSIGN_OR_RETURN(const executable::Executable executable,
                           executable::Deserialise(call.compiled->executable()));
  FUSIOND_ASSIGN_OR_RETURN(const base::Digest digest,
                           base::DigestFromBytes(call.compiled->executable_digest()));
  FUSIOND_RETURN_IF_ERROR(CheckInlineTensors(executable, request));
  std::vector<executable::TensorArg> arguments;
  for (const v1::InlineTensor& tensor : request.inputs()) arguments.push_back(ToArgument(tensor));
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<executable::OutputShape> shapes,
                           executable::OutputShapes(executable, arguments, 1));
  int64_t output_bytes = 0;
  for (const executable::OutputShape& shape : shapes) output_bytes += shape.bytes;
  if (output_bytes > kMaxOutputBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("outputs: limit is ", kMaxOutputBytes, " bytes, are ", output_bytes));
  }

  channel::ClientOptions options;
  options.call_timeout = std::min(options.call_timeout, call.deadline - Now());
  FUSIOND_ASSIGN_OR_RETURN(base::UniqueFd connection, connect_(call.identity));
  FUSIOND_ASSIGN_OR_RETURN(channel::SupervisorClient supervisor,
                           channel::SupervisorClient::Greet(std::move(connection), options));
  supervisor.SetReconnect([&] { return connect_(call.identity); });
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<channel::ClientSession> session,
                           supervisor.OpenDevice(call.device));
  FUSIOND_ASSIGN_OR_RETURN(channel::ClientSession::LoadedExecutable loaded, session->Load(digest));
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<channel::ClientRing> ring, session->OpenRing());
  OneRun run(call, session.get(), std::move(ring));

  std::vector<int64_t> numbers, scalars;
  size_t tensors = 0;
  for (size_t i = 0; i < executable.inputs.size(); ++i) {
    const executable::InputSpec& spec = executable.inputs[i];
    const v1::InlineTensor& tensor = request.inputs(static_cast<int>(i));
    if (spec.scalar) {
      scalars.push_back(ScalarBits(tensor));
      continue;
    }
    for (uint32_t d = 0; d < spec.rank(); ++d) {
      if (spec.shape[d] < 0) numbers.push_back(tensor.shape(static_cast<int>(d)));
    }
    FUSIOND_RETURN_IF_ERROR(run.Stage(tensor.data(), tensor.data().size()));
    ++tensors;
  }
  numbers.insert(numbers.end(), scalars.begin(), scalars.end());
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (executable.outputs[i].alias_input) continue;
    FUSIOND_RETURN_IF_ERROR(run.Stage({}, static_cast<uint64_t>(shapes[i].bytes)));
  }
  FUSIOND_RETURN_IF_ERROR(run.Launch(loaded.handle, numbers));

  v1::ExecuteResponse response;
  response.set_device_ns(run.device_ns());
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (executable.outputs[i].alias_input) continue;
    v1::InlineTensor* output = response.add_outputs();
    output->set_dtype(static_cast<v1::DType>(executable.outputs[i].dtype));
    output->mutable_shape()->Add(shapes[i].shape.begin(), shapes[i].shape.end());
    FUSIOND_RETURN_IF_ERROR(
        run.Fetch(tensors++, output->mutable_data(), static_cast<uint64_t>(shapes[i].bytes)));
  }
  call.compiled->clear_executable();
  *response.mutable_compile() = std::move(*call.compiled);
  return response;
}

uint64_t InlineExecutor::Run(Call call, Callback done) {
  const std::string identity = call.identity.Name();
  return executor_.Run(identity, [this, call = std::move(call),
                                  done = std::move(done)](const absl::Status& may_run) {
    if (!may_run.ok()) return done(may_run);
    done(RunNow(call));
  });
}

}  // namespace fusiond::server
