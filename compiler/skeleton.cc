#include "compiler/skeleton.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/workspace.h"

namespace fusiond::compiler {
namespace {

using executable::Executable;
using executable::Formula;
using executable::Guard;
using executable::KernelArgument;
using executable::KernelStep;

// Pairs of an output and an input that one launch compares.
constexpr size_t kMaxOverlapGuards = 1024;

absl::Status CheckLayout(size_t index, const ir::Type& type, const InputLayout& layout) {
  const auto error = [&](auto... what) {
    return absl::InvalidArgumentError(absl::StrCat("input ", index, ": ", what...));
  };
  if (layout.alignment <= 0 || (layout.alignment & (layout.alignment - 1)) != 0)
    return error("alignment ", layout.alignment, " is no power of two");
  if (layout.strides.size() != type.shape.size())
    return error(layout.strides.size(), " strides for rank ", type.rank());
  for (int d = 0; d < type.rank(); ++d) {
    if (layout.strides[d] < 0) return error("stride of dim ", d, " is ", layout.strides[d]);
    const bool stated = type.strides[d] != ir::kUnknownStride && type.shape[d] > 1;
    if (stated && layout.strides[d] != type.strides[d])
      return error("stride of dim ", d, " is ", layout.strides[d], ", the definition says ",
                   type.strides[d]);
  }
  return absl::OkStatus();
}

// Dense as the type's own strides order the dims; row-major where they leave that open or expand.
ir::Dims OutputStrides(const ir::Type& type) {
  ir::Dims strides = ir::ContiguousStrides(type.shape);
  int64_t dense = 1;
  for (int d = 0; d < type.rank(); ++d) {
    if (type.shape[d] == 1) continue;
    if (type.strides[d] <= 0) return strides;
    dense += (type.shape[d] - 1) * type.strides[d];
  }
  return dense == ir::ElementCount(type) ? type.strides : strides;
}

std::vector<Formula> Constants(const ir::Dims& numbers) {
  std::vector<Formula> formulas;
  for (int64_t number : numbers) formulas.push_back(Formula::Constant(number));
  return formulas;
}

std::vector<std::string> NvrtcOptions(Math math) {
  std::vector<std::string> options = {"--std=c++17"};
  if (math == Math::kStrict) options.push_back("--fmad=false");
  return options;
}

KernelArgument ToArgument(const codegen::Parameter& parameter, const ScheduledRegion& region,
                          const ir::Graph& graph, absl::Span<const Formula> workspace,
                          absl::Span<const Formula> scratch) {
  KernelArgument argument;
  switch (parameter.kind) {
    case codegen::Parameter::Kind::kTensor: {
      const schedule::Place& place = region.region.tensors[parameter.index].place;
      argument.index = place.index;
      switch (place.kind) {
        case schedule::Place::Kind::kInput:
          argument.kind = KernelArgument::Kind::kInput;
          break;
        case schedule::Place::Kind::kOutput:
          argument.kind = KernelArgument::Kind::kOutput;
          break;
        case schedule::Place::Kind::kWorkspace:
          argument.kind = KernelArgument::Kind::kWorkspace;
          argument.index = 0;
          argument.formula = workspace[place.index];
          break;
      }
      break;
    }
    case codegen::Parameter::Kind::kScratch:
      argument.kind = KernelArgument::Kind::kWorkspace;
      argument.formula = scratch[parameter.index];
      break;
    case codegen::Parameter::Kind::kScalar: {
      const ir::ValueId value = region.region.scalars[parameter.index];
      argument.kind = KernelArgument::Kind::kScalar;
      argument.index = static_cast<uint32_t>(
          std::find(graph.inputs().begin(), graph.inputs().end(), value) - graph.inputs().begin());
      argument.dtype = ir::ComputeType(graph.type(value).dtype);
      break;
    }
    case codegen::Parameter::Kind::kInt32:
      argument.kind = KernelArgument::Kind::kInt32;
      argument.formula = parameter.formula;
      break;
    case codegen::Parameter::Kind::kInt64:
      argument.kind = KernelArgument::Kind::kInt64;
      argument.formula = parameter.formula;
      break;
  }
  return argument;
}

void AddGuards(const ir::Graph& graph, const PlanRequest& request,
               absl::Span<const ScheduledRegion> regions, Executable& executable) {
  std::vector<int64_t> input_alignment(graph.inputs().size(), 1);
  std::vector<int64_t> output_alignment(graph.outputs().size(), 1);
  for (const ScheduledRegion& region : regions) {
    for (size_t t = 0; t < region.region.tensors.size(); ++t) {
      const schedule::Place& place = region.region.tensors[t].place;
      const int64_t alignment = region.emission.alignment[t];
      if (place.kind == schedule::Place::Kind::kInput)
        input_alignment[place.index] = std::max(input_alignment[place.index], alignment);
      if (place.kind == schedule::Place::Kind::kOutput)
        output_alignment[place.index] = std::max(output_alignment[place.index], alignment);
    }
  }
  for (uint32_t i = 0; i < graph.inputs().size(); ++i) {
    if (executable.inputs[i].scalar) continue;
    const ir::Type& type = graph.type(graph.inputs()[i]);
    for (uint32_t d = 0; d < type.shape.size(); ++d) {
      Guard guard;
      guard.input = i;
      guard.dim = d;
      guard.kind = Guard::Kind::kExtentEquals;
      guard.value = type.shape[d];
      executable.guards.push_back(guard);
      if (type.shape[d] < 2) continue;
      guard.kind = Guard::Kind::kStrideEquals;
      guard.value = request.inputs[i].strides[d];
      executable.guards.push_back(guard);
    }
    if (input_alignment[i] > 1) {
      Guard guard;
      guard.kind = Guard::Kind::kAligned;
      guard.input = i;
      guard.value = input_alignment[i];
      executable.guards.push_back(guard);
    }
  }
  for (uint32_t o = 0; o < graph.outputs().size(); ++o) {
    if (output_alignment[o] > 1) {
      Guard guard;
      guard.kind = Guard::Kind::kAligned;
      guard.output = o;
      guard.value = output_alignment[o];
      executable.guards.push_back(guard);
    }
    if (!ExcludesOverlap(graph)) continue;
    for (uint32_t i = 0; i < graph.inputs().size(); ++i) {
      if (executable.inputs[i].scalar || graph.outputs()[o].alias_input == i) continue;
      Guard guard;
      guard.kind = Guard::Kind::kNoOverlap;
      guard.input = i;
      guard.output = o;
      executable.guards.push_back(guard);
    }
  }
}

}  // namespace

absl::StatusOr<Executable> Interface(const ir::Graph& graph, const PlanRequest& request) {
  Executable executable;
  executable.arch = request.device.arch;
  executable.profile = request.device.profile;
  executable.provenance.compiler_version = CompilerVersion();
  executable.workspace_alignment = schedule::kWorkspaceAlignment;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Type& type = graph.type(graph.inputs()[i]);
    executable::InputSpec spec;
    spec.dtype = type.dtype;
    spec.scalar = type.scalar;
    if (schedule::InHostMemory(graph, graph.inputs()[i])) {
      spec.space = executable::MemorySpace::kHost;
      // Kernels take its value, whoever launches them.
      spec.scalar |= !request.device.is_cpu();
    }
    if (!spec.scalar) {
      if (absl::Status status = CheckLayout(i, type, request.inputs[i]); !status.ok())
        return status;
      spec.shape.assign(type.shape.begin(), type.shape.end());
      spec.strides.assign(request.inputs[i].strides.begin(), request.inputs[i].strides.end());
    }
    executable.inputs.push_back(std::move(spec));
  }
  for (const ir::Output& output : graph.outputs()) {
    const ir::Type& type = graph.type(output.value);
    executable::OutputSpec spec;
    spec.dtype = type.dtype;
    spec.shape = Constants(type.shape);
    spec.alias_input = output.alias_input;
    spec.strides = Constants(output.alias_input ? request.inputs[*output.alias_input].strides
                                                : OutputStrides(type));
    executable.outputs.push_back(std::move(spec));
  }
  return executable;
}

std::vector<schedule::BufferLayout> OutputLayouts(const Executable& interface,
                                                  const ir::Graph& graph) {
  std::vector<schedule::BufferLayout> layouts;
  for (size_t o = 0; o < interface.outputs.size(); ++o) {
    const executable::OutputSpec& output = interface.outputs[o];
    ir::Dims shape;
    schedule::BufferLayout layout;
    for (const Formula& extent : output.shape) shape.push_back(*extent.AsConstant());
    for (const Formula& stride : output.strides) layout.strides.push_back(*stride.AsConstant());
    // Computed in another shape, such an output is row-major in both.
    const ir::Dims& computed = graph.type(graph.outputs()[o].value).shape;
    if (computed != shape) layout.strides = ir::ContiguousStrides(computed);
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

bool ExcludesOverlap(const ir::Graph& graph) {
  return graph.inputs().size() * graph.outputs().size() <= kMaxOverlapGuards;
}

void AddSteps(const ir::Graph& graph, const PlanRequest& request,
              absl::Span<const ScheduledRegion> regions, const schedule::Storage& storage,
              size_t segments, Executable& executable, std::vector<KernelSource>& sources) {
  AddGuards(graph, request, regions, executable);
  // Lifetimes in steps: region r's kernels are steps first_step[r] … first_step[r + 1] - 1.
  std::vector<size_t> first_step = {0};
  for (const ScheduledRegion& region : regions)
    first_step.push_back(first_step.back() + region.emission.kernels.size());
  std::vector<schedule::WorkspaceBuffer> buffers;
  for (const schedule::WorkspaceTensor& tensor : storage.workspace) {
    buffers.push_back({Formula::Constant(tensor.bytes), first_step[tensor.first_segment],
                       first_step[tensor.last_segment + 1] - 1});
  }
  std::vector<size_t> first_scratch;
  for (size_t r = 0; r < regions.size(); ++r) {
    first_scratch.push_back(buffers.size());
    for (const Formula& bytes : regions[r].emission.scratch_bytes)
      buffers.push_back({bytes, first_step[r], first_step[r + 1] - 1});
  }
  const schedule::WorkspacePlan workspace = schedule::PlanWorkspace(buffers);
  executable.workspace_bytes = workspace.bytes;

  absl::flat_hash_map<std::string, uint32_t> images;  // by text
  for (size_t r = 0; r < regions.size(); ++r) {
    const ScheduledRegion& region = regions[r];
    absl::StrAppend(&executable.provenance.schedule, r < segments ? "" : "copy ",
                    region.last_resort ? "last resort " : "", schedule::Print(region.schedule),
                    "\n");
    for (const codegen::Kernel& kernel : region.emission.kernels) {
      const auto [image, added] =
          images.try_emplace(kernel.text, static_cast<uint32_t>(sources.size()));
      if (added) {
        sources.push_back({absl::StrCat("fd_k", sources.size(), kernel.entry.substr(2)),
                           kernel.text, NvrtcOptions(request.options.math)});
        executable.images.emplace_back();
      }
      KernelStep step;
      step.image = image->second;
      step.entry = kernel.entry;
      for (int d = 0; d < 3; ++d) {
        step.grid[d] = kernel.grid[d];
        step.block[d] = Formula::Constant(d == 0 ? kernel.threads : 1);
        step.cluster[d] = Formula::Constant(d == 0 ? kernel.cluster : 1);
      }
      step.dynamic_smem = Formula::Constant(kernel.smem_bytes);
      step.pdl = kernel.waits_for_primary && request.device.has_pdl && !executable.steps.empty();
      for (const codegen::Parameter& parameter : kernel.parameters) {
        step.arguments.push_back(
            ToArgument(parameter, region, graph, workspace.offsets,
                       absl::MakeConstSpan(workspace.offsets).subspan(first_scratch[r])));
      }
      executable.steps.emplace_back(std::move(step));
    }
  }
}

}  // namespace fusiond::compiler
