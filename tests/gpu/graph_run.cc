#include "tests/gpu/graph_run.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/loaded_executable.h"
#include "tests/gpu/compiled_graph.h"
#include "tests/gpu/samples.h"
#include "tests/support/kernel_reference.h"

namespace fusiond::testing {
namespace {

using cpu::HostTensor;
using executable::TensorArg;

constexpr uint64_t kMargin = 512;  // bytes in front of and behind every tensor, checked afterwards
constexpr char kPoison = '\xa5';

// One tensor in device memory with margins around it.
class Placed {
 public:
  // `bytes` becomes the content; the address is a multiple of `alignment` and of no larger power of
  // two up to 256.
  static absl::StatusOr<Placed> Make(Gpu& gpu, const std::string& bytes, int64_t alignment) {
    Placed placed;
    placed.begin_ = kMargin + static_cast<uint64_t>(alignment < 256 ? alignment : 0);
    placed.size_ = bytes.size();
    placed.before_.assign(placed.begin_, kPoison);
    placed.before_ += bytes;
    placed.before_.append(kMargin, kPoison);
    FUSIOND_ASSIGN_OR_RETURN(placed.memory_, gpu.Allocate(placed.before_.size()));
    FUSIOND_RETURN_IF_ERROR(gpu.Write(placed.memory_.address(), placed.before_));
    return placed;
  }

  uint64_t address() const { return memory_.address() + begin_; }

  absl::Status Reset(Gpu& gpu) const { return gpu.Write(memory_.address(), before_); }

  // The content now. ABORTED when the margins have changed.
  absl::StatusOr<std::string> Content(Gpu& gpu) const {
    std::string all(before_.size(), '\0');
    FUSIOND_RETURN_IF_ERROR(gpu.Read(memory_.address(), all.data(), all.size()));
    for (size_t i = 0; i < all.size(); ++i) {
      if (i >= begin_ && i < begin_ + size_) continue;
      if (all[i] != kPoison) {
        return absl::AbortedError(
            absl::StrCat("a byte was written outside a tensor of ", size_, " bytes, at offset ",
                         static_cast<int64_t>(i) - static_cast<int64_t>(begin_)));
      }
    }
    return all.substr(begin_, size_);
  }

 private:
  DeviceMemory memory_;
  uint64_t begin_ = 0;
  uint64_t size_ = 0;
  std::string before_;
};

struct Input {
  HostTensor tensor;
  ir::Dims strides;
  int64_t alignment;
};

// Elements that share an address share a value: what is in memory is what counts.
HostTensor AsStored(const HostTensor& tensor, const ir::Dims& strides, std::string& bytes) {
  bytes.assign(static_cast<size_t>(SpanBytes(tensor.type.shape, strides, tensor.type.dtype)),
               kPoison);
  cpu::WriteBuffer(tensor, bytes.data(), strides);
  return cpu::ReadBuffer(tensor.type, bytes.data(), strides);
}

std::vector<Input> MakeInputs(const ir::Graph& graph, const GraphRunOptions& options) {
  std::vector<Input> inputs;
  for (ir::ValueId id : graph.inputs()) {
    Input input;
    input.tensor.type = graph.type(id);
    input.strides = LayOut(input.tensor.type);
    input.alignment = std::max(options.alignment, ir::ByteSize(input.tensor.type.dtype));
    const Samples samples(input.tensor.type.dtype, options.seed + inputs.size(), options.special);
    const int64_t count = ir::ElementCount(input.tensor.type).value_or(0);
    for (int64_t i = 0; i < count; ++i) samples.AppendTo(input.tensor, i);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

uint64_t ScalarBits(const HostTensor& scalar) {
  return scalar.floats.empty() ? static_cast<uint64_t>(scalar.integers[0])
                               : std::bit_cast<uint64_t>(scalar.floats[0]);
}

// Everything of one executable's launches.
class Launches {
 public:
  Launches(Gpu& gpu, const cuda::LoadedExecutable& loaded) : gpu_(gpu), loaded_(loaded) {}

  absl::Status Prepare(std::vector<Input>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      Input& input = inputs[i];
      TensorArg arg;
      std::string bytes;
      if (loaded_.executable().inputs[i].scalar) {
        arg.bits = ScalarBits(input.tensor);
      } else {
        arg.shape = input.tensor.type.shape;
        arg.strides = input.strides;
        input.tensor = AsStored(input.tensor, input.strides, bytes);
      }
      FUSIOND_ASSIGN_OR_RETURN(Placed placed, Placed::Make(gpu_, bytes, input.alignment));
      arg.address = placed.address();
      placed_.push_back(std::move(placed));
      inputs_.push_back(std::move(arg));
    }
    FUSIOND_ASSIGN_OR_RETURN(const std::vector<executable::OutputShape> shapes,
                             loaded_.OutputShapes(inputs_));
    for (size_t o = 0; o < shapes.size(); ++o) {
      const std::optional<uint32_t> alias = loaded_.executable().outputs[o].alias_input;
      TensorArg arg;
      arg.shape = shapes[o].shape;
      arg.strides = shapes[o].strides;
      where_.push_back(alias.value_or(placed_.size()));
      if (!alias) {
        FUSIOND_ASSIGN_OR_RETURN(
            Placed placed,
            Placed::Make(gpu_, std::string(static_cast<size_t>(shapes[o].bytes), kPoison), 256));
        placed_.push_back(std::move(placed));
      }
      arg.address = placed_[where_.back()].address();
      outputs_.push_back(std::move(arg));
    }
    FUSIOND_ASSIGN_OR_RETURN(const int64_t bytes, loaded_.WorkspaceBytes(inputs_));
    FUSIOND_ASSIGN_OR_RETURN(
        Placed placed, Placed::Make(gpu_, std::string(static_cast<size_t>(bytes), kPoison), 256));
    placed_.push_back(std::move(placed));
    return absl::OkStatus();
  }

  // Launches on fresh memory and returns the outputs' bytes.
  absl::StatusOr<std::vector<std::string>> Run() {
    for (const Placed& placed : placed_) FUSIOND_RETURN_IF_ERROR(placed.Reset(gpu_));
    FUSIOND_RETURN_IF_ERROR(
        loaded_.Launch(gpu_.stream(), inputs_, outputs_, placed_.back().address()));
    FUSIOND_RETURN_IF_ERROR(gpu_.Synchronize());
    std::vector<std::string> contents;
    for (const Placed& placed : placed_) {
      FUSIOND_ASSIGN_OR_RETURN(std::string content, placed.Content(gpu_));
      contents.push_back(std::move(content));
    }
    std::vector<std::string> outputs;
    for (size_t where : where_) outputs.push_back(contents[where]);
    return outputs;
  }

  absl::Span<const TensorArg> outputs() const { return outputs_; }

 private:
  Gpu& gpu_;
  const cuda::LoadedExecutable& loaded_;
  std::vector<Placed> placed_;  // inputs, outputs that alias none, workspace
  std::vector<TensorArg> inputs_, outputs_;
  std::vector<size_t> where_;  // of each output, in placed_
};

absl::Status LaunchAndCompare(Gpu& gpu, const cuda::LoadedExecutable& loaded,
                              const ir::Graph& graph, const ir::Graph& canonical,
                              const GraphRunOptions& options, GraphRunReport& report) {
  std::vector<Input> inputs = MakeInputs(graph, options);
  Launches launches(gpu, loaded);
  FUSIOND_RETURN_IF_ERROR(launches.Prepare(inputs));
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<std::string> outputs, launches.Run());
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<std::string> again, launches.Run());
  std::vector<HostTensor> tensors;
  for (Input& input : inputs) tensors.push_back(std::move(input.tensor));
  FUSIOND_ASSIGN_OR_RETURN(const KernelReference reference,
                           KernelReference::Make(graph, canonical, tensors, options.options.math));
  BoundsReport bounds;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const std::string where = absl::StrCat("output ", o, ": ");
    if (outputs[o] != again[o])
      return absl::AbortedError(where + "two launches on equal inputs differ");
    const TensorArg& arg = launches.outputs()[o];
    const HostTensor got = cpu::ReadBuffer(reference.type(o), outputs[o].data(), arg.strides);
    const absl::Status status = reference.Check(o, got, options.bounds, bounds);
    if (!status.ok()) return absl::Status(status.code(), where + std::string(status.message()));
  }
  report.bounds.elements += bounds.elements;
  report.bounds.undecided += bounds.undecided;
  const auto allowed = options.max_undecided * static_cast<double>(bounds.elements);
  if (static_cast<double>(bounds.undecided) <= allowed) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(bounds.undecided, " of ", bounds.elements,
                                         " elements have no bound, limit ", allowed));
}

}  // namespace

ir::Dims LayOut(const ir::Type& type) {
  ir::Dims strides = type.strides;
  int64_t dense = 2;
  for (size_t d = strides.size(); d-- > 0;) {
    if (strides[d] == ir::kUnknownStride) strides[d] = dense;
    dense = std::max(dense, strides[d] * std::max<int64_t>(type.shape[d], 1) + 1);
  }
  return strides;
}

int64_t SpanBytes(const ir::Dims& shape, const ir::Dims& strides, ir::DType dtype) {
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    last += (shape[d] - 1) * strides[d];
  }
  return (last + 1) * ir::ByteSize(dtype);
}

absl::Status RunGraph(Gpu& gpu, const nvrtc::Nvrtc& nvrtc, const ir::Graph& graph,
                      const GraphRunOptions& options, GraphRunReport& report) {
  compiler::PlanRequest request;
  request.graph = graph;
  request.device = gpu.device().info;
  request.options = options.options;
  for (ir::ValueId id : graph.inputs()) {
    const ir::Type& type = graph.type(id);
    request.inputs.push_back(
        {type.shape, LayOut(type), std::max(options.alignment, ir::ByteSize(type.dtype))});
  }
  FUSIOND_ASSIGN_OR_RETURN(CompiledGraph compiled, CompileGraph(std::move(request), nvrtc));
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph canonical, ir::Parse(compiled.canonical_ir));
  report.kernels += static_cast<int>(compiled.executable.steps.size());
  FUSIOND_ASSIGN_OR_RETURN(
      const std::unique_ptr<cuda::LoadedExecutable> loaded,
      cuda::LoadedExecutable::Load(gpu.driver(), std::move(compiled.executable),
                                   gpu.device().info.sm_count));
  const absl::Status status = LaunchAndCompare(gpu, *loaded, graph, canonical, options, report);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), "\n", compiled.explanation));
}

}  // namespace fusiond::testing
