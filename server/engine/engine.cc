#include "server/engine/engine.h"

#include <utility>

#include "server/process/heartbeat.h"

namespace fusiond::server {

CompileEngine::CompileEngine(const EngineOptions& options, cache::Cache* cache, JobRunner* runner)
    : cache_(cache),
      crashes_(options.quarantine_after),
      executor_(options.threads),
      parts_{options.max_attempts, cache, runner, &executor_, &crashes_, &fallbacks_} {}

CompileEngine::Ticket CompileEngine::Compile(std::shared_ptr<const PreparedRequest> request,
                                             const std::string& tenant, CompilePriority priority,
                                             Callback done) {
  if (auto found = FindAnswer(*cache_, *request)) {
    done(*found);
    return {};
  }
  const cache::RequestKey key = request->encoded.key;
  CompileFlight::Joined joined = flights_.JoinOrLead(key, std::move(done));
  std::shared_ptr<CompileWork> work;
  {
    base::MutexLock lock(&mutex_);
    if (joined.lead) {
      if (works_.size() >= 2 * flights_.InFlight() + 64)
        absl::erase_if(works_, [](const auto& entry) { return entry.second.expired(); });
      work = std::make_shared<CompileWork>(parts_, std::move(request), tenant, priority,
                                           *std::move(joined.lead));
      works_[key] = work;
    } else if (priority == CompilePriority::kNormal) {
      const auto leader = works_.find(key);
      if (leader != works_.end()) work = leader->second.lock();
    }
  }
  if (work == nullptr) return joined.ticket;
  joined.lead ? work->Start() : work->Raise();
  return joined.ticket;
}

bool CompileEngine::Responds(absl::Duration timeout) {
  if (!cache_->WaitUntilOpen(absl::ZeroDuration())) return true;  // what they may wait for, bounded
  auto heartbeat = std::make_shared<Heartbeat>();
  executor_.Run([heartbeat, cache = cache_] {
    cache->FindExecutable(base::Digest());  // no such executable: reads the index
    heartbeat->Beat();
  });
  return heartbeat->WaitPast(0, timeout);
}

}  // namespace fusiond::server
