// Barriers of a CTA and of a cluster, exchanges inside a warp, dependent launch.
#include <cstdint>

#include "tests/emulation/runtime/annotations.h"
#include "tests/emulation/runtime/machine.h"

namespace fusiond::emulation {
namespace {

std::string Lane(uint32_t lanes) { return "lane " + std::to_string(__builtin_ctz(lanes)); }

void Complete(Meeting& meeting) {
  meeting.arrived = 0;
  meeting.generation++;
}

void Arrive(Meeting& meeting, uint32_t wanted, fde_site at) {
  Release(&meeting.token[meeting.generation & 1]);
  if (meeting.arrived++ == 0) meeting.at = at;
  if (meeting.arrived == wanted) Complete(meeting);
}

void Await(Meeting& meeting, uint64_t generation, const char* doing, fde_site at) {
  Machine::Get().WaitWhile(&meeting.generation, generation, doing, at);
  Acquire(&meeting.token[generation & 1]);
}

uint32_t LiveThreads(const Cluster& cluster) {
  uint32_t live = 0;
  for (auto& cta : cluster.ctas) live += cta->live;
  return live;
}

WarpMeeting& MeetingOf(Warp& warp, uint32_t mask) {
  for (WarpMeeting& meeting : warp.meetings)
    if (meeting.mask == mask) return meeting;
  warp.meetings.emplace_back().mask = mask;
  return warp.meetings.back();
}

// What must hold when the running lane joins a meeting of `mask`.
void CheckLane(const Warp& warp, const WarpMeeting& mine, const char* what, fde_site at) {
  Machine& m = Machine::Get();
  const uint32_t self = 1u << Machine::Self().lane;
  if (!(mine.mask & self)) m.Fail(std::string(what) + " by a lane outside its own mask", at);
  if (const uint32_t absent = mine.mask & ~warp.members)
    m.Fail(std::string(what) + " waits for " + Lane(absent) + ", which has returned", at);
  for (const WarpMeeting& other : warp.meetings) {
    if (&other != &mine && other.arrived != 0 && other.mask & self)
      m.Fail(std::string(what) + " with another mask than that of the lanes at " + Place(other.at),
             at);
  }
  if (mine.arrived != 0 && (!SamePlace(mine.at, at) || mine.what != what))
    m.Fail(std::string(what) + " meets another one: " + mine.what + " at " + Place(mine.at), at);
}

}  // namespace

const uint64_t* MeetInWarp(uint32_t mask, uint64_t value, const char* what, bool ordered,
                           fde_site at) {
  Thread& self = Machine::Self();
  Warp& warp = self.home->warps[self.index / 32];
  WarpMeeting& meeting = MeetingOf(warp, mask);
  CheckLane(warp, meeting, what, at);
  const uint64_t generation = meeting.generation;
  if (meeting.arrived == 0) {
    meeting.at = at;
    meeting.what = what;
  }
  meeting.value[generation & 1][self.lane] = value;
  meeting.arrived |= 1u << self.lane;
  if (ordered) Release(&meeting.token[generation & 1]);
  if (meeting.arrived == mask) {
    meeting.arrived = 0;
    meeting.generation++;
  }
  Machine::Get().WaitWhile(&meeting.generation, generation, what, at);
  if (ordered) Acquire(&meeting.token[generation & 1]);
  return meeting.value[generation & 1];
}

void Machine::LeaveMeetings(Thread& thread) {
  Cta& cta = *thread.home;
  Warp& warp = cta.warps[thread.index / 32];
  warp.members &= ~(1u << thread.lane);
  for (const WarpMeeting& meeting : warp.meetings) {
    if (meeting.arrived != 0 && meeting.mask >> thread.lane & 1)
      Fail("a lane returns while others wait for it in " + std::string(meeting.what) + " at " +
               Place(meeting.at),
           thread.at);
  }
  if (thread.arrived_at_cluster)
    Fail("a thread returns between fd_cluster_arrive and fd_cluster_wait", thread.at);
  Meeting& barrier = cta.barriers[0];
  if (barrier.arrived != 0 && barrier.arrived == cta.live) Complete(barrier);
  Meeting& whole = cta.cluster->barrier;
  if (whole.arrived != 0 && whole.arrived == LiveThreads(*cta.cluster)) Complete(whole);
}

}  // namespace fusiond::emulation

using namespace fusiond::emulation;  // NOLINT(google-build-using-namespace): the C side of the file

void fde_fail(const char* what, fde_site at) {
  Quiet quiet;
  Machine::Get().Fail(what, at);
}

void fde_sync(fde_site at) {
  Quiet quiet;
  Cta& cta = *Machine::Self().home;
  Meeting& barrier = cta.barriers[0];
  if (barrier.arrived != 0 && !SamePlace(barrier.at, at))
    Machine::Get().Fail(
        "fd_sync, while others of the CTA are at another one at " + Place(barrier.at), at);
  const uint64_t generation = barrier.generation;
  Arrive(barrier, cta.live, at);
  Await(barrier, generation, "fd_sync", at);
}

void fde_sync_named(unsigned id, unsigned threads, bool wait, fde_site at) {
  Quiet quiet;
  Machine& m = Machine::Get();
  Cta& cta = *Machine::Self().home;
  if (id < 1 || id > 15) m.Fail("a named barrier is 1 to 15", at);
  if (threads == 0 || threads % 32 != 0 || threads > cta.threads.size())
    m.Fail("a named barrier takes a multiple of 32 threads, at most the CTA's", at);
  Meeting& barrier = cta.barriers[id];
  if (barrier.arrived != 0 && cta.expected[id] != threads)
    m.Fail("a named barrier for " + std::to_string(threads) + " threads; those at " +
               Place(barrier.at) + " expect " + std::to_string(cta.expected[id]),
           at);
  cta.expected[id] = threads;
  const uint64_t generation = barrier.generation;
  Arrive(barrier, threads, at);
  if (!wait) return m.Pause();
  Await(barrier, generation, "fd_sync_named", at);
}

void fde_sync_warp(unsigned mask, fde_site at) {
  Quiet quiet;
  MeetInWarp(mask, 0, "fd_sync_warp", true, at);
}

unsigned long long fde_shuffle(unsigned long long value, unsigned source, unsigned mask,
                               fde_site at) {
  Quiet quiet;
  if (!(mask >> source & 1)) Machine::Get().Fail("a shuffle from a lane outside its mask", at);
  return MeetInWarp(mask, value, "a shuffle", false, at)[source];
}

unsigned fde_ballot(bool value, unsigned mask, fde_site at) {
  Quiet quiet;
  const uint64_t* votes = MeetInWarp(mask, value, "a vote", false, at);
  unsigned set = 0;
  for (unsigned lane = 0; lane < 32; lane++) {
    if (mask >> lane & 1 && votes[lane] != 0) set |= 1u << lane;
  }
  return set;
}

unsigned fde_cluster_rank() { return Machine::Self().home->rank; }

void fde_cluster_arrive(fde_site at) {
  Quiet quiet;
  Thread& self = Machine::Self();
  Cluster& cluster = *self.home->cluster;
  if (self.arrived_at_cluster)
    Machine::Get().Fail("fd_cluster_arrive twice without fd_cluster_wait", at);
  self.arrived_at_cluster = true;
  self.cluster_generation = cluster.barrier.generation;
  Arrive(cluster.barrier, LiveThreads(cluster), at);
  Machine::Get().Pause();
}

void fde_cluster_wait(fde_site at) {
  Quiet quiet;
  Thread& self = Machine::Self();
  if (!self.arrived_at_cluster)
    Machine::Get().Fail("fd_cluster_wait without fd_cluster_arrive", at);
  Await(self.home->cluster->barrier, self.cluster_generation, "fd_cluster_wait", at);
  self.arrived_at_cluster = false;
}

void fde_wait_primary(fde_site at) {
  Quiet quiet;
  Grid* primary = Machine::Self().home->grid->primary;
  if (primary == nullptr) return;
  while (primary->unfinished != 0)
    Machine::Get().WaitWhile(&primary->unfinished, primary->unfinished, "fd_wait_primary", at);
  Acquire(&primary->token);
}

void fde_launch_dependents(fde_site) {
  Quiet quiet;
  Thread& self = Machine::Self();
  Machine::Get().Trigger(*self.home);
  // From here on dependents run beside this grid; descending order lets them run first.
  self.stalled = Machine::Get().interleaving().order == Order::kDescending;
  Fiber::Suspend();
}
