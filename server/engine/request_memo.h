// RequestMemo: requests checked lately, so that a graph that is sent again and again is imported,
// verified and hashed once.
//
// Named by SHA-256 over everything that PrepareRequest reads, field by field, so that two requests
// share an entry only if they are the same but for what no check or key depends on (who asks,
// whether the executable is wanted inline, which name the target was given). Only what passed is
// kept: a bad request is checked, and refused, every time.
//
// Thread-safety: thread-safe. Bounded: by bytes, least recently used first. Cost: a hit is one hash
// of the request's bytes and one lock; a miss is PrepareRequest.
#ifndef FUSIOND_SERVER_ENGINE_REQUEST_MEMO_H_
#define FUSIOND_SERVER_ENGINE_REQUEST_MEMO_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/ir/limits.h"
#include "runtime/base/mutex.h"
#include "runtime/base/sha256.h"
#include "server/engine/request.h"

namespace fusiond::server {

class RequestMemo {
 public:
  static constexpr size_t kBudgetBytes = size_t{32} << 20;

  explicit RequestMemo(const ir::Limits& limits = {}, size_t budget_bytes = kBudgetBytes)
      : limits_(limits), budget_bytes_(budget_bytes) {}

  // As PrepareRequest, errors included.
  absl::StatusOr<std::shared_ptr<const PreparedRequest>> Prepare(
      const v1::CompileRequest& request, const executable::DeviceInfo& device,
      const KeyContext& context) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Stats {
    uint64_t entries = 0;
    uint64_t bytes = 0;  // charged
    uint64_t hits = 0;
  };
  Stats GetStats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    base::Digest digest;
    std::shared_ptr<const PreparedRequest> prepared;
    size_t bytes;
  };

  std::shared_ptr<const PreparedRequest> Find(const base::Digest& digest)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Keep(const base::Digest& digest, std::shared_ptr<const PreparedRequest> prepared)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const ir::Limits limits_;
  const size_t budget_bytes_;

  mutable base::Mutex mutex_;
  std::list<Entry> used_ ABSL_GUARDED_BY(mutex_);  // front: used last
  absl::flat_hash_map<base::Digest, std::list<Entry>::iterator> index_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t hits_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_ENGINE_REQUEST_MEMO_H_
