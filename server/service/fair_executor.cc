#include "server/service/fair_executor.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"

namespace fusiond::server {

FairExecutor::~FairExecutor() {
  std::vector<std::thread> threads;
  {
    base::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

uint64_t FairExecutor::Run(const std::string& key, Work work) {
  absl::Status started;
  uint64_t name;
  {
    base::MutexLock lock(&mutex_);
    name = ++last_name_;
    auto found = std::find_if(keys_.begin(), keys_.end(),
                              [&](const Key& other) { return other.name == key; });
    if (found == keys_.end()) found = keys_.insert(keys_.end(), Key{key, {}, 0});
    found->waiting.push_back({name, std::move(work)});
    started = StartWhatIsMissing();
    if (started.ok()) {
      changed_.Signal();
      return name;
    }
    work = std::move(found->waiting.back().work);
    found->waiting.pop_back();
    DropIfDone(found);
  }
  work(started);
  return name;
}

void FairExecutor::Withdraw(uint64_t name) {
  Work work;
  {
    base::MutexLock lock(&mutex_);
    for (auto key = keys_.begin(); key != keys_.end(); ++key) {
      auto found = std::find_if(key->waiting.begin(), key->waiting.end(),
                                [name](const Waiting& waiting) { return waiting.name == name; });
      if (found == key->waiting.end()) continue;
      work = std::move(found->work);
      key->waiting.erase(found);
      DropIfDone(key);
      break;
    }
  }
  if (work) work(absl::CancelledError("cancelled by the caller"));
}

absl::Status FairExecutor::StartWhatIsMissing() {
  // An idle thread that has been woken still counts as idle until it has taken its work.
  if (Startable() <= idle_ || static_cast<int>(threads_.size()) >= max_threads_)
    return absl::OkStatus();
  FUSIOND_ASSIGN_OR_RETURN(std::thread thread, base::StartThread([this] { Loop(); }));
  threads_.push_back(std::move(thread));
  return absl::OkStatus();
}

void FairExecutor::DropIfDone(std::list<Key>::iterator key) {
  if (key->running == 0 && key->waiting.empty()) keys_.erase(key);
}

int FairExecutor::Startable() const {
  int count = 0;
  for (const Key& key : keys_)
    count += std::min(static_cast<int>(key.waiting.size()), per_key_ - key.running);
  return count;
}

std::list<FairExecutor::Key>::iterator FairExecutor::Next() {
  return std::find_if(keys_.begin(), keys_.end(), [this](const Key& key) {
    return !key.waiting.empty() && key.running < per_key_;
  });
}

void FairExecutor::Loop() {
  while (true) {
    std::list<Key>::iterator key;
    Work work;
    {
      base::MutexLock lock(&mutex_);
      while ((key = Next()) == keys_.end()) {
        // What waits though it may not run now is taken by the threads that run its key.
        if (stopping_) return;
        ++idle_;
        changed_.Wait(&mutex_);
        --idle_;
      }
      keys_.splice(keys_.end(), keys_, key);
      work = std::move(key->waiting.front().work);
      key->waiting.pop_front();
      ++key->running;
    }
    work(absl::OkStatus());
    work = nullptr;  // what it holds goes without the lock
    base::MutexLock lock(&mutex_);
    --key->running;
    DropIfDone(key);
  }
}

}  // namespace fusiond::server
