#include "compiler/compiler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/emit.h"
#include "compiler/explanation.h"
#include "compiler/import/graph_proto.h"
#include "compiler/ir/hash.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/pass_options.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/candidates.h"
#include "compiler/schedule/segmenter.h"
#include "compiler/skeleton.h"
#include "runtime/base/counted.h"
#include "runtime/base/status_macros.h"

namespace fusiond::compiler {
namespace {

using schedule::Fusion;

absl::StatusOr<ir::Graph> Specialised(const PlanRequest& request) {
  const ir::Graph& graph = request.graph;
  if (request.inputs.size() != graph.inputs().size())
    return absl::InvalidArgumentError(absl::StrCat(
        "layouts of ", request.inputs.size(), " inputs for a graph with ", graph.inputs().size()));
  FUSIOND_RETURN_IF_ERROR(ir::Verify(graph, ir::Stage::kImported));
  std::vector<ir::Dims> extents;
  for (const InputLayout& input : request.inputs) extents.push_back(input.shape);
  return ir::Specialise(graph, extents);
}

passes::PassContext ContextFor(const Options& options) {
  passes::PassContext context;
  context.options = PassOptions(options);
  return context;
}

// "pointwise: it has reductions; column: it has no column reductions".
std::string Words(const std::vector<schedule::Refusal>& refused) {
  return absl::StrJoin(refused, "; ", [](std::string* out, const schedule::Refusal& refusal) {
    absl::StrAppend(out, refusal.schedule, ": ", refusal.reason);
  });
}

// Segments whose regions all have a schedule.
struct Scheduled {
  std::vector<schedule::Segment> segments;
  schedule::Storage storage;
  std::vector<ScheduledRegion> regions;  // one a segment, then one a copy
};

class Scheduling {
 public:
  Scheduling(const ir::Graph& graph, const PlanRequest& request,
             const executable::Executable& interface, PlanResult& result)
      : graph_(graph),
        request_(request),
        outputs_(OutputLayouts(interface, graph)),
        result_(result),
        fusion_(graph.nodes().size(), Fusion::kAll) {
    for (const InputLayout& input : request.inputs) {
      inputs_.push_back({input.strides, std::min<int64_t>(input.alignment, 16)});
      input_strides_.push_back(input.strides);
    }
  }

  // A segment that no scheduler takes is cut further and everything is tried again; each round
  // raises the restriction of some node, so that the number of rounds is bounded.
  absl::StatusOr<Scheduled> Run() {
    for (;;) {
      FUSIOND_ASSIGN_OR_RETURN(std::optional<Scheduled> scheduled, TryOnce());
      if (!scheduled) continue;
      for (const schedule::Copy& copy : scheduled->storage.copies) {
        const auto& tensors = scheduled->storage.memory.tensors;
        std::vector<schedule::Tensor> to;
        for (uint32_t tensor : copy.to) to.push_back(tensors[tensor]);
        FUSIOND_RETURN_IF_ERROR(
            Schedule(schedule::CopyRegion(tensors[copy.from], to), false, *scheduled));
      }
      return *std::move(scheduled);
    }
  }

  // Of each segment that was cut further: how large it was, and why.
  const std::vector<std::string>& cuts() const { return cuts_; }

 private:
  absl::StatusOr<std::optional<Scheduled>> TryOnce() {
    Scheduled scheduled;
    FUSIOND_ASSIGN_OR_RETURN(scheduled.segments,
                             schedule::Segmentation({&graph_, input_strides_, fusion_}));
    scheduled.storage = schedule::PlanStorage(graph_, scheduled.segments, inputs_, outputs_,
                                              ExcludesOverlap(graph_));
    bool again = false;
    for (const schedule::Segment& segment : scheduled.segments) {
      FUSIOND_ASSIGN_OR_RETURN(schedule::Region region,
                               schedule::BuildRegion(graph_, segment, scheduled.storage.memory));
      const bool last_resort = StrictestOf(segment) == Fusion::kNodeAlone;
      const absl::Status status = Schedule(std::move(region), last_resort, scheduled);
      if (status.ok()) continue;
      if (!Restrict(segment)) return status;
      const absl::string_view why = status.message();
      cuts_.push_back(absl::StrCat(base::Counted(segment.nodes.size(), "node"), ": ",
                                   why.substr(0, why.find('\n'))));
      again = true;
    }
    if (again) return std::nullopt;
    return scheduled;
  }

  // INTERNAL: no scheduler takes the region, which one of a single op cannot cause.
  absl::Status Schedule(schedule::Region region, bool last_resort, Scheduled& scheduled) {
    region.math = request_.options.math;
    ScheduledRegion made;
    made.last_resort = last_resort;
    made.candidates = schedule::FindCandidates(region, request_.device);
    const std::vector<schedule::Candidate>& accepted = made.candidates.accepted;
    if (accepted.empty())
      return absl::InternalError(
          absl::StrCat("no scheduler takes segment ", scheduled.regions.size(), ": ",
                       Words(made.candidates.refused), "\n", schedule::Print(region)));
    made.chosen = std::min<size_t>(request_.attempt, accepted.size() - 1);
    made.schedule = accepted[made.chosen].schedule;
    made.emission = codegen::Emit(region, made.schedule);
    for (const codegen::Kernel& kernel : made.emission.kernels) {
      // Each argument takes at most 8 bytes.
      const auto bytes = static_cast<int64_t>(8 * kernel.parameters.size());
      if (bytes > request_.device.max_argument_bytes)
        return absl::ResourceExhaustedError(
            absl::StrCat("arguments of segment ", scheduled.regions.size(), " take ", bytes,
                         " bytes, the limit is ", request_.device.max_argument_bytes));
    }
    made.region = std::move(region);
    scheduled.regions.push_back(std::move(made));
    return absl::OkStatus();
  }

  Fusion StrictestOf(const schedule::Segment& segment) const {
    Fusion strictest = Fusion::kAll;
    for (const schedule::SegmentNode& node : segment.nodes)
      strictest = std::max(strictest, fusion_[node.node]);
    return strictest;
  }

  // False when the nodes stand alone already.
  bool Restrict(const schedule::Segment& segment) {
    const Fusion strictest = StrictestOf(segment);
    if (strictest == Fusion::kNodeAlone) return false;
    const auto next = static_cast<Fusion>(static_cast<int>(strictest) + 1);
    for (const schedule::SegmentNode& node : segment.nodes) fusion_[node.node] = next;
    if (next == Fusion::kNodeAlone)
      result_.notes.push_back(
          absl::StrCat("last resort, a kernel per op: ", segment.nodes.size(), " nodes"));
    return true;
  }

  const ir::Graph& graph_;
  const PlanRequest& request_;
  std::vector<schedule::BufferLayout> inputs_, outputs_;
  std::vector<ir::Dims> input_strides_;
  PlanResult& result_;
  std::vector<Fusion> fusion_;
  std::vector<std::string> cuts_;
};

absl::Status PlanCpu(const PlanRequest& request, executable::Executable& skeleton) {
  executable::HostEvaluateStep step;
  step.graph = graph_proto::ToBytes(request.graph);
  step.double_precision = request.options.precision == Precision::kDouble;
  if (step.double_precision) {
    // Checks want what was computed, not its rounding; a buffer that is shared keeps its dtype.
    for (executable::OutputSpec& output : skeleton.outputs)
      if (ir::IsFloatingPoint(output.dtype) && !output.alias_input)
        output.dtype = executable::DType::kDouble;
  }
  skeleton.steps.emplace_back(std::move(step));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlanResult> Plan(const PlanRequest& request) {
  FUSIOND_ASSIGN_OR_RETURN(ir::Graph specialised, Specialised(request));
  PlanResult result;
  FUSIOND_ASSIGN_OR_RETURN(result.skeleton, Interface(specialised, request));
  if (request.device.is_cpu()) {
    result.canonical_ir = ir::Print(specialised);
    result.canonical_hash = ir::GraphHash(specialised);
    FUSIOND_RETURN_IF_ERROR(PlanCpu(request, result.skeleton));
    if (request.explain) {
      FUSIOND_ASSIGN_OR_RETURN(result.explanation,
                               Explain(request, specialised, {}, {}, {}, result));
    }
    return result;
  }
  if (request.options.precision == Precision::kDouble)
    return absl::InvalidArgumentError("option precision: 'double' is for arch cpu");
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph canonical,
                           passes::Canonicalise(specialised, ContextFor(request.options)));
  result.canonical_ir = ir::Print(canonical);
  result.canonical_hash = ir::GraphHash(canonical);
  FUSIOND_ASSIGN_OR_RETURN(const ir::Graph graph, schedule::Prepare(canonical));
  Scheduling scheduling(graph, request, result.skeleton, result);
  FUSIOND_ASSIGN_OR_RETURN(const Scheduled scheduled, scheduling.Run());
  AddSteps(graph, request, scheduled.regions, scheduled.storage, scheduled.segments.size(),
           result.skeleton, result.sources);
  if (request.explain) {
    FUSIOND_ASSIGN_OR_RETURN(
        result.explanation,
        Explain(request, graph, scheduled.segments, scheduled.regions, scheduling.cuts(), result));
  }
  return result;
}

absl::StatusOr<executable::Executable> Assemble(const executable::Executable& skeleton,
                                                absl::Span<const executable::Image> images) {
  if (images.size() != skeleton.images.size())
    return absl::InvalidArgumentError(
        absl::StrCat(images.size(), " images for a plan with ", skeleton.images.size()));
  executable::Executable executable = skeleton;
  executable.images.assign(images.begin(), images.end());
  return executable;
}

}  // namespace fusiond::compiler
