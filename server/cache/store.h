// Store: a tier of the cache that outlives the process.
//
// One implementation keeps it on this machine (LevelDbStore); a fleet's shared tier is to stand
// behind the same interface, and tests use one in memory.
//
// Thread-safety: implementations are thread-safe. Errors: DATA_LOSS and UNAVAILABLE never reach a
// client; the cache turns both into misses.
// Cost: every call may block on a disk.
#ifndef FUSIOND_SERVER_CACHE_STORE_H_
#define FUSIOND_SERVER_CACHE_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/cache/record.h"

namespace fusiond::cache {

enum class StoreState {
  kOpening,      // not yet opened: what it holds is unknown
  kReady,        // reads and writes
  kReadOnly,     // reads; a write failed and the store waits to try again
  kUnavailable,  // neither; the store waits to try again
};

struct StoreStatus {
  StoreState state = StoreState::kOpening;
  std::string detail;  // why not ready, in one line; empty when ready
  // How often all that it held was lost at once: damaged beyond repair, or its folder removed.
  uint64_t losses = 0;
  uint64_t dropped_bytes = 0;  // of damaged logs: what was written last before a restart
};

struct StoreStats {
  uint64_t disk_bytes = 0;      // blocks in use, measured now
  uint64_t bad_records = 0;     // found and deleted since start
  uint64_t disk_failures = 0;   // times that the disk refused to open, write or sync
  uint64_t recoveries = 0;      // times that writing was taken up again after a failure
  uint64_t repairs = 0;         // damaged data bases repaired
  uint64_t moved_aside = 0;     // damaged beyond repair: moved away, started empty
  uint64_t replaced = 0;        // times that the folder was removed under us: started empty
  uint64_t orphaned_files = 0;  // files that no record named any more, removed
};

// One entry to write; the views live as long as the call.
struct StoreWrite {
  RecordKey key;
  absl::string_view material;
  absl::string_view payload;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual StoreStatus Status() const = 0;

  // NOT_FOUND: no such entry. DATA_LOSS: there was one, damaged; it is counted and deleted.
  // UNAVAILABLE: could not be read now.
  virtual absl::StatusOr<Record> Get(const RecordKey& key) = 0;
  // Whether an entry stands there, as far as can be told without reading it whole.
  virtual bool Contains(const RecordKey& key) = 0;

  // All or none; committed once it returns OK: survives the end of this process at any instant,
  // while loss of power may cost the last seconds (Upkeep syncs). UNAVAILABLE: writes are off, or
  // this one failed and turned them off. RESOURCE_EXHAUSTED: a payload above kMaxPayloadBytes.
  virtual absl::Status Commit(absl::Span<const StoreWrite> writes) = 0;
  // Absent keys are no error. UNAVAILABLE as above.
  virtual absl::Status Delete(absl::Span<const RecordKey> keys) = 0;

  // Keys of `kind` whose digests start with `prefix`, in order, above `after` if given; at most
  // `limit`. A page ends all reading: nothing is held between calls.
  virtual absl::StatusOr<std::vector<RecordKey>> Keys(RecordKind kind, absl::string_view prefix,
                                                      const std::optional<RecordKey>& after,
                                                      size_t limit) = 0;

  // Opens, tries again, syncs, sweeps: whatever is due now. Called about once a second by one
  // thread or several.
  virtual void Upkeep() = 0;

  // Gives the space of deleted entries back to the file system. Blocks for as long as that takes.
  virtual absl::Status Compact() = 0;

  // How many entries of kind request it holds, exactly; nothing while that is not known: before it
  // has been opened and counted. Cheap.
  virtual std::optional<uint64_t> Requests() const = 0;

  // Cost: lists the store's folders.
  virtual StoreStats Stats() const = 0;
};

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_STORE_H_
