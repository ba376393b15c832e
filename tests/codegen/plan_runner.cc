#include "tests/codegen/plan_runner.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "runtime/base/status_macros.h"
#include "runtime/executable/explanation.h"
#include "tests/emulation/run_executable.h"
#include "tests/support/kernel_reference.h"

namespace fusiond::testing {
namespace {

using compiler::InputLayout;
using compiler::PlanRequest;
using compiler::PlanResult;
using cpu::HostTensor;

int64_t Span(const ir::Dims& shape, const ir::Dims& strides, ir::DType dtype) {
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    last += (shape[d] - 1) * strides[d];
  }
  return (last + 1) * ir::ByteSize(dtype);
}

HostTensor RandomTensor(const ir::Type& type, const ir::Dims& strides, std::mt19937_64& random) {
  HostTensor tensor;
  tensor.type = type;
  const int64_t count = ir::ElementCount(type).value_or(0);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < count; ++i) {
    if (ir::IsFloatingPoint(type.dtype)) {
      tensor.floats.push_back(cpu::RoundTo(type.dtype, normal(random)));
    } else if (type.dtype == ir::DType::kBool) {
      tensor.integers.push_back(static_cast<int64_t>(random() % 2));
    } else {
      tensor.integers.push_back(static_cast<int64_t>(random() % 41) - 20);
    }
  }
  if (type.scalar) return tensor;
  // Elements that share an address share a value: what is in memory is what counts.
  std::string bytes(Span(type.shape, strides, type.dtype), '\0');
  cpu::WriteBuffer(tensor, bytes.data(), strides);
  return cpu::ReadBuffer(type, bytes.data(), strides);
}

uint64_t ScalarBits(const HostTensor& scalar) {
  return scalar.floats.empty() ? static_cast<uint64_t>(scalar.integers[0])
                               : absl::bit_cast<uint64_t>(scalar.floats[0]);
}

ir::Dims Constants(const std::vector<executable::Formula>& formulas) {
  ir::Dims dims;
  for (const executable::Formula& formula : formulas) dims.push_back(*formula.AsConstant());
  return dims;
}

std::vector<emulation::ExecutableInput> ToInputs(const PlanRequest& request,
                                                 const executable::Executable& executable,
                                                 const std::vector<HostTensor>& tensors) {
  std::vector<emulation::ExecutableInput> inputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const InputLayout& layout = request.inputs[i];
    emulation::ExecutableInput input;
    if (executable.inputs[i].scalar) {
      input.arg.bits = ScalarBits(tensors[i]);
    } else {
      input.arg.shape = tensors[i].type.shape;
      input.arg.strides = layout.strides;
      input.alignment = layout.alignment;
      input.bytes.assign(Span(tensors[i].type.shape, layout.strides, tensors[i].type.dtype),
                         '\xff');
      cpu::WriteBuffer(tensors[i], input.bytes.data(), layout.strides);
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// What the graph leaves open becomes dense with gaps of one element, from the innermost dim
// outwards as stride_order says, so that no two elements share a place.
void CloseStrides(const ir::Attributes& attributes, const ir::Dims& shape, ir::Dims& strides) {
  const std::vector<int64_t>& order = attributes.Ints(ir::AttributeKey::kStrideOrder);
  const size_t rank = shape.size();
  std::vector<size_t> dims(rank);  // by order
  for (size_t d = 0; d < rank; ++d) {
    dims[order.empty() ? rank - 1 - d : static_cast<size_t>(order[d])] = d;
  }
  int64_t next = 2;
  for (const size_t d : dims) {
    if (strides[d] == ir::kUnknownStride) strides[d] = next;
    next = std::max(next, strides[d] * std::max<int64_t>(shape[d], 1) + 1);
  }
}

}  // namespace

absl::StatusOr<PlanRequest> RequestFor(const ir::Graph& graph, const PlanRunOptions& options) {
  PlanRequest request;
  request.graph = graph;
  request.options = options.options;
  request.attempt = options.attempt;
  request.explain = true;
  FUSIOND_ASSIGN_OR_RETURN(request.device, executable::ProfileByName(options.device));
  if (!options.runner) request.device.sm_count = 3;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Type& type = graph.type(graph.inputs()[i]);
    request.inputs.push_back({type.shape, type.strides, options.alignment});
    if (!options.strides.empty()) {
      request.inputs.back().strides = options.strides[i];
    } else {
      CloseStrides(graph.producer(graph.inputs()[i]).attributes, type.shape,
                   request.inputs.back().strides);
    }
  }
  return request;
}

absl::Status RunPlan(const ir::Graph& graph, const PlanRunOptions& options) {
  FUSIOND_ASSIGN_OR_RETURN(PlanRequest request, RequestFor(graph, options));
  FUSIOND_ASSIGN_OR_RETURN(const PlanResult plan, compiler::Plan(request));
  std::mt19937_64 random(options.seed);
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    inputs.push_back(
        RandomTensor(graph.type(graph.inputs()[i]), request.inputs[i].strides, random));
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph canonical, ir::Parse(plan.canonical_ir));
  FUSIOND_ASSIGN_OR_RETURN(const KernelReference reference,
                           KernelReference::Make(graph, canonical, inputs, options.options.math));
  std::vector<std::string> texts;
  for (const compiler::KernelSource& source : plan.sources) texts.push_back(source.text);
  if (!options.fault.edits.empty()) {
    // Into the first kernel that has such a place.
    auto text = std::find_if(texts.begin(), texts.end(), [&](const std::string& t) {
      return emulation::Plant(t, options.fault).ok();
    });
    if (text == texts.end()) text = texts.begin();
    FUSIOND_ASSIGN_OR_RETURN(*text, emulation::Plant(*text, options.fault));
  }
  emulation::RunOptions emulation = options.emulation;
  emulation.arch = plan.skeleton.arch;
  const emulation::KernelRunner runner =
      options.runner ? options.runner : emulation::Emulator(emulation);
  FUSIOND_ASSIGN_OR_RETURN(
      const std::vector<std::string> outputs,
      emulation::RunExecutable(plan.skeleton, texts, ToInputs(request, plan.skeleton, inputs),
                               runner, {request.device.sm_count, 16}));
  for (size_t o = 0; o < outputs.size(); ++o) {
    const executable::OutputSpec& output = plan.skeleton.outputs[o];
    const HostTensor got =
        cpu::ReadBuffer(reference.type(o), outputs[o].data(), Constants(output.strides));
    BoundsReport report;
    const absl::Status status = reference.Check(o, got, {}, report);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("output ", o, " ", status.message(), "\n",
                                                      executable::Print(plan.explanation)));
    }
  }
  return absl::OkStatus();
}

absl::Status RunPlan(absl::string_view text, const PlanRunOptions& options) {
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, ir::Parse(text));
  return RunPlan(graph, options);
}

}  // namespace fusiond::testing
