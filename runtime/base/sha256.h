// SHA-256 digests, and hashing of several fields without ambiguity.
//
// Thread-safety: Digest is a value; FieldHasher is thread-compatible. Source: FIPS 180-4, computed
// by OpenSSL.
#ifndef FUSIOND_RUNTIME_BASE_SHA256_H_
#define FUSIOND_RUNTIME_BASE_SHA256_H_

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace fusiond::base {

struct Digest {
  std::array<uint8_t, 32> bytes{};

  // 64 lower-case hexadecimal digits.
  std::string Hex() const;
  absl::string_view View() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  auto operator<=>(const Digest&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const Digest& d) {
    return H::combine(std::move(h), d.bytes);
  }
};

// INVALID_ARGUMENT unless `hex` is exactly 64 hexadecimal digits.
absl::StatusOr<Digest> DigestFromHex(absl::string_view hex);
// INVALID_ARGUMENT unless `bytes` is exactly 32 bytes.
absl::StatusOr<Digest> DigestFromBytes(absl::string_view bytes);

Digest Sha256(absl::string_view data);

// SHA-256 over a sequence of fields, each preceded by its length as 8 little-endian bytes, so that
// no two different sequences of fields share their hashed bytes.
class FieldHasher {
 public:
  FieldHasher();
  ~FieldHasher();
  FieldHasher(const FieldHasher&) = delete;
  FieldHasher& operator=(const FieldHasher&) = delete;

  FieldHasher& Field(absl::string_view bytes);
  FieldHasher& Field(uint64_t value);  // 8 little-endian bytes
  // May be called once; no Field may follow.
  Digest Finish();

 private:
  evp_md_ctx_st* const context_;
};

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_SHA256_H_
