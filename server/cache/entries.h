// What stands inside the records of the cache: payloads of requests, executables' origins and the
// journal, as plain values with their byte forms (fields.h; layout in FORMAT.md).
//
// Thread-safety: values and pure functions. Errors: every Decode returns DATA_LOSS for bytes that
// no Encode writes.
#ifndef FUSIOND_SERVER_CACHE_ENTRIES_H_
#define FUSIOND_SERVER_CACHE_ENTRIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/sha256.h"
#include "server/cache/keys.h"

namespace fusiond::cache {

// A request keeps at most this many variants; the oldest makes room.
inline constexpr size_t kMaxVariants = 64;

// An executable that answers a request wherever its guards hold.
struct Variant {
  std::string guards;  // serialised; the cache never reads them
  base::Digest executable;
  uint64_t executable_bytes = 0;
  int64_t created_unix_s = 0;  // wall clock, for people only
  bool operator==(const Variant&) const = default;
};

// Where a new variant goes. The first variant whose guards hold is taken, so one that is tuned or
// specialised for less stands before the general ones.
enum class VariantPosition { kLast, kFirst };

// Payload of a request record.
struct RequestEntry {
  uint64_t revision = 0;  // grows by one with every change of `variants`
  std::vector<Variant> variants;

  // Takes the place of the variant with the same guards, or is added at `position`. Revision and
  // list stay as they are when that very executable stands there already.
  void Put(Variant variant, VariantPosition position);
  bool operator==(const RequestEntry&) const = default;
};
std::string Encode(const RequestEntry& entry);
absl::StatusOr<RequestEntry> DecodeRequestEntry(absl::string_view bytes);

// Material of an executable record: what to drop with it so that it is built anew.
struct ExecutableOrigin {
  CanonicalKey canonical;
  std::vector<ImageKey> images;
  bool operator==(const ExecutableOrigin&) const = default;
};
std::string Encode(const ExecutableOrigin& origin);
absl::StatusOr<ExecutableOrigin> DecodeExecutableOrigin(absl::string_view bytes);

// Payload of a journal record: how often a request was asked for.
struct JournalEntry {
  uint64_t count = 0;
  int64_t last_used_unix_s = 0;  // wall clock, for people and for warm-up manifests
  bool operator==(const JournalEntry&) const = default;
};
std::string Encode(const JournalEntry& entry);
absl::StatusOr<JournalEntry> DecodeJournalEntry(absl::string_view bytes);

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_ENTRIES_H_
