#include "server/engine/plan_job.h"

#include <map>
#include <string>
#include <utility>

#include "compiler/compiler.h"
#include "compiler/import/graph_proto.h"
#include "runtime/base/status_macros.h"
#include "runtime/executable/serialise.h"

namespace fusiond::server {

internal::v1::CompileJob MakePlanJob(const PreparedRequest& request, int attempt) {
  internal::v1::CompileJob job;
  internal::v1::PlanJob& plan = *job.mutable_plan();
  plan.set_graph(request.graph);
  for (const v1::InputLayout& layout : request.layouts) {
    internal::v1::PlanJob::Input* input = plan.add_inputs();
    *input->mutable_shape() = layout.shape();
    *input->mutable_strides() = layout.strides();
    input->set_alignment(layout.alignment());
  }
  plan.set_profile(request.device.profile);
  for (const auto& [name, value] : request.options.ToMap()) (*plan.mutable_options())[name] = value;
  plan.set_attempt(attempt);
  return job;
}

internal::v1::CompileJob MakeImageJob(const internal::v1::KernelSource& source,
                                      const PreparedRequest& request) {
  internal::v1::CompileJob job;
  internal::v1::ImageJob& image = *job.mutable_image();
  image.set_name(source.name());
  image.set_source(source.text());
  image.set_arch(request.device.arch);
  *image.mutable_options() = source.nvrtc_options();
  image.set_nvrtc_identity(request.material.nvrtc);
  return job;
}

absl::StatusOr<v1::Explanation> ExplanationOf(const internal::v1::PlanResult& plan) {
  v1::Explanation explanation;
  if (explanation.ParseFromString(plan.explanation())) return explanation;
  return absl::InternalError("plan: the compile process's explanation cannot be read");
}

absl::StatusOr<internal::v1::PlanResult> RunPlanJob(const internal::v1::PlanJob& job) {
  compiler::PlanRequest request;
  FUSIOND_ASSIGN_OR_RETURN(request.graph, graph_proto::FromBytes(job.graph()));
  for (const internal::v1::PlanJob::Input& input : job.inputs()) {
    compiler::InputLayout layout;
    layout.shape.assign(input.shape().begin(), input.shape().end());
    layout.strides.assign(input.strides().begin(), input.strides().end());
    layout.alignment = input.alignment();
    request.inputs.push_back(std::move(layout));
  }
  FUSIOND_ASSIGN_OR_RETURN(request.device, executable::ProfileByName(job.profile()));
  FUSIOND_ASSIGN_OR_RETURN(request.options,
                           compiler::OptionsFromMap({job.options().begin(), job.options().end()}));
  request.attempt = job.attempt();
  request.explain = job.explain();
  FUSIOND_ASSIGN_OR_RETURN(compiler::PlanResult plan, compiler::Plan(request));
  internal::v1::PlanResult result;
  result.set_canonical_ir(plan.canonical_ir);
  result.set_canonical_hash(plan.canonical_hash.View().data(), plan.canonical_hash.View().size());
  for (compiler::KernelSource& source : plan.sources) {
    internal::v1::KernelSource* to = result.add_sources();
    to->set_name(source.name);
    to->set_text(std::move(source.text));
    to->mutable_nvrtc_options()->Assign(source.nvrtc_options.begin(), source.nvrtc_options.end());
  }
  result.set_skeleton(executable::Serialise(plan.skeleton));
  if (job.explain()) result.set_explanation(plan.explanation.SerializeAsString());
  for (const std::string& note : plan.notes) result.add_notes(note);
  return result;
}

}  // namespace fusiond::server
