// The on-disk form of every cache entry: header, key material, payload, checksum.
//
// Bytes that come back from a disk are never trusted: whatever they are, DecodeRecord returns a
// record or DATA_LOSS, and allocates nothing by a stored length. The format is in FORMAT.md; a
// change bumps kRecordVersion and adds a golden file of the old version with its treatment.
//
// Thread-safety: pure functions over values. Cost: one pass of CRC-32C.
#ifndef FUSIOND_SERVER_CACHE_RECORD_H_
#define FUSIOND_SERVER_CACHE_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/sha256.h"
#include "server/cache/keys.h"

namespace fusiond::cache {

inline constexpr uint16_t kRecordVersion = 1;
inline constexpr size_t kRecordHeaderBytes = 28;
// Longer payloads stand in a file of their own; the record then holds their digest.
inline constexpr size_t kMaxInlinePayloadBytes = size_t{1} << 20;
// Longer payloads are not stored at all.
inline constexpr uint64_t kMaxPayloadBytes = uint64_t{256} << 20;

// The number is the first byte of the entry's key in the store.
enum class RecordKind : uint8_t {
  kRequest = 'r',     // request key → RequestEntry
  kCanonical = 'c',   // canonical key → digest of an executable
  kImage = 'i',       // image key → cubin
  kExecutable = 'e',  // digest → serialised executable
  kJournal = 'j',     // graph hash, request key → JournalEntry
  kGraph = 'g',       // graph hash → serialised graph
};
inline constexpr absl::string_view kRecordKinds = "rciejg";
std::optional<RecordKind> RecordKindFromByte(uint8_t byte);
absl::string_view Name(RecordKind kind);  // "request", …

// Names an entry: its kind and, within the kind, one or two digests. A value; ordered as its bytes.
class RecordKey {
 public:
  static RecordKey Of(const RequestKey& key) { return {RecordKind::kRequest, key.digest}; }
  static RecordKey Of(const CanonicalKey& key) { return {RecordKind::kCanonical, key.digest}; }
  static RecordKey Of(const ImageKey& key) { return {RecordKind::kImage, key.digest}; }
  static RecordKey Executable(const base::Digest& digest) {
    return {RecordKind::kExecutable, digest};
  }
  static RecordKey Graph(const base::Digest& hash) { return {RecordKind::kGraph, hash}; }
  static RecordKey Journal(const base::Digest& graph, const RequestKey& key);
  // DATA_LOSS unless `bytes` is what bytes() gives for some key.
  static absl::StatusOr<RecordKey> FromBytes(absl::string_view bytes);

  RecordKind kind() const { return static_cast<RecordKind>(bytes_[0]); }
  base::Digest first() const;   // the only digest, or the graph's of a journal entry
  base::Digest second() const;  // Requires: kind() == kJournal.
  const std::string& bytes() const { return bytes_; }

  bool operator==(const RecordKey& other) const { return bytes_ == other.bytes_; }
  bool operator<(const RecordKey& other) const { return bytes_.compare(other.bytes_) < 0; }
  template <typename H>
  friend H AbslHashValue(H h, const RecordKey& key) {
    return H::combine(std::move(h), key.bytes_);
  }

 private:
  RecordKey(RecordKind kind, const base::Digest& digest);
  explicit RecordKey(std::string bytes) : bytes_(std::move(bytes)) {}

  std::string bytes_;
};

// An entry as the tiers above the disk see it. What `material` holds depends on the kind: the
// encoding of the key's material (request, canonical, image, journal), the executable's origin, or
// nothing (graph).
struct Record {
  std::string material;
  std::string payload;
};

// Where a payload stands that is too long for the record.
struct BlobReference {
  base::Digest digest;  // SHA-256 of the payload
  uint64_t bytes = 0;
  bool operator==(const BlobReference&) const = default;
};

// A decoded record; the views point into the decoded bytes.
struct RecordView {
  RecordKind kind;
  absl::string_view material;
  absl::string_view payload;          // empty when `blob` is set
  std::optional<BlobReference> blob;  // the payload's file
};

// Requires: payload.size() <= kMaxInlinePayloadBytes.
std::string EncodeRecord(RecordKind kind, absl::string_view material, absl::string_view payload);
// Requires: blob.bytes <= kMaxPayloadBytes.
std::string EncodeRecord(RecordKind kind, absl::string_view material, const BlobReference& blob);
// DATA_LOSS says what is wrong with the bytes.
absl::StatusOr<RecordView> DecodeRecord(absl::string_view bytes);

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_RECORD_H_
