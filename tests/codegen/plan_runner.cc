#include "tests/codegen/plan_runner.h"

#include <cmath>
#include <random>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/evaluate.h"

namespace fusiond::testing {
namespace {

using compiler::PlanRequest;
using compiler::PlanResult;
using cpu::HostTensor;
using executable::KernelArgument;
using executable::KernelStep;

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

std::string ScalarBytes(const HostTensor& scalar, ir::DType dtype) {
  const double f =
      scalar.floats.empty() ? static_cast<double>(scalar.integers[0]) : scalar.floats[0];
  const int64_t i = scalar.integers.empty() ? static_cast<int64_t>(f) : scalar.integers[0];
  switch (dtype) {
    case ir::DType::kBool:
      return emulation::Value(i != 0).value;
    case ir::DType::kInt32:
      return emulation::Value(static_cast<int32_t>(i)).value;
    case ir::DType::kInt:
      return emulation::Value(i).value;
    case ir::DType::kFloat:
      return emulation::Value(static_cast<float>(f)).value;
    default:
      return emulation::Value(f).value;
  }
}

// The tensors of a launch: inputs (scalars empty), outputs, workspace.
struct Launchable {
  std::vector<emulation::Tensor> tensors;
  std::vector<emulation::KernelCall> chain;
};

ir::Dims Constants(const std::vector<executable::Formula>& formulas) {
  ir::Dims dims;
  for (const executable::Formula& formula : formulas) dims.push_back(*formula.AsConstant());
  return dims;
}

absl::StatusOr<Launchable> MakeLaunch(const PlanRequest& request, const PlanResult& plan,
                                      const std::vector<HostTensor>& inputs) {
  Launchable launch;
  const int sms = request.device.sm_count;
  for (size_t i = 0; i < inputs.size(); ++i) {
    emulation::Tensor tensor;
    tensor.alignment = request.inputs[i].alignment;
    if (!inputs[i].type.scalar) {
      tensor.bytes.assign(
          Span(inputs[i].type.shape, request.inputs[i].strides, inputs[i].type.dtype), '\xff');
      cpu::WriteBuffer(inputs[i], tensor.bytes.data(), request.inputs[i].strides);
    }
    launch.tensors.push_back(std::move(tensor));
  }
  for (const executable::OutputSpec& output : plan.skeleton.outputs) {
    launch.tensors.push_back(emulation::Poison(
        output.alias_input
            ? 0
            : Span(Constants(output.shape), Constants(output.strides), output.dtype)));
  }
  const int workspace = static_cast<int>(launch.tensors.size());
  FUSIOND_ASSIGN_OR_RETURN(const int64_t bytes, plan.skeleton.workspace_bytes.Evaluate({}, sms));
  launch.tensors.push_back(emulation::Poison(bytes, 256));
  for (const executable::Step& step : plan.skeleton.steps) {
    const KernelStep& kernel = std::get<KernelStep>(step);
    emulation::KernelCall call;
    call.text = plan.sources[kernel.image].text;
    call.launch.entry = kernel.entry;
    FUSIOND_ASSIGN_OR_RETURN(call.launch.grid_x, kernel.grid[0].Evaluate({}, sms));
    FUSIOND_ASSIGN_OR_RETURN(call.launch.grid_y, kernel.grid[1].Evaluate({}, sms));
    FUSIOND_ASSIGN_OR_RETURN(call.launch.threads, kernel.block[0].Evaluate({}, sms));
    FUSIOND_ASSIGN_OR_RETURN(call.launch.cluster, kernel.cluster[0].Evaluate({}, sms));
    FUSIOND_ASSIGN_OR_RETURN(call.launch.smem_bytes, kernel.dynamic_smem.Evaluate({}, sms));
    call.launch.dependent = kernel.pdl;
    for (const KernelArgument& argument : kernel.arguments) {
      switch (argument.kind) {
        case KernelArgument::Kind::kInput:
          call.launch.arguments.push_back(emulation::In(static_cast<int>(argument.index)));
          break;
        case KernelArgument::Kind::kOutput:
          call.launch.arguments.push_back(
              emulation::In(static_cast<int>(inputs.size() + argument.index)));
          break;
        case KernelArgument::Kind::kWorkspace: {
          FUSIOND_ASSIGN_OR_RETURN(const int64_t offset, argument.formula.Evaluate({}, sms));
          call.launch.arguments.push_back(emulation::In(workspace, offset));
          break;
        }
        case KernelArgument::Kind::kScalar:
          call.launch.arguments.push_back(
              {-1, 0, ScalarBytes(inputs[argument.index], argument.dtype)});
          break;
        case KernelArgument::Kind::kInt32: {
          FUSIOND_ASSIGN_OR_RETURN(const int64_t value, argument.formula.Evaluate({}, sms));
          call.launch.arguments.push_back(emulation::Value(static_cast<int32_t>(value)));
          break;
        }
        case KernelArgument::Kind::kInt64: {
          FUSIOND_ASSIGN_OR_RETURN(const int64_t value, argument.formula.Evaluate({}, sms));
          call.launch.arguments.push_back(emulation::Value(value));
          break;
        }
      }
    }
    launch.chain.push_back(std::move(call));
  }
  return launch;
}

absl::Status CompareOutput(size_t index, const HostTensor& got, const HostTensor& reference) {
  const auto wrong = [&](size_t element, auto value, auto expected, double bound) {
    return absl::AbortedError(absl::StrCat("output ", index, " element ", element, " is ", value,
                                           ", the reference ", expected, ", the bound ", bound));
  };
  for (size_t e = 0; e < got.integers.size(); ++e) {
    const double bound = reference.error.empty() ? 0 : reference.error[e];
    if (std::isinf(bound)) continue;
    if (std::abs(static_cast<double>(got.integers[e] - reference.integers[e])) > bound)
      return wrong(e, got.integers[e], reference.integers[e], bound);
  }
  for (size_t e = 0; e < got.floats.size(); ++e) {
    const double value = got.floats[e], expected = reference.floats[e];
    const double bound = reference.error.empty() ? 0 : reference.error[e];
    if (std::isinf(bound) || std::isnan(bound)) continue;
    if (std::isnan(expected) && std::isnan(value)) continue;
    if (value == expected) continue;
    if (!(std::abs(value - expected) <= bound)) return wrong(e, value, expected, bound);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlanRequest> RequestFor(const ir::Graph& graph, const PlanRunOptions& options) {
  PlanRequest request;
  request.graph = graph;
  request.options = options.options;
  request.attempt = options.attempt;
  FUSIOND_ASSIGN_OR_RETURN(request.device, executable::ProfileByName(options.device));
  request.device.sm_count = 3;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Type& type = graph.type(graph.inputs()[i]);
    request.inputs.push_back({type.shape, type.strides, options.alignment});
    if (!options.strides.empty()) {
      request.inputs.back().strides = options.strides[i];
    } else {
      // What the graph leaves open becomes dense, with gaps of one element.
      ir::Dims& strides = request.inputs.back().strides;
      int64_t next = 2;
      for (size_t d = strides.size(); d-- > 0;) {
        if (strides[d] == ir::kUnknownStride) strides[d] = next;
        next = std::max(next, strides[d] * std::max<int64_t>(type.shape[d], 1) + 1);
      }
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
  cpu::EvaluateOptions exact;
  exact.double_precision = true;
  exact.track_error = true;
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<HostTensor> references,
                           cpu::Evaluate(graph, inputs, exact));
  FUSIOND_ASSIGN_OR_RETURN(Launchable launch, MakeLaunch(request, plan, inputs));
  emulation::RunOptions emulation = options.emulation;
  emulation.arch = plan.skeleton.arch;
  std::vector<std::string> after;
  for (const emulation::Tensor& tensor : launch.tensors) after.push_back(tensor.bytes);
  if (!launch.chain.empty()) {
    FUSIOND_ASSIGN_OR_RETURN(after, emulation::Emulate(launch.chain, launch.tensors, emulation));
  }
  for (size_t o = 0; o < plan.skeleton.outputs.size(); ++o) {
    const executable::OutputSpec& output = plan.skeleton.outputs[o];
    const size_t tensor = output.alias_input ? *output.alias_input : inputs.size() + o;
    const ir::Type& type = references[o].type;
    const HostTensor got = cpu::ReadBuffer(type, after[tensor].data(), Constants(output.strides));
    const absl::Status status = CompareOutput(o, got, references[o]);
    if (!status.ok()) {
      return absl::Status(
          status.code(), absl::StrCat(status.message(), "\n", plan.canonical_ir, plan.explanation));
    }
  }
  return absl::OkStatus();
}

absl::Status RunPlan(absl::string_view text, const PlanRunOptions& options) {
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, ir::Parse(text));
  return RunPlan(graph, options);
}

}  // namespace fusiond::testing
