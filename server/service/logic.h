// What the rpcs of fusiond.v1 do, free of gRPC's server, so that tests and sanitizers can call it.
// The shell that gRPC calls is service.h.
//
// Thread-safety: thread-safe. Ownership: its parts outlive it.
#ifndef FUSIOND_SERVER_SERVICE_LOGIC_H_
#define FUSIOND_SERVER_SERVICE_LOGIC_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/fusiond/v1/service.pb.h"
#include "runtime/base/clock.h"
#include "server/cache/cache.h"
#include "server/devices/registry.h"
#include "server/engine/engine.h"
#include "server/engine/request_memo.h"
#include "server/pool/compile_pool.h"
#include "server/service/grants.h"
#include "server/service/identity.h"

namespace fusiond::server {

struct LogicOptions {
  std::string version;
  std::string cache_path;
  ir::Limits limits;
  int64_t max_warm_items = 65536;
};

// Fills what of a status others own: workers, calls.
using StatusFiller = std::function<void(v1::StatusResponse&)>;

class FusiondLogic {
 public:
  FusiondLogic(const LogicOptions& options, CompileEngine* engine, cache::Cache* cache,
               CompilePool* pool, DeviceRegistry* devices, Grants* grants,
               StatusFiller fill_status);

  // The NVRTC identity that goes into keys; changes when a process finds another one.
  void SetNvrtc(const std::string& identity);
  // What Status says, besides what the parts know by themselves. Draining is for ever.
  enum class State { kStarting, kServing, kDraining };
  void SetState(State state);
  bool draining() const { return state() == State::kDraining; }

  using CompileCallback = std::function<void(absl::StatusOr<v1::CompileResponse>)>;
  // Calls `done` once, now or later; the ticket is for CancelCompile.
  CompileEngine::Ticket Compile(const v1::CompileRequest& request, const Identity& identity,
                                CompilePriority priority, CompileCallback done);
  bool CancelCompile(const CompileEngine::Ticket& ticket) { return engine_->Cancel(ticket); }

  // What Execute compiles: extents from its tensors, the executable inline.
  absl::StatusOr<v1::CompileRequest> CompileRequestOf(const v1::ExecuteRequest& request) const;
  // The device that Execute runs on.
  absl::StatusOr<std::string> DeviceFor(const v1::ExecuteRequest& request) const;

  // Compiled artefacts on the way to an executable; calls `done` once, with CANCELLED soon after
  // the result has been called.
  std::function<void()> GetArtifacts(
      const v1::GetArtifactsRequest& request, const Identity& identity,
      std::function<void(absl::StatusOr<v1::GetArtifactsResponse>)> done);

  // As GetArtifacts. Without request.schedule() `done` is called here.
  std::function<void()> Explain(const v1::ExplainRequest& request, const Identity& identity,
                                std::function<void(absl::StatusOr<v1::ExplainResponse>)> done);
  v1::DevicesResponse Devices() const { return devices_->Get(); }
  v1::StatusResponse Status() const;
  v1::CacheStatsResponse CacheStats() const;
  absl::StatusOr<v1::CacheListResponse> CacheList(const v1::CacheListRequest& request);
  absl::StatusOr<v1::CacheEvictResponse> CacheEvict(const v1::CacheEvictRequest& request,
                                                    const Identity& identity);

  absl::StatusOr<std::shared_ptr<const PreparedRequest>> Prepare(const v1::CompileRequest& request);
  const LogicOptions& options() const { return options_; }

 private:
  v1::ExplainResponse ExplainKey(const PreparedRequest& prepared) const;
  // What Explain answers but for the schedule, and the request that it is of.
  absl::StatusOr<std::shared_ptr<const PreparedRequest>> BeginExplain(
      const v1::ExplainRequest& request, const Identity& identity, v1::ExplainResponse& response);
  KeyContext Keys() const;
  State state() const;

  const LogicOptions options_;
  CompileEngine* const engine_;
  cache::Cache* const cache_;
  CompilePool* const pool_;
  PoolJobRunner runner_;  // of jobs that are no compile
  DeviceRegistry* const devices_;
  Grants* const grants_;
  const StatusFiller fill_status_;
  RequestMemo memo_;
  const absl::Duration started_ = base::Clock::System().Now();

  mutable base::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kStarting;
  std::string nvrtc_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_LOGIC_H_
