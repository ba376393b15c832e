// Sequences of length-prefixed fields: the byte form of key material and of small payloads.
//
// Each field is its length as 8 little-endian bytes, then its bytes; a number is a field of 8
// little-endian bytes. No two different sequences share their bytes, and SHA-256 of the sequence is
// what base::FieldHasher gives for the same fields.
//
// Thread-safety: thread-compatible. Cost: the writer appends to one string, the reader allocates
// nothing.
#ifndef FUSIOND_SERVER_CACHE_FIELDS_H_
#define FUSIOND_SERVER_CACHE_FIELDS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/base/sha256.h"

namespace fusiond::cache {

class FieldWriter {
 public:
  FieldWriter& Field(absl::string_view bytes);
  FieldWriter& Field(uint64_t value);
  FieldWriter& Field(const base::Digest& digest) { return Field(digest.View()); }
  std::string Finish() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what FieldWriter wrote, from bytes that may be anything. The first field that is missing or
// has the wrong size makes every later read give an empty value; ask Finish() before using any.
// A loop over a stored count must therefore test ok() in each turn.
class FieldReader {
 public:
  // `bytes` must outlive the reader and the views that Bytes() returns.
  explicit FieldReader(absl::string_view bytes) : rest_(bytes) {}

  absl::string_view Bytes();
  uint64_t Number();
  base::Digest Digest();

  bool ok() const { return ok_; }
  // DATA_LOSS unless every read succeeded and nothing is left over. `what` names the sequence.
  absl::Status Finish(absl::string_view what) const;

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

// Little-endian numbers of fixed width inside byte formats.
void AppendLittleEndian(uint64_t value, int bytes, std::string* out);
// Requires: data.size() >= bytes.
uint64_t ReadLittleEndian(absl::string_view data, int bytes);

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_FIELDS_H_
