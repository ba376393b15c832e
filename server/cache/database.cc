#include "server/cache/database.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond::cache {
namespace {

constexpr int kBloomBitsPerKey = 10;                   // about 1 % of absent keys read a block
constexpr size_t kWriteBufferBytes = size_t{8} << 20;  // executables reach 1 MiB each
constexpr int kMaxOpenFiles = 500;
constexpr absl::string_view kDropping = "dropping ";  // N bytes, in LevelDB 1.20 to 1.23

}  // namespace

bool IsDamage(const leveldb::Status& status) {
  return status.IsCorruption() || status.IsInvalidArgument() || status.IsNotSupportedError();
}

DatabaseOpener::DatabaseOpener(std::string folder, size_t block_cache_bytes, leveldb::Env* env,
                               Log log)
    : folder_(std::move(folder)),
      log_(std::move(log)),
      damage_(log_),
      bloom_filter_(leveldb::NewBloomFilterPolicy(kBloomBitsPerKey)),
      block_cache_(leveldb::NewLRUCache(block_cache_bytes)) {
  options_.create_if_missing = true;
  options_.env = env;
  options_.info_log = &damage_;
  options_.filter_policy = bloom_filter_.get();
  options_.block_cache = block_cache_.get();
  options_.write_buffer_size = kWriteBufferBytes;
  options_.max_open_files = kMaxOpenFiles;
}

void DatabaseOpener::Damage::Logv(const char* format, std::va_list arguments) {
  if (!absl::StrContains(format, kDropping) && !absl::StrContains(format, "gnoring")) return;
  char line[1024];
  std::vsnprintf(line, sizeof(line), format, arguments);
  log_(absl::StrCat("cache: ", line));
  const size_t at = absl::string_view(line).find(kDropping);
  if (at == absl::string_view::npos) return;
  dropped_bytes_.fetch_add(std::strtoull(line + at + kDropping.size(), nullptr, 10),
                           std::memory_order_relaxed);
}

leveldb::Status DatabaseOpener::TryOpen(std::unique_ptr<leveldb::DB>& db) {
  leveldb::DB* opened = nullptr;
  leveldb::Status status = leveldb::DB::Open(options_, folder_, &opened);
  db.reset(opened);
  return status;
}

absl::StatusOr<DatabaseOpener::Opened> DatabaseOpener::Open(bool repair_first) {
  Opened opened;
  leveldb::Status status;
  if (!repair_first) status = TryOpen(opened.db);
  if (repair_first || IsDamage(status)) {
    log_(absl::StrCat("cache: repairing ", folder_, " (",
                      repair_first ? "damage met in use" : status.ToString(), ")"));
    leveldb::Status repair = leveldb::RepairDB(folder_, options_);
    opened.repaired = repair.ok();
    if (!repair.ok()) log_(absl::StrCat("cache: repair of ", folder_, ": ", repair.ToString()));
    status = TryOpen(opened.db);
  }
  if (IsDamage(status)) {
    log_(absl::StrCat("cache: ", folder_, " cannot be repaired (", status.ToString(),
                      "): moved aside, starting empty"));
    FUSIOND_RETURN_IF_ERROR(MoveAside());
    opened.repaired = false;
    opened.moved_aside = true;
    status = TryOpen(opened.db);
  }
  if (!status.ok()) return absl::UnavailableError(status.ToString());
  return opened;
}

absl::Status DatabaseOpener::MoveAside() {
  const std::string aside = absl::StrCat(folder_, ".damaged");
  std::error_code error;
  std::filesystem::remove_all(aside, error);
  if (!error) std::filesystem::rename(folder_, aside, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("move ", folder_, " to ", aside, ": ", error.message()));
  }
  return absl::OkStatus();
}

}  // namespace fusiond::cache
