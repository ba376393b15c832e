#include "tests/cache/fault_env.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"

namespace fusiond::cache {

class FaultEnv::File : public leveldb::WritableFile {
 public:
  File(FaultEnv* env, std::string name, leveldb::WritableFile* target)
      : env_(env), name_(std::move(name)), target_(target) {}

  leveldb::Status Append(const leveldb::Slice& data) override {
    if (leveldb::Status failure = env_->Failure(); !failure.ok()) return failure;
    env_->Appended(name_, data.size());
    return target_->Append(data);
  }
  leveldb::Status Close() override { return target_->Close(); }
  leveldb::Status Flush() override {
    if (leveldb::Status failure = env_->Failure(); !failure.ok()) return failure;
    return target_->Flush();
  }
  leveldb::Status Sync() override {
    if (leveldb::Status failure = env_->Failure(); !failure.ok()) return failure;
    leveldb::Status status = target_->Sync();
    if (status.ok()) env_->Synced(name_);
    return status;
  }

 private:
  FaultEnv* const env_;
  const std::string name_;
  const std::unique_ptr<leveldb::WritableFile> target_;
};

void FaultEnv::FailWrites(const leveldb::Status& failure) {
  base::MutexLock lock(&mutex_);
  failure_ = failure;
}

leveldb::Status FaultEnv::Failure() const {
  base::MutexLock lock(&mutex_);
  return failure_;
}

void FaultEnv::HoldOpening() {
  base::MutexLock lock(&mutex_);
  held_ = true;
}

void FaultEnv::ReleaseOpening() {
  base::MutexLock lock(&mutex_);
  held_ = false;
  released_.SignalAll();
}

void FaultEnv::CutPower() {
  base::MutexLock lock(&mutex_);
  power_cut_ = true;
}

void FaultEnv::LoseUnsynced() {
  base::MutexLock lock(&mutex_);
  for (const auto& [name, extent] : files_) {
    std::error_code gone;
    const uint64_t size = std::filesystem::file_size(name, gone);
    if (!gone && size > extent.synced) std::filesystem::resize_file(name, extent.synced);
  }
  files_.clear();
  power_cut_ = false;
}

void FaultEnv::Appended(const std::string& name, uint64_t bytes) {
  base::MutexLock lock(&mutex_);
  files_[name].written += bytes;
}

void FaultEnv::Synced(const std::string& name) {
  base::MutexLock lock(&mutex_);
  if (!power_cut_) files_[name].synced = files_[name].written;
}

leveldb::Status FaultEnv::NewSequentialFile(const std::string& name,
                                            leveldb::SequentialFile** file) {
  const std::filesystem::path path(name);
  if (absl::StartsWith(path.filename().string(), "MANIFEST") &&
      std::filesystem::exists(path.parent_path() / kPoison)) {
    return leveldb::Status::Corruption("poisoned manifest");
  }
  return target()->NewSequentialFile(name, file);
}

leveldb::Status FaultEnv::NewWritableFile(const std::string& name, leveldb::WritableFile** file) {
  if (leveldb::Status failure = Failure(); !failure.ok()) return failure;
  leveldb::WritableFile* opened = nullptr;
  leveldb::Status status = target()->NewWritableFile(name, &opened);
  if (!status.ok()) return status;
  *file = new File(this, name, opened);
  base::MutexLock lock(&mutex_);
  files_[name] = {};
  return status;
}

leveldb::Status FaultEnv::NewAppendableFile(const std::string& name, leveldb::WritableFile** file) {
  return NewWritableFile(name, file);  // LevelDB appends only where reuse_logs is set; we do not
}

leveldb::Status FaultEnv::CreateDir(const std::string& name) {
  if (leveldb::Status failure = Failure(); !failure.ok()) return failure;
  return target()->CreateDir(name);
}

leveldb::Status FaultEnv::RenameFile(const std::string& from, const std::string& to) {
  if (leveldb::Status failure = Failure(); !failure.ok()) return failure;
  leveldb::Status status = target()->RenameFile(from, to);
  base::MutexLock lock(&mutex_);
  if (auto at = files_.find(from); status.ok() && at != files_.end()) {
    files_[to] = at->second;
    files_.erase(from);
  }
  return status;
}

leveldb::Status FaultEnv::LockFile(const std::string& name, leveldb::FileLock** lock) {
  {
    base::MutexLock mutex_lock(&mutex_);
    while (held_) released_.Wait(&mutex_);
  }
  return target()->LockFile(name, lock);
}

}  // namespace fusiond::cache
