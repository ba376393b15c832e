// The emulated machine: grids of CTAs of threads, each thread a fiber, run one at a time under a
// chosen order. What a kernel asks of it arrives through device/abi.cuh (meetings.cc, mbarrier.cc,
// copy.cc, shared_memory.cc).
//
// Thread-safety: one OS thread. There is one machine at a time, since kernels call it by bare
// functions.
#ifndef FUSIOND_TESTS_EMULATION_RUNTIME_MACHINE_H_
#define FUSIOND_TESTS_EMULATION_RUNTIME_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/emulation/device/abi.cuh"
#include "tests/emulation/runtime/fiber.h"
#include "tests/emulation/runtime/job.h"
#include "tests/emulation/runtime/tensors.h"

namespace fusiond::emulation {

struct Cta;
struct Grid;

// Threads that wait for each other: arrivals of the current generation. TSan orders what came
// before an arrival before what comes after the meeting, by one token for odd and even generations.
struct Meeting {
  uint32_t arrived = 0;
  uint64_t generation = 0;
  fde_site at{};  // of the first arrival
  char token[2] = {};
};

// Lanes that exchange values, one for each mask in use.
struct WarpMeeting {
  uint32_t mask = 0;
  uint32_t arrived = 0;  // lanes
  uint64_t generation = 0;
  const char* what = nullptr;
  fde_site at{};
  uint64_t value[2][32] = {};
  char token[2] = {};
};

struct Warp {
  uint32_t members = 0;  // lanes that have not returned
  std::list<WarpMeeting> meetings;
};

struct Mbarrier {
  uint32_t arrivals = 0;  // of each phase
  uint32_t pending = 0;   // of this phase
  int64_t bytes = 0;      // announced and not landed; negative when they landed first
  uint64_t phase = 0;
  bool fenced = false;
  char token[2] = {};  // of even and odd phases
};

struct Copy {
  void* to = nullptr;
  const void* from = nullptr;  // null: `value`
  uint32_t bytes = 0;
  uint32_t cleared = 0;  // bytes after those, set to 0
  uint64_t value = 0;
  Cta* cta = nullptr;           // whose shared memory `to` is
  Mbarrier* barrier = nullptr;  // told when the bytes have landed; null: a thread's group
  void* issued = nullptr;       // token: released by the thread at issue
  void* landed = nullptr;       // token: released by the copy engine when done
  bool done = false;
};

struct Block {  // of shared memory
  uint32_t offset = 0;
  uint64_t bytes = 0;
  char* data = nullptr;
  char* allocation = nullptr;
};

struct Thread : fde_thread {
  Cta* home = nullptr;
  uint32_t index = 0;
  uint32_t lane = 0;
  bool done = false;
  bool stalled = false;  // runs only when nothing else can
  bool polled = false;   // asked for something that is not so yet, and will ask again
  Fiber fiber;
  // Not resumed while *wait == wait_value.
  const uint64_t* wait = nullptr;
  uint64_t wait_value = 0;
  const char* doing = "";
  fde_site at{};
  const Mbarrier* waits_for = nullptr;
  // cp.async: copies since the last commit; committed groups, oldest first.
  std::vector<Copy> open;
  std::list<std::vector<Copy>> groups;
  bool arrived_at_cluster = false;
  uint64_t cluster_generation = 0;
  char issue_token = 0, landed_token = 0;
};

struct Cluster {
  std::vector<std::unique_ptr<Cta>> ctas;
  Meeting barrier;
};

struct Cta {
  Grid* grid = nullptr;
  Cluster* cluster = nullptr;
  uint32_t index = 0;  // in the grid, x fastest
  uint32_t rank = 0;
  uint32_t live = 0;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  size_t straggler = 0;  // the warp whose threads may be late, in shuffled order
  Meeting barriers[16];
  uint32_t expected[16] = {};  // by named barriers, while they fill
  std::map<void*, Mbarrier> mbarriers;
  std::vector<Block> blocks;
};

struct Grid {
  const Launch* launch = nullptr;
  void (*entry)(void**) = nullptr;
  std::vector<std::vector<std::max_align_t>> values;  // of the arguments
  std::vector<void*> arguments;                       // their addresses
  Grid* primary = nullptr;                            // the grid before it in the chain
  std::vector<uint32_t> clusters;                     // in the order of admission
  size_t admitted = 0;                                // clusters
  uint32_t resident = 0;                              // CTAs
  uint64_t unfinished = 0;                            // CTAs
  uint64_t untriggered = 0;  // CTAs that neither returned nor launched dependents
  std::vector<bool> triggered;
  char token = 0;
};

class Machine {
 public:
  Machine(const Job& job, Tensors& tensors);
  ~Machine();

  // Runs the job's chain under one interleaving. Empty, or the fault that ended it.
  std::string Run(const Interleaving& interleaving);

  // For what kernels ask, all on behalf of the running thread.
  static Machine& Get();
  static Thread& Self() { return *static_cast<Thread*>(fde_self); }
  const Interleaving& interleaving() const { return *interleaving_; }
  const Tensors& tensors() const { return tensors_; }
  [[noreturn]] void Fail(const std::string& what, fde_site at);
  // Until *word != value.
  void WaitWhile(const uint64_t* word, uint64_t value, const char* doing, fde_site at);
  // A point where another thread may run first: sometimes it does, under a shuffled order.
  void Pause();
  // Starts a copy that ends on an mbarrier.
  void Issue(const Copy& copy);
  // Copies the bytes, on behalf of the copy engine.
  void Perform(Copy& copy);
  // Part of fd_launch_dependents and of a CTA's end.
  void Trigger(Cta& cta);

 private:
  std::string Prepare();
  bool Admit();
  bool MayStart(const Grid& grid) const;
  void AdmitCluster(Grid& grid);
  void Retire();
  void PutInOrder();
  bool RunThreads();
  bool Straggles(const Thread& thread);
  bool DeliverOne();
  static void ThreadMain(void* thread);
  void ThreadEnds(Thread& thread);
  void LeaveMeetings(Thread& thread);
  std::string Deadlock() const;

  const Job& job_;
  Tensors& tensors_;
  const Interleaving* interleaving_ = nullptr;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Grid>> grids_;
  std::vector<std::unique_ptr<Cluster>> clusters_;  // resident
  std::vector<Thread*> order_;
  bool order_is_stale_ = true;
  std::list<Copy> copies_;  // under way
  std::string fault_;
  char run_token_ = 0;  // what came before this run
};

// Says where it is, e.g. "kernel.cu:41".
std::string Place(fde_site at);
bool SamePlace(fde_site a, fde_site b);

// An mbarrier of the CTA at `address`, initialised; a fault otherwise.
Mbarrier& FindMbarrier(Cta& cta, void* address, fde_site at);
// Bytes have landed or a thread has arrived: ends the phase if that was the last.
void Settle(Mbarrier& barrier);
// As fde_shuffle; returns what each lane of the mask brought. `ordered`: also orders memory.
const uint64_t* MeetInWarp(uint32_t mask, uint64_t value, const char* what, bool ordered,
                           fde_site at);
// The block of `cta` that holds [p, p + bytes); null if none does.
const Block* FindBlock(const Cta& cta, const void* p, uint64_t bytes);
// The block at `offset`, made at its first use; a fault if it overlaps another or leaves the arena.
Block& GetBlock(Cta& cta, uint32_t offset, uint64_t bytes, fde_site at);
// Empty, or which block was written past its end.
std::string FreeBlocks(Cta& cta);

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_RUNTIME_MACHINE_H_
