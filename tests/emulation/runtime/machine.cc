#include "tests/emulation/runtime/machine.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/emulation/runtime/annotations.h"

fde_thread* fde_self = nullptr;

namespace fusiond::emulation {

static Machine* machine = nullptr;

Machine& Machine::Get() { return *machine; }

Machine::Machine(const Job& job, Tensors& tensors) : job_(job), tensors_(tensors) {
  machine = this;
}
Machine::~Machine() { machine = nullptr; }

std::string Place(fde_site at) { return std::string(at.file) + ":" + std::to_string(at.line); }
bool SamePlace(fde_site a, fde_site b) { return a.line == b.line && !strcmp(a.file, b.file); }

void Machine::Fail(const std::string& what, fde_site at) {
  const Thread& self = Self();
  if (fault_.empty()) {
    fault_ = what + "; at " + Place(at) + ", thread " + std::to_string(self.index) + " of CTA " +
             std::to_string(self.home->index) + " of " + self.home->grid->launch->entry;
  }
  for (;;) Fiber::Suspend();
}

void Machine::WaitWhile(const uint64_t* word, uint64_t value, const char* doing, fde_site at) {
  if (*word != value) return Pause();
  Thread& self = Self();
  self.wait = word;
  self.wait_value = value;
  self.doing = doing;
  self.at = at;
  Fiber::Suspend();
}

void Machine::Pause() {
  if (interleaving_->order == Order::kShuffled && random_() % 4 == 0) Fiber::Suspend();
}

void Machine::Issue(const Copy& copy) {
  copies_.push_back(copy);
  if (!interleaving_->late_copies) {
    Perform(copies_.back());
    copies_.pop_back();
  } else if (copy.from != nullptr) {
    // Whoever looks before the copy has landed finds neither the old bytes nor the new ones.
    memset(copy.to, 0xff, copy.bytes);
  }
  Pause();
}

void Machine::Perform(Copy& copy) {
  {
    Actor engine;
    Acquire(copy.issued);
    memcpy(copy.to, copy.from != nullptr ? copy.from : &copy.value, copy.bytes);
    memset(static_cast<char*>(copy.to) + copy.bytes, 0, copy.cleared);
    Release(copy.landed);
  }
  copy.done = true;
  if (copy.barrier == nullptr) return;
  copy.barrier->bytes -= copy.bytes;
  Settle(*copy.barrier);
}

void Machine::Trigger(Cta& cta) {
  if (cta.grid->triggered[cta.index]) return;
  cta.grid->triggered[cta.index] = true;
  cta.grid->untriggered--;
}

std::string Machine::Prepare() {
  fault_.clear();
  copies_.clear();
  grids_.clear();
  clusters_.clear();
  for (const Launch& launch : job_.chain) {
    void* library = dlopen(launch.library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return dlerror();
    auto grid = std::make_unique<Grid>();
    grid->launch = &launch;
    grid->entry =
        reinterpret_cast<void (*)(void**)>(dlsym(library, ("fde_entry_" + launch.entry).c_str()));
    if (grid->entry == nullptr) return launch.entry + " is not in " + launch.library;
    if (launch.threads == 0 || launch.threads % 32 != 0 || launch.threads > 1024)
      return "a CTA of " + std::to_string(launch.threads) + " threads";
    if (launch.cluster == 0 || launch.grid_x % launch.cluster != 0)
      return "clusters of " + std::to_string(launch.cluster) + " do not divide the grid";
    for (const Argument& argument : launch.arguments) {
      const void* from = argument.value.data();
      size_t bytes = argument.value.size();
      char* address = nullptr;
      if (argument.tensor >= 0) {
        address = tensors_.data(argument.tensor) + argument.offset;
        from = &address;
        bytes = sizeof(address);
      }
      auto& value = grid->values.emplace_back(bytes / sizeof(std::max_align_t) + 1);
      memcpy(value.data(), from, bytes);
    }
    for (auto& value : grid->values) grid->arguments.push_back(value.data());
    grid->primary = grids_.empty() ? nullptr : grids_.back().get();
    grid->unfinished = grid->untriggered = launch.grid_x * launch.grid_y;
    grid->triggered.assign(grid->unfinished, false);
    grid->clusters.resize(grid->unfinished / launch.cluster);
    std::iota(grid->clusters.begin(), grid->clusters.end(), 0);
    if (interleaving_->order == Order::kDescending)
      std::reverse(grid->clusters.begin(), grid->clusters.end());
    if (interleaving_->order == Order::kShuffled)
      std::shuffle(grid->clusters.begin(), grid->clusters.end(), random_);
    grids_.push_back(std::move(grid));
  }
  return "";
}

std::string Machine::Run(const Interleaving& interleaving) {
  Quiet quiet;
  interleaving_ = &interleaving;
  random_.seed(interleaving.seed);
  fault_ = Prepare();
  Release(&run_token_);
  while (fault_.empty()) {
    const bool admitted = Admit();
    if (clusters_.empty() && !admitted) break;
    PutInOrder();
    const bool ran = RunThreads();
    if (!fault_.empty()) break;
    Retire();
    const bool chance = interleaving.order == Order::kShuffled && random_() % 8 == 0;
    if ((chance && DeliverOne()) || ran || DeliverOne()) continue;
    fault_ = Deadlock();
  }
  for (auto& cluster : clusters_)
    for (auto& cta : cluster->ctas) FreeBlocks(*cta);
  clusters_.clear();
  for (auto& grid : grids_) Acquire(&grid->token);
  return fault_;
}

bool Machine::MayStart(const Grid& grid) const {
  if (grid.launch->dependent) return grid.primary == nullptr || grid.primary->untriggered == 0;
  for (const Grid* before = grid.primary; before != nullptr; before = before->primary)
    if (before->unfinished != 0) return false;
  return true;
}

// Grids keep to their own limit: a dependent grid finds room beside the one that it depends on.
bool Machine::Admit() {
  bool any = false;
  for (auto& grid : grids_) {
    if (!MayStart(*grid)) continue;
    const uint64_t cluster = grid->launch->cluster;
    while (grid->admitted < grid->clusters.size() &&
           (grid->resident == 0 || grid->resident + cluster <= job_.resident_ctas)) {
      AdmitCluster(*grid);
      any = true;
    }
  }
  order_is_stale_ |= any;
  return any;
}

void Machine::AdmitCluster(Grid& grid) {
  const Launch& launch = *grid.launch;
  const uint32_t first = grid.clusters[grid.admitted++] * launch.cluster;
  grid.resident += launch.cluster;
  auto cluster = std::make_unique<Cluster>();
  for (uint32_t rank = 0; rank < launch.cluster; rank++) {
    auto cta = std::make_unique<Cta>();
    cta->grid = &grid;
    cta->cluster = cluster.get();
    cta->index = first + rank;
    cta->rank = rank;
    cta->live = launch.threads;
    cta->threads = std::vector<Thread>(launch.threads);
    cta->warps.resize(launch.threads / 32);
    cta->straggler = random_() % cta->warps.size();
    for (uint32_t i = 0; i < launch.threads; i++) {
      Thread& thread = cta->threads[i];
      thread.thread = {i, 0, 0};
      thread.threads = {static_cast<uint32_t>(launch.threads), 1, 1};
      thread.cta = {static_cast<uint32_t>(cta->index % launch.grid_x),
                    static_cast<uint32_t>(cta->index / launch.grid_x), 0};
      thread.ctas = {static_cast<uint32_t>(launch.grid_x), static_cast<uint32_t>(launch.grid_y), 1};
      thread.home = cta.get();
      thread.index = i;
      thread.lane = i % 32;
      thread.fiber.Start(&Machine::ThreadMain, &thread);
      cta->warps[i / 32].members |= 1u << thread.lane;
    }
    cluster->ctas.push_back(std::move(cta));
  }
  clusters_.push_back(std::move(cluster));
}

void Machine::PutInOrder() {
  if (order_is_stale_) {
    order_.clear();
    for (auto& cluster : clusters_)
      for (auto& cta : cluster->ctas)
        for (Thread& thread : cta->threads)
          if (!thread.done) order_.push_back(&thread);
    if (interleaving_->order == Order::kDescending) std::reverse(order_.begin(), order_.end());
    order_is_stale_ = false;
  }
  if (interleaving_->order == Order::kShuffled) std::shuffle(order_.begin(), order_.end(), random_);
}

// One pass over the threads that can go on; false if there was none, or only such as keep asking.
bool Machine::RunThreads() {
  bool ran = false;
  for (Thread* thread : order_) {
    if (thread->done || thread->stalled) continue;
    if (thread->wait != nullptr && *thread->wait == thread->wait_value) continue;
    if (interleaving_->order == Order::kShuffled && Straggles(*thread)) {
      thread->stalled = true;
      continue;
    }
    thread->wait = nullptr;
    thread->waits_for = nullptr;
    thread->polled = false;
    fde_self = thread;
    thread->fiber.Resume();
    ran |= !thread->polled;
    if (!fault_.empty()) return true;
  }
  if (ran) return true;
  for (Thread* thread : order_) {
    ran |= !thread->done && thread->stalled;
    thread->stalled = false;
  }
  for (auto& cluster : clusters_)
    for (auto& cta : cluster->ctas) cta->straggler = random_() % cta->warps.size();
  return ran;
}

// Threads of one warp of each CTA now and then stay behind until nobody else can run: what they
// should be waited for, the others then do without them. Were several warps late, each would hold
// up the others' meetings, and a race between two of them would rarely show.
bool Machine::Straggles(const Thread& thread) {
  return thread.index / 32 == thread.home->straggler && random_() % 4 == 0;
}

bool Machine::DeliverOne() {
  if (copies_.empty()) return false;
  auto copy = copies_.begin();
  if (interleaving_->order == Order::kDescending) copy = std::prev(copies_.end());
  if (interleaving_->order == Order::kShuffled) std::advance(copy, random_() % copies_.size());
  Perform(*copy);
  copies_.erase(copy);
  return true;
}

void Machine::Retire() {
  for (size_t i = 0; i < clusters_.size();) {
    auto& ctas = clusters_[i]->ctas;
    if (std::any_of(ctas.begin(), ctas.end(), [](auto& cta) { return cta->live != 0; })) {
      i++;
      continue;
    }
    Grid& grid = *ctas[0]->grid;
    Acquire(&grid.token);
    for (auto& cta : ctas) {
      const std::string damage = FreeBlocks(*cta);
      if (fault_.empty() && !damage.empty()) fault_ = damage + "; in " + grid.launch->entry;
    }
    grid.resident -= ctas.size();
    clusters_.erase(clusters_.begin() + i);
    order_is_stale_ = true;
  }
}

void Machine::ThreadMain(void* argument) {
  Thread& thread = *static_cast<Thread*>(argument);
  Grid& grid = *thread.home->grid;
  Acquire(&machine->run_token_);
  if (!grid.launch->dependent) {
    for (Grid* before = grid.primary; before != nullptr; before = before->primary)
      Acquire(&before->token);
  }
  grid.entry(grid.arguments.data());
  Quiet quiet;
  machine->ThreadEnds(thread);
}

void Machine::ThreadEnds(Thread& thread) {
  Cta& cta = *thread.home;
  const fde_site at = {"the end of the kernel", 0};
  thread.at = at;
  auto pending = [](const std::vector<Copy>& copies) {
    return std::any_of(copies.begin(), copies.end(), [](const Copy& copy) { return !copy.done; });
  };
  if (pending(thread.open) || std::any_of(thread.groups.begin(), thread.groups.end(), pending))
    Fail("a thread returns before copies that it started have landed", at);
  thread.done = true;
  cta.live--;
  Release(&cta.grid->token);
  LeaveMeetings(thread);
  if (cta.live != 0) return;
  for (const Copy& copy : copies_) {
    if (copy.cta == &cta) Fail("a CTA ends while a copy into its shared memory is under way", at);
  }
  cta.grid->unfinished--;
  Trigger(cta);
}

std::string Machine::Deadlock() const {
  std::map<std::string, int> waiting;
  for (const Thread* thread : order_) {
    if (thread->done) continue;
    std::string what =
        thread->home->grid->launch->entry + ": " + thread->doing + " at " + Place(thread->at);
    if (const Mbarrier* b = thread->waits_for) {
      what += " (phase " + std::to_string(b->phase) + " lacks " + std::to_string(b->pending) +
              " arrivals and " + std::to_string(b->bytes) + " bytes)";
    }
    waiting[what]++;
  }
  std::string text = "deadlock";
  for (auto& [what, count] : waiting) text += "; " + std::to_string(count) + " in " + what;
  return text;
}

}  // namespace fusiond::emulation
