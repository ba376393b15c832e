#include "server/service/fair_executor.h"

#include <algorithm>
#include <utility>

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

void FairExecutor::Run(const std::string& key, absl::AnyInvocable<void()> work) {
  base::MutexLock lock(&mutex_);
  auto found =
      std::find_if(keys_.begin(), keys_.end(), [&](const Key& other) { return other.name == key; });
  if (found == keys_.end()) found = keys_.insert(keys_.end(), Key{key, {}, 0});
  found->waiting.push_back(std::move(work));
  // An idle thread that has been woken still counts as idle until it has taken its work.
  if (Startable() > idle_ && static_cast<int>(threads_.size()) < max_threads_)
    threads_.emplace_back([this] { Loop(); });
  changed_.Signal();
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
    absl::AnyInvocable<void()> work;
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
      work = std::move(key->waiting.front());
      key->waiting.pop_front();
      ++key->running;
    }
    work();
    work = nullptr;  // what it holds goes without the lock
    base::MutexLock lock(&mutex_);
    if (--key->running == 0 && key->waiting.empty()) keys_.erase(key);
  }
}

}  // namespace fusiond::server
