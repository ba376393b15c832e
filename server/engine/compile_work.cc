#include "server/engine/compile_work.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "runtime/base/status_macros.h"
#include "runtime/executable/binding.h"
#include "runtime/executable/serialise.h"
#include "server/engine/plan_job.h"

namespace fusiond::server {
namespace {

using internal::v1::ImageResult;
using internal::v1::PlanResult;

// How long a first request waits for the store to open before it compiles anyway.
constexpr absl::Duration kMaxOpening = absl::Seconds(30);

bool Spills(const ImageResult& image) {
  for (const internal::v1::EntryResources& entry : image.entries()) {
    if (entry.spill_store_bytes() > 0 || entry.spill_load_bytes() > 0) return true;
  }
  return false;
}

}  // namespace

CompileWork::CompileWork(const CompileParts& parts, std::shared_ptr<const PreparedRequest> request,
                         std::string tenant, CompilePriority priority, CompileFlight::Lead lead)
    : parts_(parts),
      request_(std::move(request)),
      tenant_(std::move(tenant)),
      lead_(std::move(lead)),
      priority_(priority) {
  answer_.key = request_->encoded.key;
}

void CompileWork::Start() {
  lead_.OnAbandoned([self = weak_from_this()] {
    if (auto work = self.lock()) work->Abandon();
  });
  parts_.executor->Run([self = shared_from_this()] { self->LookAgainThenPlan(); });
}

void CompileWork::LookAgainThenPlan() {
  // A store that is still opening may know the answer (F56: pending is not absent).
  parts_.cache->WaitUntilOpen(kMaxOpening);
  // A flight that ended between this request's look-up and its joining has left its result.
  if (auto found = FindAnswer(*parts_.cache, *request_)) return Finish(*found);
  Plan();
}

void CompileWork::Plan() {
  Submit(MakePlanJob(*request_, attempt_), [self = shared_from_this()](CompileOutcome outcome) {
    self->parts_.executor->Run(
        [self, outcome = std::move(outcome)]() mutable { self->Planned(outcome); });
  });
}

void CompileWork::Planned(const CompileOutcome& outcome) {
  if (!outcome.status.ok()) return Fail(outcome);
  answer_.queued += outcome.queued;
  answer_.planning += outcome.ran;
  const absl::Status status = TakePlan(outcome.reply.plan());
  if (!status.ok()) return Finish(status);
  if (attempt_ == 0 && UseCanonical()) return;
  StartImages();
}

absl::Status CompileWork::TakePlan(const PlanResult& plan) {
  plan_ = plan;
  FUSIOND_ASSIGN_OR_RETURN(skeleton_, executable::Deserialise(plan.skeleton()));
  FUSIOND_ASSIGN_OR_RETURN(const base::Digest canonical,
                           base::DigestFromBytes(plan.canonical_hash()));
  canonical_ = request_->material;
  canonical_.graph = canonical;
  if (plan.sources_size() != static_cast<int>(skeleton_.images.size())) {
    return absl::InternalError(absl::StrCat("plan: ", skeleton_.images.size(), " images expected, ",
                                            plan.sources_size(), " sources came"));
  }
  answer_.notes.assign(plan.notes().begin(), plan.notes().end());
  answer_.source_bytes = 0;
  materials_.clear();
  for (const internal::v1::KernelSource& source : plan.sources()) {
    answer_.source_bytes += source.text().size();
    materials_.push_back({source.text(),
                          {source.nvrtc_options().begin(), source.nvrtc_options().end()},
                          request_->device.arch,
                          request_->material.nvrtc});
  }
  return absl::OkStatus();
}

// Another spelling of the same arithmetic may have been compiled already.
bool CompileWork::UseCanonical() {
  std::optional<cache::Hit<base::Digest>> hit = parts_.cache->FindCanonical(canonical_);
  if (!hit) return false;
  auto bytes = parts_.cache->FindExecutable(hit->value);
  if (!bytes) return false;
  absl::StatusOr<executable::Executable> executable = executable::Deserialise(*bytes->value);
  if (!executable.ok() ||
      !executable::CheckInputGuards(executable->guards, request_->arguments).ok()) {
    return false;
  }
  absl::StatusOr<cache::Committed> linked = parts_.cache->Link(Binding(*executable), hit->value);
  if (!linked.ok()) return false;
  answer_.executable = linked->executable;
  answer_.revision = linked->revision;
  answer_.source = SourceOf(bytes->tier);
  answer_.bytes = bytes->value;
  Finish(answer_);
  return true;
}

void CompileWork::StartImages() {
  std::vector<std::pair<cache::ImageKey, internal::v1::CompileJob>> jobs;
  for (size_t i = 0; i < materials_.size(); ++i) {
    const cache::ImageKey key = cache::ImageKeyOf(materials_[i]);
    {
      base::MutexLock lock(&mutex_);
      if (!images_.try_emplace(key).second) continue;  // of a plan before, or twice in this one
    }
    if (auto image = parts_.cache->FindImage(materials_[i])) {
      base::MutexLock lock(&mutex_);
      images_[key].cubin = *image->value;
    } else {
      jobs.emplace_back(key, MakeImageJob(plan_.sources(static_cast<int>(i)), *request_));
    }
  }
  {
    base::MutexLock lock(&mutex_);
    images_left_ = jobs.size();
  }
  if (jobs.empty()) return ImagesDone(false);
  for (auto& [key, job] : jobs) {
    Submit(std::move(job), [self = shared_from_this(), key = key](CompileOutcome outcome) {
      self->ImageDone(key, std::move(outcome));
    });
  }
}

void CompileWork::ImageDone(const cache::ImageKey& key, CompileOutcome outcome) {
  bool last, first_failure = false;
  {
    base::MutexLock lock(&mutex_);
    if (outcome.status.ok()) {
      ImageResult& result = *outcome.reply.mutable_image();
      Image& image = images_[key];
      image.spills = Spills(result);
      image.cubin = std::move(*result.mutable_cubin());
      image.compiled = true;
      answer_.nvrtc += absl::Nanoseconds(result.compile_ns());
      ++answer_.nvrtc_calls;
    } else if (image_failure_ == nullptr) {
      image_failure_ = std::make_unique<CompileOutcome>(std::move(outcome));
      first_failure = true;
    }
    last = --images_left_ == 0;
  }
  if (last) return parts_.executor->Run([self = shared_from_this()] { self->ImagesDone(true); });
  if (first_failure) CancelJobs();  // without one image the others are of no use
}

void CompileWork::ImagesDone(bool any_new) {
  std::unique_ptr<CompileOutcome> failure;
  bool spills = false;
  {
    base::MutexLock lock(&mutex_);
    failure = std::move(image_failure_);
    for (const cache::ImageKeyMaterial& material : materials_)
      spills = spills || images_[cache::ImageKeyOf(material)].spills;
  }
  if (failure != nullptr) return Fail(*failure);
  // A plan that brought nothing new is the last candidate again.
  if (spills && any_new && attempt_ + 1 < parts_.max_attempts) {
    ++attempt_;
    return Plan();
  }
  Assemble();
}

void CompileWork::Assemble() {
  cache::NewExecutable compiled;
  compiled.canonical = canonical_;
  std::vector<executable::Image> images;
  {
    base::MutexLock lock(&mutex_);
    for (cache::ImageKeyMaterial& material : materials_) {
      const cache::ImageKey key = cache::ImageKeyOf(material);
      const Image& image = images_[key];
      images.push_back({key.digest, image.cubin});
      if (image.compiled) {
        compiled.images.push_back({std::move(material), image.cubin});
      } else {
        compiled.reused_images.push_back(key);
      }
    }
  }
  absl::StatusOr<executable::Executable> executable = compiler::Assemble(skeleton_, images);
  if (!executable.ok()) return Finish(executable.status());
  compiled.bytes = executable::Serialise(*executable);
  answer_.bytes = std::make_shared<const std::string>(compiled.bytes);
  const cache::Committed committed = parts_.cache->Commit(Binding(*executable), compiled);
  answer_.executable = committed.executable;
  answer_.revision = committed.revision;
  answer_.source = AnswerSource::kCompiled;
  parts_.fallbacks->fetch_add(answer_.notes.size(), std::memory_order_relaxed);  // a tally
  Finish(answer_);
}

cache::RequestBinding CompileWork::Binding(const executable::Executable& executable) const {
  return {request_->material, request_->graph, executable::SerialiseGuards(executable.guards),
          cache::VariantPosition::kLast};
}

void CompileWork::Submit(internal::v1::CompileJob job, CompileCallback done) {
  CompileRequest request;
  request.job = std::move(job);
  request.tenant = tenant_;
  CompilePriority asked;
  {
    base::MutexLock lock(&mutex_);
    request.priority = asked = priority_;
  }
  // The callback must run exactly once, also when the runner takes nothing.
  auto shared = std::make_shared<CompileCallback>(std::move(done));
  absl::StatusOr<CompileJobId> id = parts_.runner->Submit(
      std::move(request), [shared](CompileOutcome outcome) { (*shared)(std::move(outcome)); });
  if (!id.ok()) return (*shared)(FailedOutcome(id.status()));
  bool cancel, raise;
  {
    base::MutexLock lock(&mutex_);
    jobs_.push_back(*id);
    cancel = abandoned_ || image_failure_ != nullptr;
    raise = priority_ != asked;
  }
  if (cancel) parts_.runner->Cancel(*id);
  if (raise) parts_.runner->Raise(*id);
}

void CompileWork::Raise() {
  std::vector<CompileJobId> jobs;
  {
    base::MutexLock lock(&mutex_);
    if (priority_ == CompilePriority::kNormal) return;
    priority_ = CompilePriority::kNormal;
    jobs = jobs_;
  }
  for (CompileJobId job : jobs) parts_.runner->Raise(job);
}

// Nobody waits any more. Jobs under way are cancelled; their callbacks then end the work.
void CompileWork::Abandon() {
  {
    base::MutexLock lock(&mutex_);
    abandoned_ = true;
  }
  CancelJobs();
}

void CompileWork::CancelJobs() {
  std::vector<CompileJobId> jobs;
  {
    base::MutexLock lock(&mutex_);
    jobs = jobs_;
  }
  for (CompileJobId job : jobs) parts_.runner->Cancel(job);
}

void CompileWork::Fail(const CompileOutcome& outcome) {
  absl::Status status = outcome.status;
  if (absl::IsInternal(status)) {
    status = absl::InternalError(absl::StrCat("key ", answer_.key.Hex(), ": ", status.message()));
  }
  if (outcome.crashed) {
    if (parts_.crashes->Add(answer_.key)) {
      status = absl::InternalError(absl::StrCat("quarantined after ", parts_.crashes->limit(),
                                                " crashes: ", status.message()));
      parts_.cache->AddNegative(answer_.key, status);
    }
  } else if (outcome.verdict && !outcome.out_of_memory) {
    parts_.cache->AddNegative(answer_.key, status);
  }
  Finish(status);
}

}  // namespace fusiond::server
