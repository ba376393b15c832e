#include "runtime/worker/cpu_device.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/import/graph_proto.h"
#include "compiler/ir/graph.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/status_numbers.h"
#include "runtime/base/thread.h"
#include "runtime/cpu/evaluate.h"
#include "runtime/worker/buffers.h"
#include "runtime/worker/launch_binding.h"

namespace fusiond::worker {
namespace {

using channel::CompletionCode;
using channel::CompletionReason;
using channel::MemoryKind;
using channel::Outcome;

// Live values of one evaluation: this, or half of a smaller machine, or what is free.
constexpr uint64_t kMaxEvaluationBytes = uint64_t{8} << 30;
// As good as any larger number.
constexpr unsigned __int128 kManyBytes = uint64_t{1} << 62;

uint64_t NowNs() { return static_cast<uint64_t>(base::MonotonicNanos()); }

bool HasPassed(uint64_t deadline_ns, uint64_t now_ns) {
  return deadline_ns != 0 && now_ns >= deadline_ns;
}

Outcome DeadlinePassed(uint64_t deadline_ns, uint64_t now_ns) {
  Outcome outcome;
  outcome.code = CompletionCode::kDeadlineExceeded;
  outcome.reason = CompletionReason::kDeadline;
  outcome.limit = deadline_ns;
  outcome.actual = now_ns;
  return outcome;
}

class CpuExecutable : public channel::SessionExecutable {
 public:
  CpuExecutable(executable::Executable executable, ir::Graph graph, bool double_precision,
                LaunchShape shape)
      : SessionExecutable(shape.tensors, shape.extents),
        executable(std::move(executable)),
        graph(std::move(graph)),
        double_precision(double_precision) {}

  const executable::Executable executable;
  const ir::Graph graph;
  const bool double_precision;
};

absl::Status Differs(absl::string_view side, size_t index, absl::string_view executable,
                     absl::string_view graph) {
  return absl::InvalidArgumentError(absl::StrCat("executable: ", side, " ", index, " is ",
                                                 executable, ", that of its graph ", graph));
}

std::string Text(base::DType dtype, bool scalar, size_t rank) {
  return scalar ? absl::StrCat(base::DTypeName(dtype), " scalar")
                : absl::StrCat(base::DTypeName(dtype), " of rank ", rank);
}

// A launch is bound by what the executable says, and evaluated as its graph says: they must agree,
// and Validate does not look into the graph.
absl::Status CheckInterface(const executable::Executable& executable, const ir::Graph& graph,
                            bool double_precision) {
  if (executable.inputs.size() != graph.inputs().size() ||
      executable.outputs.size() != graph.outputs().size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "executable: ", executable.inputs.size(), " inputs and ", executable.outputs.size(),
        " outputs, its graph has ", graph.inputs().size(), " and ", graph.outputs().size()));
  }
  for (size_t i = 0; i < executable.inputs.size(); ++i) {
    const executable::InputSpec& spec = executable.inputs[i];
    const ir::Type& type = graph.type(graph.inputs()[i]);
    if (spec.dtype != type.dtype || spec.scalar != type.scalar ||
        spec.shape.size() != type.shape.size()) {
      return Differs("input", i, Text(spec.dtype, spec.scalar, spec.shape.size()),
                     Text(type.dtype, type.scalar, type.shape.size()));
    }
  }
  for (size_t i = 0; i < executable.outputs.size(); ++i) {
    const executable::OutputSpec& spec = executable.outputs[i];
    const ir::Type& type = graph.type(graph.outputs()[i].value);
    // In double precision an output may be declared wider than the graph's own dtype.
    const bool wider =
        double_precision && spec.dtype == base::DType::kDouble && base::IsFloatingPoint(type.dtype);
    if ((spec.dtype != type.dtype && !wider) || spec.shape.size() != type.shape.size()) {
      return Differs("output", i, Text(spec.dtype, false, spec.shape.size()),
                     Text(type.dtype, false, type.shape.size()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<channel::SessionExecutable>> MakeExecutable(
    executable::Executable executable) {
  const auto* step = executable.steps.size() == 1
                         ? std::get_if<executable::HostEvaluateStep>(&executable.steps[0])
                         : nullptr;
  if (step == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("executable is for ", executable.arch, ", this device is cpu"));
  }
  FUSIOND_ASSIGN_OR_RETURN(ir::Graph graph, graph_proto::FromBytes(step->graph));
  const bool double_precision = step->double_precision;
  FUSIOND_RETURN_IF_ERROR(CheckInterface(executable, graph, double_precision));
  const LaunchShape shape = ShapeOfLaunch(executable);
  return std::static_pointer_cast<channel::SessionExecutable>(std::make_shared<CpuExecutable>(
      std::move(executable), std::move(graph), double_precision, shape));
}

// Inputs are read whole, 8 bytes an element, however small the buffer that an expanded one lies in.
absl::Status CheckInputsFit(const BoundLaunch& bound, uint64_t max_bytes) {
  unsigned __int128 bytes = 0;
  for (const executable::TensorArg& input : bound.inputs) {
    unsigned __int128 of_input = 8;
    for (int64_t extent : input.shape) {
      of_input *= static_cast<uint64_t>(extent);
      if (of_input == 0) break;
      of_input = std::min(of_input, kManyBytes);
    }
    bytes += of_input;
  }
  if (bytes <= max_bytes) return absl::OkStatus();
  return base::WithMemoryNeed(
      absl::ResourceExhaustedError("evaluation: too many bytes of inputs"),
      {static_cast<uint64_t>(std::min(bytes, kManyBytes)), max_bytes, max_bytes});
}

absl::Status Evaluate(const CpuExecutable& cpu, const BoundLaunch& bound, const HostMemory& memory,
                      const std::function<bool()>& cancelled) {
  const uint64_t max_bytes =
      std::min({kMaxEvaluationBytes, memory.limit_bytes() / 2, memory.FreeBytes()});
  FUSIOND_RETURN_IF_ERROR(CheckInputsFit(bound, max_bytes));
  std::vector<cpu::HostTensor> inputs;
  for (size_t i = 0; i < bound.inputs.size(); ++i) {
    const executable::TensorArg& input = bound.inputs[i];
    ir::Type type = cpu.graph.type(cpu.graph.inputs()[i]);
    if (type.scalar) {
      const void* bits = &input.bits;
      // 8 bytes whatever the dtype: i64, f64, or 0/1.
      type.dtype = base::IsFloatingPoint(type.dtype) ? base::DType::kDouble : base::DType::kInt;
      inputs.push_back(cpu::ReadBuffer(type, bits, {}));
      inputs.back().type.dtype = cpu.graph.type(cpu.graph.inputs()[i]).dtype;
      continue;
    }
    type.shape.assign(input.shape.begin(), input.shape.end());
    type.strides = ir::ContiguousStrides(type.shape);
    FUSIOND_ASSIGN_OR_RETURN(inputs.emplace_back(),
                             cpu::ReadBuffer(type, reinterpret_cast<const void*>(input.address),
                                             input.strides, cancelled));
  }
  cpu::EvaluateOptions options;
  options.double_precision = cpu.double_precision;
  options.max_bytes = static_cast<int64_t>(max_bytes);
  options.cancelled = cancelled;
  FUSIOND_ASSIGN_OR_RETURN(std::vector<cpu::HostTensor> outputs,
                           cpu::Evaluate(cpu.graph, std::move(inputs), options));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const executable::TensorArg& output = bound.outputs[i];
    // The buffer was checked for the extents of the executable's own formulas.
    if (!absl::c_equal(outputs[i].type.shape, output.shape)) {
      return absl::InvalidArgumentError(
          absl::StrCat("executable: output ", i, " has extents [", absl::StrJoin(output.shape, ","),
                       "], that of its graph [", absl::StrJoin(outputs[i].type.shape, ","), "]"));
    }
    outputs[i].type.dtype = cpu.executable.outputs[i].dtype;
    FUSIOND_RETURN_IF_ERROR(cpu::WriteBuffer(outputs[i], reinterpret_cast<void*>(output.address),
                                             output.strides, cancelled));
  }
  return absl::OkStatus();
}

// A limit of address space ends allocations before their sum reaches it.
absl::Status EvaluateWithin(const HostMemory& memory, const CpuExecutable& cpu,
                            const BoundLaunch& bound, const std::function<bool()>& cancelled) {
  try {
    return Evaluate(cpu, bound, memory, cancelled);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("evaluation: the system gives no more memory");
  }
}

absl::Status CheckKind(MemoryKind kind) {
  if (kind == MemoryKind::kHost) return absl::OkStatus();
  return absl::FailedPreconditionError("the cpu device has host memory only");
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuDevice>> CpuDevice::Create(ExecutableSource* source,
                                                             HostMemory* memory) {
  base::UniqueFd ready(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ready.valid()) return base::ErrnoStatus(errno, "eventfd");
  std::unique_ptr<CpuDevice> device(new CpuDevice(source, memory, std::move(ready)));
  FUSIOND_ASSIGN_OR_RETURN(device->thread_,
                           base::StartThread([cpu = device.get()] { cpu->RunJobs(); }));
  return device;
}

CpuDevice::~CpuDevice() {
  cancel_.store(true,
                std::memory_order_relaxed);  // a hint to stop early; the lock below orders the rest
  {
    base::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void CpuDevice::Load(const base::Digest& digest, LoadCallback done) {
  source_->Fetch(digest,
                 [done = std::move(done)](absl::StatusOr<executable::Executable> executable) {
                   if (!executable.ok()) return done(executable.status());
                   done(MakeExecutable(*std::move(executable)));
                 });
}

absl::StatusOr<channel::AllocatedBuffer> CpuDevice::Allocate(uint64_t bytes, MemoryKind kind) {
  FUSIOND_RETURN_IF_ERROR(CheckKind(kind));
  return AllocateHost(*memory_, bytes);
}

absl::StatusOr<std::shared_ptr<channel::SessionBuffer>> CpuDevice::Import(base::UniqueFd fd,
                                                                          uint64_t bytes,
                                                                          MemoryKind kind) {
  FUSIOND_RETURN_IF_ERROR(CheckKind(kind));
  return ImportHost(std::move(fd), bytes);
}

void CpuDevice::Launch(const channel::LaunchRequest& request, channel::Ticket ticket) {
  auto& cpu = static_cast<CpuExecutable&>(*request.executable);
  auto job = std::make_unique<Job>(
      Job{{}, std::move(ticket), request.deadline_ns, {}, cpu.shared_from_this(), {}});
  std::vector<TensorMemory> tensors;
  for (const channel::TensorBinding& binding : request.tensors) {
    auto& buffer = static_cast<HostBuffer&>(*binding.buffer);
    tensors.push_back(
        {reinterpret_cast<uint64_t>(buffer.data()), buffer.bytes(), binding.offset, &buffer});
    job->buffers.push_back(buffer.shared_from_this());
  }
  auto bound = std::make_shared<BoundLaunch>();
  Outcome outcome = BindLaunch(cpu.executable, 1, tensors, request.extents, *bound);
  if (!outcome.ok()) return job->ticket.Finish(outcome);
  job->work = [this, &cpu, bound, deadline_ns = request.deadline_ns] {
    // A hint to stop early, and nobody waits beyond the deadline.
    const auto cancelled = [this, deadline_ns] {
      return cancel_.load(std::memory_order_relaxed) || HasPassed(deadline_ns, NowNs());
    };
    Outcome outcome = OutcomeFromStatus(EvaluateWithin(*memory_, cpu, *bound, cancelled));
    const bool late = outcome.reason == CompletionReason::kDeadline && deadline_ns != 0;
    return late ? DeadlinePassed(deadline_ns, NowNs()) : outcome;
  };
  Submit(std::move(job));
}

void CpuDevice::Copy(const channel::CopyRequest& request, channel::Ticket ticket) {
  auto& source = static_cast<HostBuffer&>(*request.source.buffer);
  auto& destination = static_cast<HostBuffer&>(*request.destination.buffer);
  auto job = std::make_unique<Job>(Job{{},
                                       std::move(ticket),
                                       request.deadline_ns,
                                       {source.shared_from_this(), destination.shared_from_this()},
                                       {},
                                       {}});
  job->work = [from = source.data() + request.source.offset,
               to = destination.data() + request.destination.offset, bytes = request.bytes] {
    std::memcpy(to, from, bytes);
    return Outcome();
  };
  Submit(std::move(job));
}

void CpuDevice::Submit(std::unique_ptr<Job> job) {
  base::MutexLock lock(&mutex_);
  if (queued_.size() >= kMaxQueued) {
    Outcome full;
    full.code = CompletionCode::kResourceExhausted;
    full.reason = CompletionReason::kQueue;
    full.limit = kMaxQueued;
    full.actual = queued_.size() + 1;
    return job->ticket.Finish(full);
  }
  queued_.push_back(std::move(job));
  changed_.Signal();
}

void CpuDevice::RunJobs() {
  while (true) {
    std::unique_ptr<Job> job;
    {
      base::MutexLock lock(&mutex_);
      while (queued_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      job = std::move(queued_.front());
      queued_.pop_front();
    }
    const uint64_t started = NowNs();
    job->outcome = HasPassed(job->deadline_ns, started) ? DeadlinePassed(job->deadline_ns, started)
                                                        : job->work();
    const uint64_t ended = NowNs();
    job->outcome.queue_ns = started - static_cast<uint64_t>(job->ticket.taken_ns());
    job->outcome.device_ns = ended - started;
    base::MutexLock lock(&mutex_);
    done_.push_back(std::move(job));
    const uint64_t one = 1;
    // Fails only when the counter is full, and then the fd is readable anyway.
    [[maybe_unused]] const ssize_t written = ::write(ready_.get(), &one, sizeof(one));
  }
}

absl::Duration CpuDevice::Poll() {
  uint64_t count;
  [[maybe_unused]] const ssize_t read =
      ::read(ready_.get(), &count, sizeof(count));  // nothing there: fine
  std::vector<std::unique_ptr<Job>> done;
  {
    base::MutexLock lock(&mutex_);
    done.swap(done_);
  }
  for (std::unique_ptr<Job>& job : done) job->ticket.Finish(job->outcome);
  return absl::InfiniteDuration();  // ready_fd() wakes the loop
}

}  // namespace fusiond::worker
