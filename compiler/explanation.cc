#include "compiler/explanation.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/device_model.h"
#include "compiler/schedule/held.h"
#include "compiler/schedule/variants.h"
#include "runtime/base/status_macros.h"

namespace fusiond::compiler {
namespace {

using executable::KernelStep;
using schedule::Region;

class Explainer {
 public:
  Explainer(const PlanRequest& request, const PlanResult& plan) : request_(request), plan_(plan) {
    for (const InputLayout& input : request.inputs) {
      shapes_.emplace_back(input.shape.begin(), input.shape.end());
    }
    for (const std::vector<int64_t>& shape : shapes_) spans_.push_back(shape);
  }

  absl::StatusOr<int64_t> Number(const executable::Formula& formula) const {
    return formula.Evaluate(spans_, request_.device.sm_count);
  }

  void AddInterface(v1::Explanation& to) const {
    const executable::Executable& skeleton = plan_.skeleton;
    for (size_t i = 0; i < skeleton.inputs.size(); ++i) {
      const executable::InputSpec& input = skeleton.inputs[i];
      std::string text(base::DTypeName(input.dtype));
      if (!input.scalar) {
        absl::StrAppend(&text, "[", absl::StrJoin(input.shape, ","), "]{",
                        absl::StrJoin(input.strides, ","), "}, ", request_.inputs[i].alignment,
                        "-byte aligned");
      }
      to.add_inputs(std::move(text));
    }
    const auto extent = [](std::string* out, const executable::Formula& formula) {
      absl::StrAppend(out, formula.ToString());
    };
    for (const executable::OutputSpec& output : skeleton.outputs) {
      to.add_outputs(absl::StrCat(
          base::DTypeName(output.dtype), "[", absl::StrJoin(output.shape, ",", extent), "]{",
          absl::StrJoin(output.strides, ",", extent), "}",
          output.alias_input ? absl::StrCat(" over input ", *output.alias_input) : ""));
    }
  }

  // The kernels of a region; `step`: its first, behind its last afterwards.
  absl::Status AddKernels(const codegen::Emission& emission, size_t& step,
                          v1::Explanation::Segment& to) const {
    for (size_t k = 0; k < emission.kernels.size(); ++k, ++step) {
      const KernelStep& kernel = std::get<KernelStep>(plan_.skeleton.steps[step]);
      v1::Explanation::Kernel& made = *to.add_kernels();
      made.set_name(plan_.sources[kernel.image].name);
      made.set_entry(kernel.entry);
      base::FieldHasher hasher;
      hasher.Field(plan_.sources[kernel.image].text);
      for (const std::string& option : plan_.sources[kernel.image].nvrtc_options)
        hasher.Field(option);
      made.set_digest(std::string(hasher.Finish().View()));
      for (const executable::Formula& extent : kernel.grid) {
        FUSIOND_ASSIGN_OR_RETURN(const int64_t ctas, Number(extent));
        made.add_grid(ctas);
      }
      made.set_threads(emission.kernels[k].threads);
      made.set_cluster(emission.kernels[k].cluster);
      made.set_dynamic_smem_bytes(emission.kernels[k].smem_bytes);
      made.set_pdl(kernel.pdl);
    }
    return absl::OkStatus();
  }

 private:
  const PlanRequest& request_;
  const PlanResult& plan_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<absl::Span<const int64_t>> spans_;
};

// "2048 rows x 8192 columns", "4x512 rows x 64 columns", "4096 elements".
std::string Space(const Region& region) {
  std::vector<int64_t> rows, columns;
  for (const schedule::Dim& dim : region.dims) (dim.column ? columns : rows).push_back(dim.extent);
  const auto text = [](const std::vector<int64_t>& extents) {
    return extents.empty() ? "1" : absl::StrJoin(extents, "x");
  };
  if (!region.row_reductions && !region.column_reductions)
    return absl::StrCat(text(columns), " elements");
  return absl::StrCat(text(rows), " rows x ", text(columns), " columns");
}

void AddTensors(const ScheduledRegion& made, v1::Explanation::Segment& to) {
  const Region& region = made.region;
  for (size_t t = 0; t < region.tensors.size(); ++t) {
    v1::Explanation::Tensor& tensor = *to.add_tensors();
    tensor.set_name(schedule::NameOf(region.tensors[t].place));
    tensor.set_dtype(std::string(base::DTypeName(region.tensors[t].dtype)));
    tensor.set_access_bytes(made.emission.alignment[t]);
  }
  for (const schedule::Instr& instr : region.instrs) {
    if (!schedule::ReadsMemory(instr)) continue;
    v1::Explanation::Tensor& tensor = *to.mutable_tensors(static_cast<int>(instr.access.tensor));
    tensor.set_read_bytes(tensor.read_bytes() + schedule::TouchedBytes(region, instr.access));
  }
  for (const schedule::Store& store : region.stores) {
    v1::Explanation::Tensor& tensor = *to.mutable_tensors(static_cast<int>(store.access.tensor));
    tensor.set_written_bytes(tensor.written_bytes() + schedule::TouchedBytes(region, store.access));
  }
}

void AddChoices(const ScheduledRegion& made, v1::Explanation::Segment& to) {
  for (size_t c = 0; c < made.candidates.accepted.size(); ++c) {
    const schedule::Candidate& candidate = made.candidates.accepted[c];
    v1::Explanation::Choice& choice = *to.add_choices();
    choice.set_schedule(schedule::Print(candidate.schedule));
    if (const schedule::Variant* variant = schedule::FindVariant(candidate.schedule))
      choice.set_meaning(std::string(variant->meaning));
    choice.set_dram_bytes(candidate.cost.dram_bytes);
    choice.set_kernels(candidate.cost.kernels);
    choice.set_microseconds(candidate.cost.microseconds);
    choice.set_chosen(c == made.chosen);
  }
  for (const schedule::Refusal& refusal : made.candidates.refused) {
    v1::Explanation::Choice& choice = *to.add_choices();
    choice.set_schedule(refusal.schedule);
    choice.set_refused(refusal.reason);
  }
}

void AddHeld(const ScheduledRegion& made, v1::Explanation::Segment& to) {
  for (schedule::HeldBuffer& held : schedule::HeldBuffers(made.region, made.schedule)) {
    v1::Explanation::Buffer& buffer = *to.add_held();
    buffer.set_what(std::move(held.what));
    buffer.set_shared(held.shared);
    buffer.set_bytes(held.bytes);
  }
}

}  // namespace

absl::StatusOr<v1::Explanation> Explain(const PlanRequest& request, const ir::Graph& graph,
                                        absl::Span<const schedule::Segment> segments,
                                        absl::Span<const ScheduledRegion> regions,
                                        absl::Span<const std::string> cuts,
                                        const PlanResult& plan) {
  v1::Explanation result;
  result.set_arch(request.device.arch);
  result.set_profile(request.device.profile);
  result.set_sm_count(request.device.sm_count);
  const Explainer explainer(request, plan);
  explainer.AddInterface(result);
  for (const auto& [name, value] : request.options.ToMap())
    (*result.mutable_options())[name] = value;
  result.set_canonical_ir(plan.canonical_ir);
  result.set_canonical_hash(plan.canonical_hash.View().data(), plan.canonical_hash.View().size());
  if (std::string scheduled = ir::Print(graph); scheduled != plan.canonical_ir)
    result.set_scheduled_ir(std::move(scheduled));
  size_t step = 0;
  for (size_t r = 0; r < regions.size(); ++r) {
    v1::Explanation::Segment& segment = *result.add_segments();
    segment.set_copy(r >= segments.size());
    segment.set_last_resort(regions[r].last_resort);
    if (!segment.copy()) {
      for (const schedule::SegmentNode& node : segments[r].nodes) segment.add_nodes(node.node);
    }
    segment.set_space(Space(regions[r].region));
    segment.set_body(schedule::Print(regions[r].region));
    AddTensors(regions[r], segment);
    AddChoices(regions[r], segment);
    AddHeld(regions[r], segment);
    FUSIOND_RETURN_IF_ERROR(explainer.AddKernels(regions[r].emission, step, segment));
  }
  FUSIOND_ASSIGN_OR_RETURN(const int64_t workspace,
                           explainer.Number(plan.skeleton.workspace_bytes));
  result.set_workspace_bytes(workspace);
  if (request.device.is_cpu())
    result.add_notes("arch cpu has no kernels: its device evaluates the graph");
  for (const std::string& note : plan.notes) result.add_notes(note);
  for (const std::string& cut : cuts) result.add_cuts(cut);
  return result;
}

}  // namespace fusiond::compiler
