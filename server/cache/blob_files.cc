#include "server/cache/blob_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond::cache {

std::string BlobFiles::PathOf(const RecordKey& key, const base::Digest& digest) const {
  return absl::StrCat(folder_, "/", absl::BytesToHexString(key.bytes()), "-", digest.Hex());
}

absl::Status BlobFiles::Write(const RecordKey& key, const BlobReference& blob,
                              absl::string_view payload) {
  return base::WriteFileAtomically(PathOf(key, blob.digest), payload);
}

absl::StatusOr<std::string> BlobFiles::Read(const RecordKey& key, const BlobReference& blob) const {
  const std::string path = PathOf(key, blob.digest);
  // The size first: what is allocated below then has the length that the record states.
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && static_cast<uint64_t>(info.st_size) != blob.bytes) {
    return absl::DataLossError(
        absl::StrCat(path, ": ", info.st_size, " bytes, its record says ", blob.bytes));
  }
  absl::StatusOr<std::string> payload = base::ReadFile(path, blob.bytes);
  if (absl::IsNotFound(payload.status())) return absl::DataLossError(payload.status().message());
  FUSIOND_RETURN_IF_ERROR(payload.status());
  if (base::Sha256(*payload) != blob.digest) {
    return absl::DataLossError(
        absl::StrCat(path, ": content does not have the digest of its name"));
  }
  return payload;
}

bool BlobFiles::Exists(const RecordKey& key, const BlobReference& blob) const {
  struct stat info;
  return ::stat(PathOf(key, blob.digest).c_str(), &info) == 0 &&
         static_cast<uint64_t>(info.st_size) == blob.bytes;
}

void BlobFiles::Remove(const RecordKey& key, const BlobReference& blob) {
  ::unlink(PathOf(key, blob.digest).c_str());
}

absl::StatusOr<std::vector<std::string>> BlobFiles::Names() const {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator at(folder_, error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error) return base::ErrnoStatus(error.value(), absl::StrCat("list ", folder_));
  return names;
}

std::optional<BlobFiles::ParsedName> BlobFiles::Parse(absl::string_view name) {
  const size_t dash = name.find('-');
  if (dash == absl::string_view::npos) return std::nullopt;
  const absl::string_view key_hex = name.substr(0, dash);
  for (char c : key_hex) {
    if (!absl::ascii_isxdigit(c)) return std::nullopt;
  }
  if (key_hex.size() % 2 != 0) return std::nullopt;
  absl::StatusOr<RecordKey> key = RecordKey::FromBytes(absl::HexStringToBytes(key_hex));
  absl::StatusOr<base::Digest> digest = base::DigestFromHex(name.substr(dash + 1));
  if (!key.ok() || !digest.ok()) return std::nullopt;
  return ParsedName{*std::move(key), *digest};
}

void BlobFiles::RemoveName(const std::string& name) {
  ::unlink(absl::StrCat(folder_, "/", name).c_str());
}

uint64_t DiskBytes(const std::string& folder) {
  constexpr uint64_t kBlockBytes = 512;  // of st_blocks, whatever the file system's own
  uint64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    struct stat info;
    if (::stat(at->path().c_str(), &info) == 0) bytes += info.st_blocks * kBlockBytes;
  }
  return bytes;
}

}  // namespace fusiond::cache
