#include "server/service/logic.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/compiler.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/executable/serialise.h"
#include "server/service/artifacts.h"
#include "server/service/explain_schedule.h"
#include "server/service/known_request.h"

namespace fusiond::server {
namespace {

// Of Execute's inputs together.
constexpr int64_t kMaxInlineBytes = int64_t{16} << 20;

v1::Source ToProto(AnswerSource source) {
  switch (source) {
    case AnswerSource::kCompiled:
      return v1::COMPILED;
    case AnswerSource::kMemory:
      return v1::MEMORY;
    case AnswerSource::kDisk:
      return v1::DISK;
  }
  return v1::SOURCE_UNSPECIFIED;
}

v1::StatusResponse::State ToProto(FusiondLogic::State state) {
  switch (state) {
    case FusiondLogic::State::kStarting:
      return v1::StatusResponse::STARTING;
    case FusiondLogic::State::kServing:
      return v1::StatusResponse::SERVING;
    case FusiondLogic::State::kDraining:
      return v1::StatusResponse::DRAINING;
  }
  return v1::StatusResponse::STATE_UNSPECIFIED;
}

v1::CompileResponse ToResponse(const CompileAnswer& answer, const v1::CompileRequest& request,
                               const PreparedRequest& prepared, absl::Duration total) {
  v1::CompileResponse response;
  response.set_key(answer.key.digest.View().data(), answer.key.digest.View().size());
  response.set_executable_digest(answer.executable.View().data(), answer.executable.View().size());
  response.set_source(ToProto(answer.source));
  response.set_revision(answer.revision);
  response.set_target_arch(prepared.device.arch);
  response.set_target_profile(prepared.device.profile);
  v1::CompileResponse::Timing& timing = *response.mutable_timing();
  timing.set_total_ns(absl::ToInt64Nanoseconds(total));
  timing.set_queue_ns(absl::ToInt64Nanoseconds(answer.queued));
  timing.set_plan_ns(absl::ToInt64Nanoseconds(answer.planning));
  timing.set_nvrtc_ns(absl::ToInt64Nanoseconds(answer.nvrtc));
  response.set_nvrtc_calls(answer.nvrtc_calls);
  response.set_source_bytes(answer.source_bytes);
  for (const std::string& note : answer.notes) response.add_notes(base::ToUtf8(note));
  if (answer.source == AnswerSource::kCompiled) {
    // Worth reading the executable for: whoever has just compiled wants to know what came of it.
    absl::StatusOr<executable::Executable> executable = executable::Deserialise(*answer.bytes);
    if (executable.ok()) {
      response.set_schedule(executable->provenance.schedule);
      uint64_t cubins = 0;
      for (const executable::Image& image : executable->images) cubins += image.cubin.size();
      response.set_cubin_bytes(cubins);
    }
  }
  if (request.include_executable()) response.set_executable(*answer.bytes);
  return response;
}

void SetFields(const std::vector<cache::KeyField>& fields, v1::ExplainResponse& response) {
  response.clear_fields();
  for (const cache::KeyField& field : fields) {
    v1::ExplainResponse::Field* to = response.add_fields();
    to->set_name(field.name);
    to->set_value(field.value);
  }
}

std::string DescribeDifferences(const cache::Neighbour& neighbour) {
  return absl::StrCat(neighbour.key.Hex().substr(0, 16), ": ",
                      absl::StrJoin(neighbour.differences, "; ",
                                    [](std::string* out, const cache::KeyDifference& d) {
                                      absl::StrAppend(out, d.name, " is ", d.found, ", asked for ",
                                                      d.wanted);
                                    }));
}

}  // namespace

FusiondLogic::FusiondLogic(const LogicOptions& options, CompileEngine* engine, cache::Cache* cache,
                           CompilePool* pool, DeviceRegistry* devices, Grants* grants,
                           StatusFiller fill_status)
    : options_(options),
      engine_(engine),
      cache_(cache),
      pool_(pool),
      runner_(pool),
      devices_(devices),
      grants_(grants),
      fill_status_(std::move(fill_status)),
      memo_(options.limits) {}

void FusiondLogic::SetNvrtc(const std::string& identity) {
  base::MutexLock lock(&mutex_);
  nvrtc_ = identity;
}

void FusiondLogic::SetState(State state) {
  base::MutexLock lock(&mutex_);
  if (state_ != State::kDraining) state_ = state;
}

FusiondLogic::State FusiondLogic::state() const {
  base::MutexLock lock(&mutex_);
  return state_;
}

KeyContext FusiondLogic::Keys() const {
  base::MutexLock lock(&mutex_);
  return {compiler::CompilerVersion(), nvrtc_};
}

absl::StatusOr<std::shared_ptr<const PreparedRequest>> FusiondLogic::Prepare(
    const v1::CompileRequest& request) {
  FUSIOND_ASSIGN_OR_RETURN(executable::DeviceInfo device, devices_->Resolve(request.target()));
  return memo_.Prepare(request, device, Keys());
}

CompileEngine::Ticket FusiondLogic::Compile(const v1::CompileRequest& request,
                                            const Identity& identity, CompilePriority priority,
                                            CompileCallback done) {
  const absl::Duration start = base::Clock::System().Now();
  if (draining()) {
    done(absl::UnavailableError("the daemon is draining"));
    return {};
  }
  absl::StatusOr<std::shared_ptr<const PreparedRequest>> prepared = Prepare(request);
  if (!prepared.ok()) {
    done(prepared.status());
    return {};
  }
  v1::CompileRequest wanted;  // what of the request the answer needs
  wanted.set_include_executable(request.include_executable());
  return engine_->Compile(
      *prepared, identity.Name(), priority,
      [wanted, prepared = *prepared, start, identity, grants = grants_,
       done = std::move(done)](const absl::StatusOr<CompileAnswer>& answer) {
        if (!answer.ok()) return done(answer.status());
        grants->Add(identity, answer->executable);
        done(ToResponse(*answer, wanted, *prepared, base::Clock::System().Now() - start));
      });
}

absl::StatusOr<v1::CompileRequest> FusiondLogic::CompileRequestOf(
    const v1::ExecuteRequest& request) const {
  int64_t bytes = 0;
  v1::CompileRequest compile;
  compile.set_graph(request.graph());
  compile.set_target(request.target());
  *compile.mutable_options() = request.options();
  compile.set_include_executable(true);
  for (const v1::InlineTensor& tensor : request.inputs()) {
    *compile.add_inputs()->mutable_shape() = tensor.shape();
    bytes += static_cast<int64_t>(tensor.data().size());
  }
  if (bytes > kMaxInlineBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("inputs: limit is ", kMaxInlineBytes, " bytes, are ", bytes));
  }
  return compile;
}

absl::StatusOr<std::string> FusiondLogic::DeviceFor(const v1::ExecuteRequest& request) const {
  FUSIOND_ASSIGN_OR_RETURN(executable::DeviceInfo device, devices_->Resolve(request.target()));
  if (devices_->CheckDevice(request.target()).ok()) return request.target();
  return devices_->DeviceOfArch(device.arch);
}

std::function<void()> FusiondLogic::GetArtifacts(
    const v1::GetArtifactsRequest& request, const Identity& identity,
    std::function<void(absl::StatusOr<v1::GetArtifactsResponse>)> done) {
  absl::StatusOr<std::shared_ptr<const PreparedRequest>> prepared = Prepare(request.request());
  absl::StatusOr<std::vector<std::string>> kinds =
      prepared.ok() ? CheckArtifactKinds(request) : prepared.status();
  if (!kinds.ok()) {
    done(kinds.status());
    return [] {};
  }
  return MakeArtifacts(*kinds, *prepared, identity.Name(), &runner_, std::move(done));
}

std::function<void()> FusiondLogic::Explain(
    const v1::ExplainRequest& request, const Identity& identity,
    std::function<void(absl::StatusOr<v1::ExplainResponse>)> done) {
  v1::ExplainResponse response;
  absl::StatusOr<std::shared_ptr<const PreparedRequest>> prepared =
      BeginExplain(request, identity, response);
  if (!prepared.ok()) {
    done(prepared.status());
    return [] {};
  }
  if (!request.schedule()) {
    done(std::move(response));
    return [] {};
  }
  return ExplainSchedule(*prepared, identity.Name(), engine_->max_attempts(), &runner_,
                         [response = std::move(response), done = std::move(done)](
                             absl::StatusOr<v1::Explanation> explanation) mutable {
                           if (!explanation.ok()) return done(explanation.status());
                           *response.mutable_schedule() = *std::move(explanation);
                           done(std::move(response));
                         });
}

absl::StatusOr<std::shared_ptr<const PreparedRequest>> FusiondLogic::BeginExplain(
    const v1::ExplainRequest& request, const Identity& identity, v1::ExplainResponse& response) {
  if (request.key_prefix().empty()) {
    FUSIOND_ASSIGN_OR_RETURN(std::shared_ptr<const PreparedRequest> prepared,
                             Prepare(request.request()));
    response = ExplainKey(*prepared);
    return prepared;
  }
  if (request.has_request())
    return absl::InvalidArgumentError(
        "request and key_prefix: one of them is needed, both are given");
  FUSIOND_ASSIGN_OR_RETURN(KnownRequest known,
                           FindKnownRequest(*cache_, *grants_, identity, request.key_prefix()));
  FUSIOND_ASSIGN_OR_RETURN(std::shared_ptr<const PreparedRequest> prepared, Prepare(known.request));
  response = ExplainKey(*prepared);
  response.set_key(known.key.digest.View().data(), known.key.digest.View().size());
  SetFields(cache::Describe(known.material), response);
  *response.mutable_request() = std::move(known.request);
  return prepared;
}

v1::ExplainResponse FusiondLogic::ExplainKey(const PreparedRequest& prepared) const {
  const cache::Explanation explained = cache_->Explain(prepared.material);
  v1::ExplainResponse response;
  response.set_key(explained.key.digest.View().data(), explained.key.digest.View().size());
  SetFields(explained.fields, response);
  // Guards decide too, so ask as a compile would, without compiling.
  if (std::optional<CompileAnswer> answer = engine_->Peek(prepared)) {
    response.set_cached(true);
    response.set_source(ToProto(answer->source));
    response.set_reason(absl::StrCat("executable ", answer->executable.Hex(), " answers it"));
    return response;
  }
  switch (explained.state) {
    case cache::LookupState::kHit:
      response.set_reason("known, but no executable of it fits these strides and alignments");
      break;
    case cache::LookupState::kPending:
      response.set_reason("the cache is still opening");
      break;
    case cache::LookupState::kNegative:
      response.set_reason(
          base::ToUtf8(absl::StrCat("failed lately: ", explained.failure.ToString())));
      break;
    case cache::LookupState::kAbsent:
      response.set_reason(explained.neighbours.empty() ? "never compiled: no entry of this graph"
                                                       : "not compiled for this key; near it:");
      break;
  }
  for (const cache::Neighbour& neighbour : explained.neighbours)
    response.add_nearest(DescribeDifferences(neighbour));
  return response;
}

v1::StatusResponse FusiondLogic::Status() const {
  v1::StatusResponse response;
  response.set_state(ToProto(state()));
  response.set_version(options_.version);
  response.set_compiler_version(compiler::CompilerVersion());
  response.set_pid(::getpid());
  response.set_uptime_ns(absl::ToInt64Nanoseconds(base::Clock::System().Now() - started_));
  const CompilePoolStatus pool = pool_->GetStatus();
  if (pool.nvrtc) {
    response.set_nvrtc_version(absl::StrCat(pool.nvrtc->major(), ".", pool.nvrtc->minor()));
    response.set_nvrtc_path(pool.nvrtc->path());
  } else if (!pool.nvrtc_missing.empty()) {
    response.add_degraded(absl::StrCat(
        "no NVRTC: what is not cached cannot be compiled for a GPU (", pool.nvrtc_missing, ")"));
  }
  if (!pool.last_start_failure.empty() && pool.processes.empty()) {
    response.add_degraded(absl::StrCat("no compile process starts: ", pool.last_start_failure));
  }
  v1::StatusResponse::Pool& to = *response.mutable_pool();
  to.set_processes(static_cast<uint32_t>(pool.processes.size()));
  to.set_busy(static_cast<uint32_t>(std::count_if(
      pool.processes.begin(), pool.processes.end(), [](const CompilePoolStatus::Process& process) {
        return process.state == CompileProcess::State::kBusy;
      })));
  to.set_queued(static_cast<uint32_t>(pool.queued_normal + pool.queued_low));
  to.set_jobs(pool.jobs_done);
  to.set_crashes(pool.crashes);
  to.set_timeouts(pool.deadline_kills);
  to.set_out_of_memory(pool.out_of_memory);
  to.set_forbidden_calls(pool.sandbox_kills);
  to.set_cancelled(pool.cancel_kills);
  to.set_retired(pool.retired);
  to.set_start_failures(pool.start_failures);
  to.set_ended_idle(pool.ended_idle);
  to.set_last_end(pool.last_end);
  const std::string cache = cache_->Degraded();
  if (!cache.empty()) response.add_degraded(absl::StrCat("cache: ", cache));
  response.set_cache_dropped_bytes(cache_->DroppedBytes());
  response.set_fallbacks(engine_->fallbacks());
  response.set_leases(static_cast<uint32_t>(cache_->PinnedExecutables()));
  fill_status_(response);
  for (std::string& text : *response.mutable_degraded()) text = base::ToUtf8(text);
  return response;
}

v1::CacheStatsResponse FusiondLogic::CacheStats() const {
  const cache::CacheStats stats = cache_->Stats();
  v1::CacheStatsResponse response;
  response.set_path(options_.cache_path);
  response.set_entries(stats.requests_kept);
  response.set_memory_bytes(stats.memory.bytes);
  response.set_disk_bytes(stats.store.disk_bytes);
  response.set_hits_memory(stats.requests.memory_hits);
  response.set_hits_disk(stats.requests.disk_hits);
  uint64_t misses = 0;
  for (uint64_t count : stats.requests.misses) misses += count;
  response.set_misses(misses);
  response.set_hits_canonical(stats.canonical.memory_hits + stats.canonical.disk_hits);
  response.set_hits_image(stats.images.memory_hits + stats.images.disk_hits);
  response.set_bad_records(stats.store.bad_records);
  response.set_negative_hits(stats.negative_hits);
  response.set_commits(stats.commits);
  response.set_write_errors(stats.commits_in_memory_only);
  response.set_degraded(stats.degraded);
  const RequestMemo::Stats memo = memo_.GetStats();
  response.set_hits_memo(memo.hits);
  response.set_memo_entries(memo.entries);
  response.set_memo_bytes(memo.bytes);
  return response;
}

absl::StatusOr<v1::CacheListResponse> FusiondLogic::CacheList(const v1::CacheListRequest& request) {
  if (request.page_size() > cache::Cache::kMaxPage) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_size: limit is ", cache::Cache::kMaxPage, ", is ", request.page_size()));
  }
  std::optional<cache::RequestKey> after;
  if (!request.page_token().empty()) {
    absl::StatusOr<base::Digest> digest = base::DigestFromHex(request.page_token());
    if (!digest.ok())
      return absl::InvalidArgumentError(absl::StrCat("page_token: ", digest.status().message()));
    after = cache::RequestKey{*digest};
  }
  FUSIOND_ASSIGN_OR_RETURN(
      cache::RequestPage page,
      cache_->List(after, request.page_size() == 0 ? 100 : request.page_size()));
  v1::CacheListResponse response;
  for (const cache::RequestInfo& info : page.requests) {
    v1::CacheListResponse::Entry* entry = response.add_entries();
    entry->set_key(info.key.digest.View().data(), info.key.digest.View().size());
    entry->set_graph_hash(info.material.graph.View().data(), info.material.graph.View().size());
    entry->set_arch(info.material.arch);
    entry->set_profile(info.material.device_profile);
    entry->set_signature(cache::SignatureText(info.material.signature));
    entry->mutable_options()->insert(info.material.options.begin(), info.material.options.end());
    uint64_t bytes = 0;
    for (const cache::Variant& variant : info.entry.variants) bytes += variant.executable_bytes;
    entry->set_bytes(bytes);
    entry->set_executables(static_cast<uint32_t>(info.entry.variants.size()));
    entry->set_revision(info.entry.revision);
    entry->set_requests(info.journal.count);
  }
  if (page.next) response.set_next_page_token(page.next->Hex());
  return response;
}

absl::StatusOr<v1::CacheEvictResponse> FusiondLogic::CacheEvict(
    const v1::CacheEvictRequest& request, const Identity& identity) {
  if (!identity.administrator) {
    return absl::PermissionDeniedError(
        absl::StrCat("cache eviction is the administrator's (uid 0 or the daemon's own), not uid ",
                     identity.uid));
  }
  std::string prefix;
  switch (request.what_case()) {
    case v1::CacheEvictRequest::kKey: {
      FUSIOND_ASSIGN_OR_RETURN(base::Digest key, base::DigestFromBytes(request.key()));
      prefix = key.Hex();
      break;
    }
    case v1::CacheEvictRequest::kKeyPrefix:
      prefix = request.key_prefix();
      if (prefix.empty()) return absl::InvalidArgumentError("key_prefix: no digits");
      break;
    case v1::CacheEvictRequest::kAll:
      if (!request.all()) return absl::InvalidArgumentError("what: all must be true");
      break;
    default:
      return absl::InvalidArgumentError("what: one of key, key_prefix and all is needed");
  }
  if (!prefix.empty()) {
    FUSIOND_ASSIGN_OR_RETURN(cache::RequestKey key, cache_->Resolve(prefix));
    prefix = key.Hex();
  }
  FUSIOND_ASSIGN_OR_RETURN(cache::Evicted evicted, cache_->Evict(prefix));
  v1::CacheEvictResponse response;
  response.set_evicted(evicted.requests);
  response.set_pinned(evicted.pinned);
  return response;
}

}  // namespace fusiond::server
