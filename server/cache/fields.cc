#include "server/cache/fields.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace fusiond::cache {

void AppendLittleEndian(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t ReadLittleEndian(absl::string_view data, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= uint64_t{static_cast<uint8_t>(data[i])} << (8 * i);
  return value;
}

FieldWriter& FieldWriter::Field(absl::string_view bytes) {
  AppendLittleEndian(bytes.size(), 8, &bytes_);
  bytes_.append(bytes.data(), bytes.size());
  return *this;
}

FieldWriter& FieldWriter::Field(uint64_t value) {
  AppendLittleEndian(8, 8, &bytes_);
  AppendLittleEndian(value, 8, &bytes_);
  return *this;
}

absl::string_view FieldReader::Bytes() {
  if (!ok_ || rest_.size() < 8) {
    ok_ = false;
    return {};
  }
  const uint64_t length = ReadLittleEndian(rest_, 8);
  if (length > rest_.size() - 8) {
    ok_ = false;
    return {};
  }
  absl::string_view field = rest_.substr(8, length);
  rest_.remove_prefix(8 + length);
  return field;
}

uint64_t FieldReader::Number() {
  absl::string_view field = Bytes();
  ok_ = ok_ && field.size() == 8;
  return ok_ ? ReadLittleEndian(field, 8) : 0;
}

base::Digest FieldReader::Digest() {
  base::Digest digest;
  absl::string_view field = Bytes();
  ok_ = ok_ && field.size() == digest.bytes.size();
  if (ok_) std::memcpy(digest.bytes.data(), field.data(), field.size());
  return digest;
}

absl::Status FieldReader::Finish(absl::string_view what) const {
  if (!ok_) return absl::DataLossError(absl::StrCat(what, ": a field is missing or cut short"));
  if (!rest_.empty()) {
    return absl::DataLossError(absl::StrCat(what, ": ", rest_.size(), " bytes after the end"));
  }
  return absl::OkStatus();
}

}  // namespace fusiond::cache
