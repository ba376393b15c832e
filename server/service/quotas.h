// Quotas: how much of the daemon one identity may take: calls that compile at once, the memory that
// they take, and how often such calls may fail (F16: a client that sends a bad graph in a loop).
//
// Thread-safety: thread-safe. Ownership: `clock` must outlive it.
#ifndef FUSIOND_SERVER_SERVICE_QUOTAS_H_
#define FUSIOND_SERVER_SERVICE_QUOTAS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace fusiond::server {

struct QuotaOptions {
  int calls = 256;                   // of one identity, running or waiting
  int64_t bytes = int64_t{1} << 30;  // of those calls
  double failures = 500;             // in a row, as fast as they come
  double failures_per_second = 20;   // for ever
};

class Quotas {
 public:
  explicit Quotas(const QuotaOptions& options = {},
                  const base::Clock& clock = base::Clock::System())
      : options_(options), clock_(clock) {}

  // `bytes`: what the call takes of memory; one that is alone is not too large.
  // RESOURCE_EXHAUSTED names limit and actual value and when to retry. OK: End must follow.
  absl::Status Begin(const std::string& identity, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // `bytes` as for Begin; `status`: how the call ended.
  void End(const std::string& identity, int64_t bytes, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls that Begin has refused.
  uint64_t refused() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Use {
    int calls = 0;
    int64_t bytes = 0;
    double failures = 0;  // less what time has forgiven, as of `since`
    absl::Duration since;
  };
  void Forgive(Use& use) const;

  const QuotaOptions options_;
  const base::Clock& clock_;
  mutable base::Mutex mutex_;
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of identities with calls or failures; others are dropped.
  absl::flat_hash_map<std::string, Use> uses_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_QUOTAS_H_
