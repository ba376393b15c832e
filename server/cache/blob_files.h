// BlobFiles: payloads too long for a record, one file each.
//
// A file's name is the hex of its record's key (kind and digests), a dash, and the hex of the
// payload's SHA-256. So it belongs to exactly one record, needs no count of references, and an
// orphan (a crash between file and record) is told from its name alone.
//
// Thread-safety: thread-safe; the owner serialises Write, Remove and a sweep's look-up-and-remove.
// Errors: as base/file.h unless stated.
// Cost: Write syncs file and folder; Read hashes the whole payload.
#ifndef FUSIOND_SERVER_CACHE_BLOB_FILES_H_
#define FUSIOND_SERVER_CACHE_BLOB_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/cache/record.h"

namespace fusiond::cache {

class BlobFiles {
 public:
  // Requires before any other call: the folder exists.
  explicit BlobFiles(std::string folder) : folder_(std::move(folder)) {}

  // On disk, synced, when it returns OK.
  absl::Status Write(const RecordKey& key, const BlobReference& blob, absl::string_view payload);
  // DATA_LOSS: the file is gone, or is not what `blob` says. Other errors: not readable now.
  absl::StatusOr<std::string> Read(const RecordKey& key, const BlobReference& blob) const;
  // Whether a file of that name and length is there.
  bool Exists(const RecordKey& key, const BlobReference& blob) const;
  // A file that is not there is no error; one that cannot be removed is left for a sweep.
  void Remove(const RecordKey& key, const BlobReference& blob);

  // Names of all files in the folder; NOT_FOUND when there is no folder.
  absl::StatusOr<std::vector<std::string>> Names() const;
  struct ParsedName {
    RecordKey key;
    base::Digest digest;
  };
  // Nothing for a name that Write does not give, such as a left-over temporary file's.
  static std::optional<ParsedName> Parse(absl::string_view name);
  void RemoveName(const std::string& name);

  const std::string& folder() const { return folder_; }

 private:
  std::string PathOf(const RecordKey& key, const base::Digest& digest) const;

  const std::string folder_;
};

// Bytes that the files of `folder` take on the disk (blocks, not lengths); 0 when unreadable.
uint64_t DiskBytes(const std::string& folder);

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_BLOB_FILES_H_
