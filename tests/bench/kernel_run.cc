#include "tests/bench/kernel_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/evaluate.h"
#include "tests/gpu/graph_run.h"
#include "tests/gpu/slice.h"
#include "tests/support/within_bounds.h"

namespace fusiond::bench {
namespace {

using cpu::HostTensor;
using executable::TensorArg;
using testing::Samples;

constexpr char kPoison = '\xa5';
constexpr int64_t kCheckedElements = 1 << 17;    // of an output
constexpr int64_t kEvaluatedElements = 1 << 19;  // of an input, for the checked ones of an output
constexpr double kMaxUndecided = 0.01;

int64_t Bytes(const ir::Type& type) {
  return ir::ElementCount(type).value_or(0) * ir::ByteSize(type.dtype);
}

// `bytes` of the samples, over and over.
absl::Status Upload(testing::Gpu& gpu, const Samples& samples, cuda::CUdeviceptr to,
                    int64_t bytes) {
  const std::string& pool = samples.pool();
  std::string chunk;
  while (chunk.size() < size_t{32} << 20 && static_cast<int64_t>(chunk.size()) < bytes)
    chunk += pool;
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(chunk.size())) {
    const auto size = std::min<int64_t>(static_cast<int64_t>(chunk.size()), bytes - at);
    FUSIOND_RETURN_IF_ERROR(
        gpu.Write(to + static_cast<uint64_t>(at),
                  absl::string_view(chunk).substr(0, static_cast<size_t>(size))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelRun>> KernelRun::Make(testing::Gpu& gpu,
                                                           const nvrtc::Nvrtc& nvrtc,
                                                           ir::Graph graph) {
  std::unique_ptr<KernelRun> run(new KernelRun(gpu, std::move(graph)));
  compiler::PlanRequest request;
  request.graph = run->graph_;
  request.device = gpu.device().info;
  for (ir::ValueId id : run->graph_.inputs()) {
    const ir::Type& type = run->graph_.type(id);
    request.inputs.push_back({type.shape, testing::LayOut(type), 256});
  }
  FUSIOND_ASSIGN_OR_RETURN(testing::CompiledGraph compiled,
                           testing::CompileGraph(std::move(request), nvrtc));
  FUSIOND_ASSIGN_OR_RETURN(
      run->loaded_, cuda::LoadedExecutable::Load(gpu.driver(), std::move(compiled.executable),
                                                 gpu.device().info.sm_count));
  for (const cuda::KernelResources& kernel : run->loaded_->Resources()) {
    run->registers_ = std::max<int64_t>(run->registers_, kernel.registers);
    run->local_bytes_ = std::max<int64_t>(run->local_bytes_, kernel.local_bytes);
  }
  FUSIOND_RETURN_IF_ERROR(run->PlaceInputs());
  FUSIOND_RETURN_IF_ERROR(run->PlaceOutputs());
  FUSIOND_RETURN_IF_ERROR(run->PlaceWorkspace());
  return run;
}

absl::Status KernelRun::PlaceInputs() {
  for (ir::ValueId id : graph_.inputs()) {
    const ir::Type& type = graph_.type(id);
    if (type.scalar) return absl::UnimplementedError("scalar inputs are not benchmarked");
    const ir::Dims strides = testing::LayOut(type);
    const int64_t span = testing::SpanBytes(type.shape, strides, type.dtype);
    samples_.emplace_back(type.dtype, samples_.size() + 1, false);
    FUSIOND_ASSIGN_OR_RETURN(testing::DeviceMemory memory,
                             gpu_.Allocate(static_cast<uint64_t>(span)));
    FUSIOND_RETURN_IF_ERROR(Upload(gpu_, samples_.back(), memory.address(), span));
    inputs_.push_back({memory.address(), type.shape, strides, 0});
    bytes_ += Bytes(type);
    memory_.push_back(std::move(memory));
    memory_bytes_.push_back(static_cast<uint64_t>(span));
  }
  return absl::OkStatus();
}

absl::Status KernelRun::PlaceOutputs() {
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<executable::OutputShape> shapes,
                           loaded_->OutputShapes(inputs_));
  for (size_t o = 0; o < shapes.size(); ++o) {
    if (loaded_->executable().outputs[o].alias_input)
      return absl::UnimplementedError("aliased outputs are not benchmarked");
    FUSIOND_ASSIGN_OR_RETURN(testing::DeviceMemory memory,
                             gpu_.Allocate(static_cast<uint64_t>(shapes[o].bytes)));
    outputs_.push_back({memory.address(), shapes[o].shape, shapes[o].strides, 0});
    output_bytes_.push_back(shapes[o].bytes);
    bytes_ += Bytes(graph_.type(graph_.outputs()[o].value));
    memory_.push_back(std::move(memory));
    memory_bytes_.push_back(static_cast<uint64_t>(shapes[o].bytes));
  }
  return absl::OkStatus();
}

absl::Status KernelRun::PlaceWorkspace() {
  FUSIOND_ASSIGN_OR_RETURN(const int64_t workspace, loaded_->WorkspaceBytes(inputs_));
  FUSIOND_ASSIGN_OR_RETURN(workspace_, gpu_.Allocate(static_cast<uint64_t>(workspace)));
  return gpu_.Fill(workspace_.address(), static_cast<uint8_t>(kPoison),
                   static_cast<uint64_t>(workspace));
}

absl::Status KernelRun::Relocate() {
  for (size_t m = 0; m < memory_.size(); ++m) {
    TensorArg& tensor = m < inputs_.size() ? inputs_[m] : outputs_[m - inputs_.size()];
    FUSIOND_ASSIGN_OR_RETURN(testing::DeviceMemory moved, gpu_.Allocate(memory_bytes_[m]));
    FUSIOND_RETURN_IF_ERROR(
        gpu_.ToStatus(gpu_.driver().MemcpyDtoDAsync(moved.address(), tensor.address,
                                                    memory_bytes_[m], gpu_.stream()),
                      "relocate"));
    FUSIOND_RETURN_IF_ERROR(gpu_.Synchronize());
    tensor.address = moved.address();
    memory_[m] = std::move(moved);
  }
  return PlaceWorkspace();
}

absl::Status KernelRun::Launch() {
  return loaded_->Launch(gpu_.stream(), inputs_, outputs_, workspace_.address());
}

absl::Status KernelRun::Check() {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    FUSIOND_RETURN_IF_ERROR(gpu_.Fill(outputs_[o].address, static_cast<uint8_t>(kPoison),
                                      static_cast<uint64_t>(output_bytes_[o])));
  }
  FUSIOND_RETURN_IF_ERROR(Launch());
  FUSIOND_RETURN_IF_ERROR(gpu_.Synchronize());
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const absl::Status status = CheckOutput(o);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("output ", o, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status KernelRun::CheckOutput(size_t output) {
  const ir::Type& type = graph_.type(graph_.outputs()[output].value);
  std::string bytes(static_cast<size_t>(output_bytes_[output]), '\0');
  FUSIOND_RETURN_IF_ERROR(gpu_.Read(outputs_[output].address, bytes.data(), bytes.size()));
  const auto element_bytes = static_cast<size_t>(ir::ByteSize(type.dtype));
  const std::string poison(element_bytes, kPoison);
  for (size_t at = 0; at < bytes.size() && element_bytes > 1; at += element_bytes) {
    if (std::memcmp(bytes.data() + at, poison.data(), element_bytes) == 0)
      return absl::AbortedError(absl::StrCat("element ", at / element_bytes, " was not written"));
  }

  int64_t most = 1;
  for (const ir::ValueId id : graph_.inputs())
    most = std::max(most, ir::ElementCount(graph_.type(id)).value_or(0));
  const int64_t reduced =
      std::max<int64_t>(1, most / std::max<int64_t>(1, ir::ElementCount(type).value_or(0)));
  FUSIOND_ASSIGN_OR_RETURN(
      const testing::Slice slice,
      testing::SliceOutput(
          graph_, output,
          std::min(kCheckedElements, std::max<int64_t>(1, kEvaluatedElements / reduced)),
          output + 1));
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < samples_.size(); ++i) {
    HostTensor input;
    input.type = slice.graph.type(slice.graph.inputs()[i]);
    testing::ForEachKept(inputs_[i].shape, inputs_[i].strides, slice.inputs[i],
                         [&](int64_t at) { samples_[i].AppendTo(input, at); });
    inputs.push_back(std::move(input));
  }
  inputs.insert(inputs.end(), slice.coordinates.begin(), slice.coordinates.end());
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<HostTensor> reference,
                           cpu::Evaluate(slice.graph, std::move(inputs),
                                         {.double_precision = true, .track_error = true}));
  HostTensor got;
  got.type = reference[0].type;
  testing::ForEachKept(type.shape, outputs_[output].strides, slice.output, [&](int64_t at) {
    const char* const element = bytes.data() + static_cast<size_t>(at) * element_bytes;
    if (ir::IsFloatingPoint(type.dtype)) {
      got.floats.push_back(base::LoadFloat(type.dtype, element));
    } else {
      got.integers.push_back(base::LoadInteger(type.dtype, element));
    }
  });
  testing::BoundsReport report;
  FUSIOND_RETURN_IF_ERROR(testing::CompareWithinBounds(got, reference[0], {}, report));
  if (static_cast<double>(report.undecided) <=
      kMaxUndecided * static_cast<double>(report.elements)) {
    return absl::OkStatus();
  }
  return absl::AbortedError(
      absl::StrCat(report.undecided, " of ", report.elements, " checked elements have no bound"));
}

}  // namespace fusiond::bench
