// Opening the LevelDB data base, come what may.
//
// Damage is repaired once; what cannot be repaired is moved aside, to `<folder>.damaged` (in place
// of an earlier one), and an empty data base takes its place: a cache that starts cold is better
// than a daemon that does not start. Errors of the disk itself (full, read-only, no permission)
// move nothing.
//
// Requires: the caller holds the lock of the state folder (LevelDB's repair takes none).
// Thread-safety: thread-compatible. Cost: replays the log (a few MB); a repair reads everything.
#ifndef FUSIOND_SERVER_CACHE_DATABASE_H_
#define FUSIOND_SERVER_CACHE_DATABASE_H_

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leveldb/cache.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/options.h"

namespace fusiond::cache {

class DatabaseOpener {
 public:
  // What happened, for the log.
  using Log = std::function<void(absl::string_view)>;

  // `env` must outlive the opener and every data base from it; the opener must outlive those too.
  DatabaseOpener(std::string folder, size_t block_cache_bytes, leveldb::Env* env, Log log);

  struct Opened {
    std::unique_ptr<leveldb::DB> db;
    bool repaired = false;
    bool moved_aside = false;
  };
  // `repair_first` after damage was met in an open data base. UNAVAILABLE: the disk refuses.
  absl::StatusOr<Opened> Open(bool repair_first);

  // Of damaged log files, left out since the start; each time is logged.
  uint64_t dropped_bytes() const { return damage_.dropped_bytes(); }

 private:
  // LevelDB's own log, of which only this is kept: what it left out, which it reports nowhere else.
  // Thread-safe.
  class Damage final : public leveldb::Logger {
   public:
    explicit Damage(const Log& log) : log_(log) {}
    void Logv(const char* format, std::va_list arguments) override;
    uint64_t dropped_bytes() const { return dropped_bytes_.load(std::memory_order_relaxed); }

   private:
    const Log& log_;
    std::atomic<uint64_t> dropped_bytes_{0};  // relaxed: a tally that nothing is ordered by
  };

  leveldb::Status TryOpen(std::unique_ptr<leveldb::DB>& db);
  absl::Status MoveAside();

  const std::string folder_;
  const Log log_;
  Damage damage_;
  const std::unique_ptr<const leveldb::FilterPolicy> bloom_filter_;
  const std::unique_ptr<leveldb::Cache> block_cache_;
  leveldb::Options options_;
};

// Whether the bytes are at fault, and not the disk's state.
bool IsDamage(const leveldb::Status& status);

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_DATABASE_H_
