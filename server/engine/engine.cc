#include "server/engine/engine.h"

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
// Keys whose compile processes died, kept at most.
constexpr size_t kMaxCrashedKeys = 4096;

AnswerSource SourceOf(cache::Tier tier) {
  return tier == cache::Tier::kMemory ? AnswerSource::kMemory : AnswerSource::kDisk;
}

bool Spills(const ImageResult& image) {
  for (const internal::v1::EntryResources& entry : image.entries()) {
    if (entry.spill_store_bytes() > 0 || entry.spill_load_bytes() > 0) return true;
  }
  return false;
}

}  // namespace

// One compile that leads its flight. Its steps run one after another: on the executor, except that
// image jobs end in any order, which is what the mutex is for. Holds itself alive through the
// callbacks it has given out.
class CompileEngine::Work : public std::enable_shared_from_this<CompileEngine::Work> {
 public:
  Work(CompileEngine* engine, std::shared_ptr<const PreparedRequest> request, std::string tenant,
       CompilePriority priority, Flight::Lead lead)
      : engine_(*engine),
        request_(std::move(request)),
        tenant_(std::move(tenant)),
        priority_(priority),
        lead_(std::move(lead)) {
    answer_.key = cache::RequestKeyOf(request_->material);
  }

  void Start() {
    lead_.OnAbandoned([self = weak_from_this()] {
      if (auto work = self.lock()) work->Abandon();
    });
    engine_.executor_.Run([self = shared_from_this()] { self->LookAgainThenPlan(); });
  }

 private:
  struct ImageSlot {
    cache::ImageKeyMaterial material;
    std::string cubin;
    bool compiled = false;
    bool spills = false;
  };

  void LookAgainThenPlan() {
    // A store that is still opening may know the answer (F56: pending is not absent).
    engine_.cache_->WaitUntilOpen(kMaxOpening);
    // A flight that ended between this request's look-up and its joining has left its result.
    if (auto found = engine_.Find(*request_)) return Finish(*std::move(found));
    Plan();
  }

  void Plan() {
    Submit(MakePlanJob(*request_, attempt_), [self = shared_from_this()](CompileOutcome outcome) {
      self->engine_.executor_.Run([self, outcome = std::make_shared<CompileOutcome>(
                                             std::move(outcome))] { self->Planned(*outcome); });
    });
  }

  void Planned(const CompileOutcome& outcome) {
    if (!outcome.status.ok()) return Fail(outcome);
    answer_.queued += outcome.queued;
    answer_.planning += outcome.ran;
    absl::Status status = TakePlan(outcome.reply.plan());
    if (!status.ok()) return Finish(std::move(status));
    if (attempt_ == 0 && UseCanonical()) return;
    StartImages();
  }

  absl::Status TakePlan(const PlanResult& plan) {
    plan_ = plan;
    FUSIOND_ASSIGN_OR_RETURN(skeleton_, executable::Deserialise(plan.skeleton()));
    FUSIOND_ASSIGN_OR_RETURN(const base::Digest canonical,
                             base::DigestFromBytes(plan.canonical_hash()));
    canonical_ = request_->material;
    canonical_.graph = canonical;
    if (plan.sources_size() != static_cast<int>(skeleton_.images.size())) {
      return absl::InternalError(absl::StrCat("plan: ", skeleton_.images.size(),
                                              " images expected, ", plan.sources_size(),
                                              " sources came"));
    }
    answer_.notes.assign(plan.notes().begin(), plan.notes().end());
    answer_.source_bytes = 0;
    for (const internal::v1::KernelSource& source : plan.sources())
      answer_.source_bytes += source.text().size();
    return absl::OkStatus();
  }

  // Another spelling of the same arithmetic may have been compiled already.
  bool UseCanonical() {
    std::optional<cache::Hit<base::Digest>> hit = engine_.cache_->FindCanonical(canonical_);
    if (!hit) return false;
    auto bytes = engine_.cache_->FindExecutable(hit->value);
    if (!bytes) return false;
    absl::StatusOr<executable::Executable> executable = executable::Deserialise(*bytes->value);
    if (!executable.ok() ||
        !executable::CheckInputGuards(executable->guards, request_->arguments).ok()) {
      return false;
    }
    absl::StatusOr<cache::Committed> linked =
        engine_.cache_->Link(Binding(*executable), hit->value);
    if (!linked.ok()) return false;
    answer_.executable = linked->executable;
    answer_.revision = linked->revision;
    answer_.source = SourceOf(bytes->tier);
    answer_.bytes = bytes->value;
    Finish(answer_);
    return true;
  }

  void StartImages() {
    std::vector<internal::v1::CompileJob> jobs;
    std::vector<size_t> job_slots;
    slots_.assign(plan_.sources_size(), ImageSlot());
    for (size_t i = 0; i < slots_.size(); ++i) {
      const internal::v1::KernelSource& source = plan_.sources(static_cast<int>(i));
      slots_[i].material = {source.text(),
                            {source.nvrtc_options().begin(), source.nvrtc_options().end()},
                            request_->device.arch,
                            request_->material.nvrtc};
      if (auto image = engine_.cache_->FindImage(slots_[i].material)) {
        slots_[i].cubin = *image->value;
        continue;
      }
      jobs.push_back(MakeImageJob(source, *request_));
      job_slots.push_back(i);
    }
    if (jobs.empty()) return Assemble();
    {
      base::MutexLock lock(&mutex_);
      images_left_ = jobs.size();
      image_failure_.reset();
    }
    for (size_t i = 0; i < jobs.size(); ++i) {
      Submit(std::move(jobs[i]),
             [self = shared_from_this(), slot = job_slots[i]](CompileOutcome outcome) {
               self->ImageDone(slot, std::move(outcome));
             });
    }
  }

  void ImageDone(size_t slot, CompileOutcome outcome) {
    {
      base::MutexLock lock(&mutex_);
      if (outcome.status.ok()) {
        ImageResult& image = *outcome.reply.mutable_image();
        slots_[slot].spills = Spills(image);
        slots_[slot].cubin = std::move(*image.mutable_cubin());
        slots_[slot].compiled = true;
        answer_.nvrtc += absl::Nanoseconds(image.compile_ns());
        ++answer_.nvrtc_calls;
      } else if (!image_failure_) {
        image_failure_ = std::make_unique<CompileOutcome>(std::move(outcome));
      }
      if (--images_left_ > 0) return;
    }
    engine_.executor_.Run([self = shared_from_this()] { self->ImagesDone(); });
  }

  void ImagesDone() {
    std::unique_ptr<CompileOutcome> failure;
    bool spills = false;
    {
      base::MutexLock lock(&mutex_);
      failure = std::move(image_failure_);
      for (const ImageSlot& slot : slots_) spills = spills || slot.spills;
    }
    if (failure != nullptr) return Fail(*failure);
    if (spills && attempt_ + 1 < engine_.options_.max_attempts) {
      ++attempt_;
      return Plan();
    }
    Assemble();
  }

  void Assemble() {
    cache::NewExecutable compiled;
    compiled.canonical = canonical_;
    std::vector<executable::Image> images;
    for (ImageSlot& slot : slots_) {
      const cache::ImageKey key = cache::ImageKeyOf(slot.material);
      images.push_back({key.digest, slot.cubin});
      if (slot.compiled) {
        compiled.images.push_back({std::move(slot.material), std::move(slot.cubin)});
      } else {
        compiled.reused_images.push_back(key);
      }
    }
    absl::StatusOr<executable::Executable> executable = compiler::Assemble(skeleton_, images);
    if (!executable.ok()) return Finish(executable.status());
    compiled.bytes = executable::Serialise(*executable);
    answer_.bytes = std::make_shared<const std::string>(compiled.bytes);
    const cache::Committed committed = engine_.cache_->Commit(Binding(*executable), compiled);
    answer_.executable = committed.executable;
    answer_.revision = committed.revision;
    answer_.source = AnswerSource::kCompiled;
    engine_.fallbacks_.fetch_add(answer_.notes.size(), std::memory_order_relaxed);  // a tally
    Finish(answer_);
  }

  cache::RequestBinding Binding(const executable::Executable& executable) const {
    return {request_->material, request_->graph, executable::SerialiseGuards(executable.guards),
            cache::VariantPosition::kLast};
  }

  void Submit(internal::v1::CompileJob job, CompileCallback done) {
    CompileRequest request;
    request.job = std::move(job);
    request.tenant = tenant_;
    request.priority = priority_;
    // The callback must run exactly once, also when the runner takes nothing.
    auto shared = std::make_shared<CompileCallback>(std::move(done));
    absl::StatusOr<CompileJobId> id = engine_.runner_->Submit(
        std::move(request), [shared](CompileOutcome outcome) { (*shared)(std::move(outcome)); });
    if (!id.ok()) return (*shared)(FailedOutcome(id.status()));
    bool abandoned;
    {
      base::MutexLock lock(&mutex_);
      jobs_.push_back(*id);
      abandoned = abandoned_;
    }
    if (abandoned) engine_.runner_->Cancel(*id);
  }

  // Nobody waits any more. Jobs under way are cancelled; their callbacks then end the work.
  void Abandon() {
    std::vector<CompileJobId> jobs;
    {
      base::MutexLock lock(&mutex_);
      abandoned_ = true;
      jobs = jobs_;
    }
    for (CompileJobId job : jobs) engine_.runner_->Cancel(job);
  }

  void Fail(const CompileOutcome& outcome) {
    absl::Status status = outcome.status;
    if (outcome.crashed) {
      base::MutexLock lock(&engine_.mutex_);
      if (engine_.crashes_.size() >= kMaxCrashedKeys) engine_.crashes_.clear();
      if (++engine_.crashes_[answer_.key] >= engine_.options_.quarantine_after) {
        engine_.crashes_.erase(answer_.key);
        status = absl::InternalError(
            absl::StrCat("key ", answer_.key.Hex(), " is quarantined after ",
                         engine_.options_.quarantine_after, " crashes: ", status.message()));
        engine_.cache_->AddNegative(answer_.key, status);
      } else {
        status =
            absl::InternalError(absl::StrCat("key ", answer_.key.Hex(), ": ", status.message()));
      }
    } else if (outcome.verdict && !outcome.out_of_memory) {
      engine_.cache_->AddNegative(answer_.key, status);
    }
    Finish(std::move(status));
  }

  void Finish(absl::StatusOr<CompileAnswer> result) { lead_.Finish(result); }

  CompileEngine& engine_;
  const std::shared_ptr<const PreparedRequest> request_;
  const std::string tenant_;
  const CompilePriority priority_;
  Flight::Lead lead_;

  // Used by one step at a time.
  int attempt_ = 0;
  PlanResult plan_;
  executable::Executable skeleton_;
  cache::KeyMaterial canonical_;

  base::Mutex mutex_;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<CompileJobId> jobs_ ABSL_GUARDED_BY(mutex_);
  size_t images_left_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<CompileOutcome> image_failure_ ABSL_GUARDED_BY(mutex_);
  // Written under mutex_ while images are compiled, else by the step that runs.
  std::vector<ImageSlot> slots_;
  CompileAnswer answer_;
};

CompileEngine::CompileEngine(const EngineOptions& options, cache::Cache* cache, JobRunner* runner)
    : options_(options), cache_(cache), runner_(runner), executor_(options.threads) {}

CompileEngine::~CompileEngine() = default;

std::optional<absl::StatusOr<CompileAnswer>> CompileEngine::Find(const PreparedRequest& request) {
  cache::RequestLookup lookup = cache_->Lookup(request.material);
  if (lookup.state == cache::LookupState::kNegative)
    return absl::StatusOr<CompileAnswer>(lookup.failure);
  if (lookup.state != cache::LookupState::kHit) return std::nullopt;
  std::optional<CompileAnswer> answer = Choose(lookup, request);
  if (!answer) return std::nullopt;
  return absl::StatusOr<CompileAnswer>(*std::move(answer));
}

std::optional<CompileAnswer> CompileEngine::Peek(const PreparedRequest& request) {
  const cache::RequestLookup lookup = cache_->PeekRequest(request.material);
  if (lookup.state != cache::LookupState::kHit) return std::nullopt;
  return Choose(lookup, request);
}

// The first variant whose guards hold and whose executable is there.
std::optional<CompileAnswer> CompileEngine::Choose(const cache::RequestLookup& lookup,
                                                   const PreparedRequest& request) {
  for (const cache::Variant& variant : lookup.entry.variants) {
    absl::StatusOr<std::vector<executable::Guard>> guards =
        executable::DeserialiseGuards(variant.guards);
    if (!guards.ok() || !executable::CheckInputGuards(*guards, request.arguments).ok()) continue;
    auto bytes = cache_->FindExecutable(variant.executable);
    if (!bytes) continue;
    CompileAnswer answer;
    answer.key = lookup.key;
    answer.executable = variant.executable;
    answer.revision = lookup.entry.revision;
    // The slower of the two look-ups is what the caller has waited for.
    answer.source = lookup.tier == cache::Tier::kDisk ? AnswerSource::kDisk : SourceOf(bytes->tier);
    answer.bytes = bytes->value;
    return answer;
  }
  return std::nullopt;
}

CompileEngine::Flight::Ticket CompileEngine::Compile(std::shared_ptr<const PreparedRequest> request,
                                                     const std::string& tenant,
                                                     CompilePriority priority, Callback done) {
  if (auto found = Find(*request)) {
    done(*found);
    return {};
  }
  Flight::Joined joined =
      flights_.JoinOrLead(cache::RequestKeyOf(request->material), std::move(done));
  if (joined.lead) {
    std::make_shared<Work>(this, std::move(request), tenant, priority, *std::move(joined.lead))
        ->Start();
  }
  return joined.ticket;
}

}  // namespace fusiond::server
