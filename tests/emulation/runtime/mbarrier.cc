// Barriers in shared memory. Their state lies outside the kernel's reach; their word in shared
// memory holds a mark that shows whether something wrote over it.
#include <cstdint>
#include <cstring>

#include "tests/emulation/runtime/annotations.h"
#include "tests/emulation/runtime/machine.h"

namespace fusiond::emulation {
namespace {

constexpr uint64_t kMark = 0x6d62617272696572;
constexpr uint32_t kMost = (1u << 20) - 1;  // PTX ISA, mbarrier: counts have 20 bits

}  // namespace

Mbarrier& FindMbarrier(Cta& cta, void* address, fde_site at) {
  auto found = cta.mbarriers.find(address);
  if (found == cta.mbarriers.end()) Machine::Get().Fail("an mbarrier that nobody initialised", at);
  uint64_t mark;
  memcpy(&mark, address, sizeof(mark));
  if (mark != kMark) Machine::Get().Fail("an mbarrier that was written over", at);
  return found->second;
}

void Settle(Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.arrivals;
  barrier.phase++;
}

}  // namespace fusiond::emulation

using namespace fusiond::emulation;  // NOLINT(google-build-using-namespace): the C side of the file

void fde_mbarrier_init(void* address, unsigned arrivals, fde_site at) {
  Quiet quiet;
  Machine& m = Machine::Get();
  Cta& cta = *Machine::Self().home;
  if (FindBlock(cta, address, 8) == nullptr) m.Fail("an mbarrier outside shared memory", at);
  if (reinterpret_cast<uint64_t>(address) % 8 != 0) m.Fail("an mbarrier not aligned to 8", at);
  if (arrivals == 0 || arrivals > kMost) m.Fail("an mbarrier of 0 or too many arrivals", at);
  memcpy(address, &kMark, sizeof(kMark));
  Mbarrier fresh;
  fresh.arrivals = fresh.pending = arrivals;
  if (!cta.mbarriers.emplace(address, fresh).second)
    m.Fail("an mbarrier is initialised a second time", at);
  m.Pause();
}

void fde_mbarrier_init_fence() {
  Quiet quiet;
  for (auto& [address, barrier] : Machine::Self().home->mbarriers) barrier.fenced = true;
}

void fde_mbarrier_arrive(void* address, unsigned bytes, fde_site at) {
  Quiet quiet;
  Machine& m = Machine::Get();
  Mbarrier& barrier = FindMbarrier(*Machine::Self().home, address, at);
  if (barrier.pending == 0) m.Fail("more arrivals at an mbarrier than it counts", at);
  if (bytes > kMost || barrier.bytes + bytes > kMost) m.Fail("too many bytes for one phase", at);
  Release(&barrier.token[barrier.phase & 1]);
  barrier.bytes += bytes;
  barrier.pending--;
  Settle(barrier);
  m.Pause();
}

bool fde_mbarrier_ended(void* address, unsigned parity, fde_site at) {
  Quiet quiet;
  Thread& self = Machine::Self();
  Mbarrier& barrier = FindMbarrier(*self.home, address, at);
  if ((barrier.phase & 1) != parity) {
    Acquire(&barrier.token[parity]);
    Machine::Get().Pause();
    return true;
  }
  self.polled = true;
  self.doing = "fd_mbarrier_ended";
  self.at = at;
  Fiber::Suspend();
  return false;
}

void fde_mbarrier_wait(void* address, unsigned parity, fde_site at) {
  Quiet quiet;
  Machine& m = Machine::Get();
  Thread& self = Machine::Self();
  if (parity > 1) m.Fail("a parity is 0 or 1", at);
  const uint64_t question = reinterpret_cast<uint64_t>(address) | parity;
  const uint64_t* questions = MeetInWarp(~0u, question, "fd_mbarrier_wait", false, at);
  for (int lane = 0; lane < 32; lane++) {
    if (questions[lane] != question) m.Fail("lanes of a warp wait for different phases", at);
  }
  Mbarrier& barrier = FindMbarrier(*self.home, address, at);
  const uint64_t phase = barrier.phase;
  if ((phase & 1) == parity) {
    self.waits_for = &barrier;
    m.WaitWhile(&barrier.phase, phase, "fd_mbarrier_wait", at);
    if (barrier.phase != phase + 1)
      m.Fail("a phase ended before its waiters were done with the last", at);
  }
  Acquire(&barrier.token[parity]);
}
