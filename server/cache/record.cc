#include "server/cache/record.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"
#include "runtime/base/crc32c.h"
#include "runtime/base/status_macros.h"
#include "server/cache/fields.h"

namespace fusiond::cache {
namespace {

constexpr absl::string_view kMagic = "FSDR";
constexpr uint8_t kPayloadInFile = 1;  // the only flag
constexpr size_t kDigestBytes = 32;
constexpr size_t kCrcOffset = 24;

uint32_t Checksum(absl::string_view record) {
  return base::Crc32c(record.substr(kRecordHeaderBytes),
                      base::Crc32c(record.substr(0, kCrcOffset)));
}

std::string Encode(RecordKind kind, uint8_t flags, absl::string_view material,
                   uint64_t payload_bytes, absl::string_view body) {
  std::string record(kMagic);
  record.reserve(kRecordHeaderBytes + material.size() + body.size());
  AppendLittleEndian(kRecordVersion, 2, &record);
  AppendLittleEndian(static_cast<uint8_t>(kind), 1, &record);
  AppendLittleEndian(flags, 1, &record);
  AppendLittleEndian(material.size(), 8, &record);
  AppendLittleEndian(payload_bytes, 8, &record);
  AppendLittleEndian(0, 4, &record);
  absl::StrAppend(&record, material, body);
  std::string crc;
  AppendLittleEndian(Checksum(record), 4, &crc);
  record.replace(kCrcOffset, crc.size(), crc);
  return record;
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("cache record: ", what));
}

base::Digest DigestAt(absl::string_view bytes, size_t offset) {
  base::Digest digest;
  std::memcpy(digest.bytes.data(), bytes.data() + offset, digest.bytes.size());
  return digest;
}

}  // namespace

std::optional<RecordKind> RecordKindFromByte(uint8_t byte) {
  if (!absl::StrContains(kRecordKinds, static_cast<char>(byte))) return std::nullopt;
  return static_cast<RecordKind>(byte);
}

absl::string_view Name(RecordKind kind) {
  switch (kind) {
    case RecordKind::kRequest:
      return "request";
    case RecordKind::kCanonical:
      return "canonical";
    case RecordKind::kImage:
      return "image";
    case RecordKind::kExecutable:
      return "executable";
    case RecordKind::kJournal:
      return "journal";
    case RecordKind::kGraph:
      return "graph";
  }
  return "unknown";
}

RecordKey::RecordKey(RecordKind kind, const base::Digest& digest)
    : bytes_(absl::StrCat(std::string(1, static_cast<char>(kind)), digest.View())) {}

RecordKey RecordKey::Journal(const base::Digest& graph, const RequestKey& key) {
  return RecordKey(absl::StrCat("j", graph.View(), key.digest.View()));
}

absl::StatusOr<RecordKey> RecordKey::FromBytes(absl::string_view bytes) {
  std::optional<RecordKind> kind;
  if (!bytes.empty()) kind = RecordKindFromByte(static_cast<uint8_t>(bytes[0]));
  const size_t digests = kind == RecordKind::kJournal ? 2 : 1;
  if (!kind.has_value() || bytes.size() != 1 + digests * kDigestBytes) {
    return absl::DataLossError(
        absl::StrCat("cache: no entry has the key ", absl::BytesToHexString(bytes)));
  }
  return RecordKey(std::string(bytes));
}

base::Digest RecordKey::first() const { return DigestAt(bytes_, 1); }

base::Digest RecordKey::second() const {
  FUSIOND_CHECK(kind() == RecordKind::kJournal);
  return DigestAt(bytes_, 1 + kDigestBytes);
}

std::string EncodeRecord(RecordKind kind, absl::string_view material, absl::string_view payload) {
  FUSIOND_CHECK(payload.size() <= kMaxInlinePayloadBytes);
  return Encode(kind, 0, material, payload.size(), payload);
}

std::string EncodeRecord(RecordKind kind, absl::string_view material, const BlobReference& blob) {
  FUSIOND_CHECK(blob.bytes <= kMaxPayloadBytes);
  return Encode(kind, kPayloadInFile, material, blob.bytes, blob.digest.View());
}

absl::StatusOr<RecordView> DecodeRecord(absl::string_view bytes) {
  if (bytes.size() < kRecordHeaderBytes) {
    return Damaged(absl::StrCat(bytes.size(), " bytes, a header alone has ", kRecordHeaderBytes));
  }
  if (bytes.substr(0, kMagic.size()) != kMagic) return Damaged("wrong magic number");
  const uint64_t version = ReadLittleEndian(bytes.substr(4), 2);
  if (version != kRecordVersion) {
    return Damaged(absl::StrCat("format version ", version, ", this is ", kRecordVersion));
  }
  const std::optional<RecordKind> kind = RecordKindFromByte(static_cast<uint8_t>(bytes[6]));
  const uint8_t flags = static_cast<uint8_t>(bytes[7]);
  const uint64_t material_bytes = ReadLittleEndian(bytes.substr(8), 8);
  const uint64_t payload_bytes = ReadLittleEndian(bytes.substr(16), 8);
  const uint64_t crc = ReadLittleEndian(bytes.substr(kCrcOffset), 4);
  const absl::string_view body = bytes.substr(kRecordHeaderBytes);
  const bool in_file = flags == kPayloadInFile;
  if (!kind.has_value()) return Damaged("unknown kind");
  if (flags > kPayloadInFile) return Damaged("unknown flags");
  if (payload_bytes > (in_file ? kMaxPayloadBytes : kMaxInlinePayloadBytes)) {
    return Damaged(absl::StrCat("payload of ", payload_bytes, " bytes"));
  }
  const uint64_t stored_payload = in_file ? kDigestBytes : payload_bytes;
  if (material_bytes > body.size() || body.size() - material_bytes != stored_payload) {
    return Damaged(absl::StrCat(body.size(), " bytes after the header, its lengths say ",
                                material_bytes, " + ", stored_payload));
  }
  if (crc != Checksum(bytes)) return Damaged("wrong checksum");
  RecordView view{*kind, body.substr(0, material_bytes), body.substr(material_bytes), std::nullopt};
  if (in_file) {
    view.blob = BlobReference{DigestAt(view.payload, 0), payload_bytes};
    view.payload = {};
  }
  return view;
}

}  // namespace fusiond::cache
