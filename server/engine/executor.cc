#include "server/engine/executor.h"

#include <utility>

namespace fusiond::server {

Executor::Executor(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

Executor::~Executor() {
  {
    base::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void Executor::Run(absl::AnyInvocable<void()> work) {
  base::MutexLock lock(&mutex_);
  queue_.push_back(std::move(work));
  changed_.Signal();
}

void Executor::Loop() {
  while (true) {
    absl::AnyInvocable<void()> work;
    {
      base::MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace fusiond::server
