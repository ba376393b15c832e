// A leveldb::Env whose disk can refuse, stall, or lose its power.
//
// Thread-safety: thread-safe. Sits on Env::Default() and its real files.
#ifndef FUSIOND_TESTS_CACHE_FAULT_ENV_H_
#define FUSIOND_TESTS_CACHE_FAULT_ENV_H_

#include <cstdint>
#include <map>
#include <string>

#include "leveldb/env.h"
#include "runtime/base/mutex.h"

namespace fusiond::cache {

class FaultEnv : public leveldb::EnvWrapper {
 public:
  FaultEnv() : EnvWrapper(leveldb::Env::Default()) {}

  // From now on every write, sync, creation and renaming fails with this; OK heals the disk.
  void FailWrites(const leveldb::Status& failure);
  // Opening a data base blocks until released.
  void HoldOpening();
  void ReleaseOpening();
  // Power is cut: what is written from now on, and what was not synced before, is lost once
  // LoseUnsynced() is called (after the data base has been closed).
  void CutPower();
  void LoseUnsynced();

  // A folder that holds a file of this name has a manifest that reads as damaged, whatever is done
  // to it.
  static constexpr char kPoison[] = "poison";

  leveldb::Status NewSequentialFile(const std::string& name,
                                    leveldb::SequentialFile** file) override;
  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status NewAppendableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status CreateDir(const std::string& name) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  leveldb::Status LockFile(const std::string& name, leveldb::FileLock** lock) override;

 private:
  class File;
  friend class File;

  leveldb::Status Failure() const;
  void Appended(const std::string& name, uint64_t bytes);
  void Synced(const std::string& name);

  struct Extent {
    uint64_t written = 0;
    uint64_t synced = 0;
  };
  mutable base::Mutex mutex_;
  base::CondVar released_;
  leveldb::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool power_cut_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Extent> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusiond::cache

#endif  // FUSIOND_TESTS_CACHE_FAULT_ENV_H_
