#include "server/service/artifacts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/executable/explanation.h"
#include "runtime/executable/serialise.h"
#include "server/engine/plan_job.h"
#include "server/service/job_set.h"

namespace fusiond::server {
namespace {

constexpr const char* kKinds[] = {"ir", "schedule", "explanation", "cuda", "ptx", "sass"};

bool Wants(const std::vector<std::string>& kinds, absl::string_view kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// Collects artefacts until the last kernel's PTX is there. Used on the pool's thread alone, but for
// Start and Cancel.
class Collector : public std::enable_shared_from_this<Collector> {
 public:
  Collector(std::vector<std::string> kinds, std::shared_ptr<const PreparedRequest> request,
            std::string tenant, JobRunner* runner,
            std::function<void(absl::StatusOr<v1::GetArtifactsResponse>)> done)
      : kinds_(std::move(kinds)),
        request_(std::move(request)),
        jobs_(std::move(tenant), runner),
        done_(std::move(done)) {}

  void Start() {
    internal::v1::CompileJob job = MakePlanJob(*request_, 0);
    job.mutable_plan()->set_explain(Wants(kinds_, "explanation"));
    jobs_.Submit(std::move(job), [self = shared_from_this()](const CompileOutcome& outcome) {
      if (!outcome.status.ok()) return self->done_(outcome.status);
      self->Planned(outcome.reply.plan());
    });
  }

  void Cancel() { jobs_.Cancel(); }

 private:
  void Planned(const internal::v1::PlanResult& plan) {
    if (Wants(kinds_, "ir")) Add("ir", "canonical", plan.canonical_ir());
    if (plan.sources_size() == 0) {
      const std::string why = request_->device.arch == "cpu"
                                  ? "arch cpu has no kernels: its device evaluates the graph"
                                  : "the graph needs no kernel: nothing is left to compute";
      for (const std::string& kind : kinds_) {
        if (kind != "ir") Missing(kind, why);
      }
      return done_(std::move(response_));
    }
    if (Wants(kinds_, "schedule")) {
      absl::StatusOr<executable::Executable> skeleton = executable::Deserialise(plan.skeleton());
      if (!skeleton.ok()) return done_(skeleton.status());
      Add("schedule", "plan", skeleton->provenance.schedule);
    }
    if (Wants(kinds_, "explanation")) {
      absl::StatusOr<v1::Explanation> explanation = ExplanationOf(plan);
      if (!explanation.ok()) return done_(explanation.status());
      Add("explanation", "plan", executable::Print(*explanation));
    }
    for (const internal::v1::KernelSource& source : plan.sources()) {
      if (Wants(kinds_, "cuda")) Add("cuda", source.name(), source.text());
    }
    if (Wants(kinds_, "sass")) {
      Missing("sass",
              "the daemon runs no disassembler; fusiond-opt --emit=cubin writes what nvdisasm "
              "reads");
    }
    if (!Wants(kinds_, "ptx")) return done_(std::move(response_));
    left_ = plan.sources_size();
    for (const internal::v1::KernelSource& source : plan.sources()) {
      internal::v1::CompileJob job = MakeImageJob(source, *request_);
      job.mutable_image()->set_want_ptx(true);
      jobs_.Submit(std::move(job), [self = shared_from_this(),
                                    name = source.name()](const CompileOutcome& outcome) {
        if (outcome.status.ok()) {
          self->Add("ptx", name, outcome.reply.image().ptx());
        } else {
          self->Missing("ptx", absl::StrCat(name, ": ", outcome.status.message()));
        }
        if (--self->left_ > 0) return;
        if (absl::Status status = self->jobs_.status(); !status.ok()) return self->done_(status);
        self->done_(std::move(self->response_));
      });
    }
  }

  void Add(const std::string& kind, const std::string& name, const std::string& contents) {
    v1::GetArtifactsResponse::Artifact* artifact = response_.add_artifacts();
    artifact->set_kind(kind);
    artifact->set_name(name);
    artifact->set_contents(contents);
  }
  void Missing(const std::string& kind, const std::string& why) {
    v1::GetArtifactsResponse::Artifact* artifact = response_.add_artifacts();
    artifact->set_kind(kind);
    artifact->set_missing(why);
  }

  const std::vector<std::string> kinds_;
  const std::shared_ptr<const PreparedRequest> request_;
  JobSet jobs_;
  const std::function<void(absl::StatusOr<v1::GetArtifactsResponse>)> done_;
  v1::GetArtifactsResponse response_;
  int left_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckArtifactKinds(
    const v1::GetArtifactsRequest& request) {
  std::vector<std::string> kinds(request.kinds().begin(), request.kinds().end());
  for (const std::string& kind : kinds) {
    if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) {
      return absl::InvalidArgumentError(absl::StrCat("kinds: '",
                                                     absl::CHexEscape(kind.substr(0, 64)),
                                                     "' is none of ", absl::StrJoin(kKinds, ", ")));
    }
  }
  if (kinds.empty()) kinds.assign(std::begin(kKinds), std::end(kKinds));
  return kinds;
}

std::function<void()> MakeArtifacts(
    const std::vector<std::string>& kinds, std::shared_ptr<const PreparedRequest> request,
    const std::string& tenant, JobRunner* runner,
    std::function<void(absl::StatusOr<v1::GetArtifactsResponse>)> done) {
  auto collector =
      std::make_shared<Collector>(kinds, std::move(request), tenant, runner, std::move(done));
  collector->Start();
  return [collector] { collector->Cancel(); };
}

}  // namespace fusiond::server
