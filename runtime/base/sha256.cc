#include "runtime/base/sha256.h"

#include <openssl/evp.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"

namespace fusiond::base {

std::string Digest::Hex() const { return absl::BytesToHexString(View()); }

absl::StatusOr<Digest> DigestFromHex(absl::string_view hex) {
  if (hex.size() != 64 ||
      hex.find_first_not_of("0123456789abcdefABCDEF") != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("digest: expected 64 hexadecimal digits, got ", hex.size(), " characters"));
  }
  return DigestFromBytes(absl::HexStringToBytes(hex));
}

absl::StatusOr<Digest> DigestFromBytes(absl::string_view bytes) {
  Digest digest;
  if (bytes.size() != digest.bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("digest: expected 32 bytes, got ", bytes.size()));
  }
  std::copy(bytes.begin(), bytes.end(), digest.bytes.begin());
  return digest;
}

namespace {

// Fetched once, for the life of the process: EVP_sha256() is looked up anew, under locks, by
// whatever is given it.
const EVP_MD* Algorithm() {
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  FUSIOND_CHECK(sha256 != nullptr);
  return sha256;
}

}  // namespace

Digest Sha256(absl::string_view data) {
  Digest digest;
  FUSIOND_CHECK(EVP_Digest(data.data(), data.size(), digest.bytes.data(), nullptr, Algorithm(),
                           nullptr) == 1);
  return digest;
}

FieldHasher::FieldHasher() : context_(EVP_MD_CTX_new()) {
  FUSIOND_CHECK(EVP_DigestInit_ex(context_, Algorithm(), nullptr) == 1);
}

FieldHasher::~FieldHasher() { EVP_MD_CTX_free(context_); }

FieldHasher& FieldHasher::Field(absl::string_view bytes) {
  uint8_t length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<uint8_t>(uint64_t{bytes.size()} >> (8 * i));
  EVP_DigestUpdate(context_, length, sizeof(length));
  EVP_DigestUpdate(context_, bytes.data(), bytes.size());
  return *this;
}

FieldHasher& FieldHasher::Field(uint64_t value) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return Field(absl::string_view(bytes, sizeof(bytes)));
}

Digest FieldHasher::Finish() {
  Digest digest;
  FUSIOND_CHECK(EVP_DigestFinal_ex(context_, digest.bytes.data(), nullptr) == 1);
  return digest;
}

}  // namespace fusiond::base
