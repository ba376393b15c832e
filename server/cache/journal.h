// Journal: every request that has been compiled, with its graph and how often it was asked for.
//
// What a warm-up manifest is made from, and what is recompiled after an upgrade. A request's record
// is written with its commit; hits only bump a number in memory, which Flush adds to the records
// now and then. So a hit costs no disk, and a crash costs some counts. Kept in the store alone.
//
// Thread-safety: NoteHit is thread-safe; everything else needs the caller to serialise it with
// whatever else writes or deletes journal records. Ownership: `store` is borrowed and may be null.
#ifndef FUSIOND_SERVER_CACHE_JOURNAL_H_
#define FUSIOND_SERVER_CACHE_JOURNAL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "runtime/base/sha256.h"
#include "server/cache/entries.h"
#include "server/cache/keys.h"
#include "server/cache/record.h"
#include "server/cache/store.h"
#include "server/cache/tiers.h"

namespace fusiond::cache {

class Journal {
 public:
  explicit Journal(Store* store) : store_(store) {}

  // Counts one use of a journalled request.
  void NoteHit(const base::Digest& graph, const RequestKey& key);

  // The records that a commit must write so that the request is journalled: none, its own, or its
  // own and its graph's.
  std::vector<NewRecord> RecordsFor(const base::Digest& graph, const RequestKey& key,
                                    const std::string& material, absl::string_view graph_bytes);
  // The records to delete with a request: its own, and the graph's if no other request has it.
  std::vector<RecordKey> KeysOf(const base::Digest& graph, const RequestKey& key);
  // The entry with the uses noted since the last Flush; zeros when there is none.
  JournalEntry Read(const base::Digest& graph, const RequestKey& key);
  // Adds the noted uses to the records, as of `now_unix_s`. Uses whose record is gone are dropped;
  // without a store that writes, all are.
  void Flush(int64_t now_unix_s);

 private:
  struct Uses {
    base::Digest graph;
    uint64_t count = 0;
  };

  Store* const store_;
  base::Mutex mutex_;
  absl::flat_hash_map<RequestKey, Uses> noted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_JOURNAL_H_
