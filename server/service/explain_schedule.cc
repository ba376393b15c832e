#include "server/service/explain_schedule.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/utf8.h"
#include "runtime/executable/explanation.h"
#include "server/cache/keys.h"
#include "server/engine/plan_job.h"
#include "server/service/job_set.h"

namespace fusiond::server {
namespace {

using internal::v1::EntryResources;
using v1::Explanation;

// Used on the pool's thread alone, but for Start and Cancel.
class ScheduleExplainer : public std::enable_shared_from_this<ScheduleExplainer> {
 public:
  ScheduleExplainer(std::shared_ptr<const PreparedRequest> request, std::string tenant,
                    int max_attempts, JobRunner* runner,
                    std::function<void(absl::StatusOr<Explanation>)> done)
      : request_(std::move(request)),
        max_attempts_(max_attempts),
        jobs_(std::move(tenant), runner),
        done_(std::move(done)) {}

  void Plan() {
    internal::v1::CompileJob job = MakePlanJob(*request_, attempt_);
    job.mutable_plan()->set_explain(true);
    jobs_.Submit(std::move(job), [self = shared_from_this()](const CompileOutcome& outcome) {
      if (!outcome.status.ok()) return self->done_(outcome.status);
      self->Planned(outcome.reply.plan());
    });
  }

  void Cancel() { jobs_.Cancel(); }

 private:
  // What became of one image.
  struct Image {
    std::vector<EntryResources> entries;
    std::string problem;
  };

  void Planned(const internal::v1::PlanResult& plan) {
    absl::StatusOr<Explanation> explanation = ExplanationOf(plan);
    if (!explanation.ok()) return done_(explanation.status());
    explanation_ = *std::move(explanation);
    images_of_plan_.clear();
    std::vector<std::pair<cache::ImageKey, internal::v1::CompileJob>> jobs;
    for (const internal::v1::KernelSource& source : plan.sources()) {
      const cache::ImageKey key =
          cache::ImageKeyOf({source.text(),
                             {source.nvrtc_options().begin(), source.nvrtc_options().end()},
                             request_->device.arch,
                             request_->material.nvrtc});
      images_of_plan_.emplace(source.name(), key);
      if (images_.try_emplace(key).second) jobs.emplace_back(key, MakeImageJob(source, *request_));
    }
    // A plan that brought nothing new is the last candidate again.
    any_new_ = !jobs.empty();
    left_ = jobs.size();
    if (jobs.empty()) return ImagesDone();
    for (auto& [key, job] : jobs) {
      jobs_.Submit(std::move(job),
                   [self = shared_from_this(), key = key](const CompileOutcome& outcome) {
                     Image& image = self->images_[key];
                     if (outcome.status.ok()) {
                       const auto& entries = outcome.reply.image().entries();
                       image.entries.assign(entries.begin(), entries.end());
                     } else {
                       image.problem = base::ToUtf8(outcome.status.message());
                     }
                     if (--self->left_ == 0) self->ImagesDone();
                   });
    }
  }

  void ImagesDone() {
    if (absl::Status status = jobs_.status(); !status.ok()) return done_(status);
    std::vector<int64_t> spills;  // of each segment's kernels
    int64_t all = 0;
    for (Explanation::Segment& segment : *explanation_.mutable_segments()) {
      spills.push_back(0);
      for (Explanation::Kernel& kernel : *segment.mutable_kernels()) {
        Describe(kernel);
        spills.back() += kernel.resources().spill_bytes();
      }
      all += spills.back();
    }
    if (all > 0 && any_new_ && attempt_ + 1 < max_attempts_) {
      Refuse(spills);
      ++attempt_;
      return Plan();
    }
    AddRefused();
    done_(std::move(explanation_));
  }

  void Describe(Explanation::Kernel& kernel) const {
    const auto key = images_of_plan_.find(kernel.name());
    if (key == images_of_plan_.end()) return kernel.set_problem("the plan has no such image");
    const Image& image = images_.at(key->second);
    kernel.set_problem(image.problem);
    for (const EntryResources& entry : image.entries) {
      if (entry.entry() != kernel.entry()) continue;
      executable::SetResources(
          {entry.registers(), entry.spill_store_bytes() + entry.spill_load_bytes(),
           entry.stack_bytes(), entry.static_smem_bytes()},
          request_->device, kernel);
      return;
    }
    if (image.problem.empty()) kernel.set_problem("NVRTC says nothing of it");
  }

  // Remembers why this plan's schedules will not be taken.
  void Refuse(const std::vector<int64_t>& spills) {
    for (int s = 0; s < explanation_.segments_size(); ++s) {
      const Explanation::Choice* chosen = executable::Chosen(explanation_.segments(s));
      if (chosen == nullptr) continue;
      refused_[{s, chosen->schedule()}] =
          spills[s] > 0 ? absl::StrCat("its kernels spill ", spills[s], " bytes a thread")
                        : "its kernels spill nothing, but those of another segment do, and all "
                          "segments go on to their next schedule";
    }
  }

  void AddRefused() {
    for (int s = 0; s < explanation_.segments_size(); ++s) {
      for (Explanation::Choice& choice : *explanation_.mutable_segments(s)->mutable_choices()) {
        const auto refused = refused_.find({s, choice.schedule()});
        if (refused != refused_.end() && !choice.chosen()) choice.set_refused(refused->second);
      }
    }
  }

  const std::shared_ptr<const PreparedRequest> request_;
  const int max_attempts_;
  JobSet jobs_;
  const std::function<void(absl::StatusOr<Explanation>)> done_;

  int attempt_ = 0;
  Explanation explanation_;                                // of this attempt
  std::map<std::string, cache::ImageKey> images_of_plan_;  // by name
  bool any_new_ = false;
  size_t left_ = 0;
  absl::flat_hash_map<cache::ImageKey, Image> images_;  // of all attempts
  std::map<std::pair<int, std::string>, std::string> refused_;
};

}  // namespace

std::function<void()> ExplainSchedule(std::shared_ptr<const PreparedRequest> request,
                                      const std::string& tenant, int max_attempts,
                                      JobRunner* runner,
                                      std::function<void(absl::StatusOr<Explanation>)> done) {
  auto explainer = std::make_shared<ScheduleExplainer>(std::move(request), tenant, max_attempts,
                                                       runner, std::move(done));
  explainer->Plan();
  return [explainer] { explainer->Cancel(); };
}

}  // namespace fusiond::server
