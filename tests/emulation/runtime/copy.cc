// Asynchronous copies into shared memory.
#include <cstdint>
#include <cstring>

#include "tests/emulation/runtime/annotations.h"
#include "tests/emulation/runtime/machine.h"

namespace fusiond::emulation {
namespace {

void CheckCopy(const Cta& cta, const void* to, const void* from, uint64_t bytes, uint64_t written,
               fde_site at) {
  Machine& m = Machine::Get();
  const uint64_t bits = reinterpret_cast<uint64_t>(to) | reinterpret_cast<uint64_t>(from) | written;
  if (bits % 16 != 0) m.Fail("a copy whose addresses or size are no multiples of 16", at);
  if (FindBlock(cta, to, written) == nullptr) m.Fail("a copy to outside one shared buffer", at);
  if (bytes != 0 && !m.tensors().Hold(from, bytes))
    m.Fail("a copy from outside one tensor: ends " +
               m.tensors().Describe(static_cast<const char*>(from) + bytes),
           at);
}

}  // namespace
}  // namespace fusiond::emulation

using namespace fusiond::emulation;  // NOLINT(google-build-using-namespace): the C side of the file

void fde_copy16(void* shared, const void* global, unsigned bytes, fde_site at) {
  Quiet quiet;
  Machine& m = Machine::Get();
  Thread& self = Machine::Self();
  if (bytes > 16) m.Fail("more than 16 bytes in a copy of 16", at);
  CheckCopy(*self.home, shared, global, bytes, 16, at);
  Copy copy;
  copy.to = shared;
  copy.from = global;
  copy.bytes = bytes;
  copy.cleared = 16 - bytes;
  copy.cta = self.home;
  copy.issued = &self.issue_token;
  copy.landed = &self.landed_token;
  Release(copy.issued);
  if (m.interleaving().late_copies) {
    memset(shared, 0xff, 16);
  } else {
    m.Perform(copy);
  }
  self.open.push_back(copy);
  m.Pause();
}

void fde_copy_commit() {
  Quiet quiet;
  Thread& self = Machine::Self();
  self.groups.push_back(std::move(self.open));
  self.open.clear();
}

void fde_copy_wait(unsigned pending, fde_site) {
  Quiet quiet;
  Thread& self = Machine::Self();
  while (self.groups.size() > pending) {
    for (Copy& copy : self.groups.front()) {
      if (!copy.done) Machine::Get().Perform(copy);
    }
    self.groups.pop_front();
  }
  Acquire(&self.landed_token);
  Machine::Get().Pause();
}

void fde_copy_bulk(void* shared, const void* global, unsigned bytes, void* address, fde_site at) {
  Quiet quiet;
  Machine& m = Machine::Get();
  Thread& self = Machine::Self();
  CheckCopy(*self.home, shared, global, bytes, bytes, at);
  Mbarrier& barrier = FindMbarrier(*self.home, address, at);
  if (!barrier.fenced) m.Fail("a copy on an mbarrier that no fd_mbarrier_init_fence followed", at);
  Copy copy;
  copy.to = shared;
  copy.from = global;
  copy.bytes = bytes;
  copy.cta = self.home;
  copy.barrier = &barrier;
  copy.issued = &self.issue_token;
  copy.landed = &barrier.token[barrier.phase & 1];
  Release(copy.issued);
  m.Issue(copy);
}

void fde_store_remote(void* shared, const void* value, unsigned bytes, unsigned rank, void* address,
                      fde_site at) {
  Quiet quiet;
  Machine& m = Machine::Get();
  Thread& self = Machine::Self();
  Copy copy;
  copy.to = fde_cluster_map(shared, rank, at);
  if (reinterpret_cast<uint64_t>(copy.to) % bytes != 0) m.Fail("a remote store not aligned", at);
  copy.bytes = bytes;
  memcpy(&copy.value, value, bytes);
  copy.cta = self.home->cluster->ctas[rank].get();
  Mbarrier& barrier = FindMbarrier(*copy.cta, fde_cluster_map(address, rank, at), at);
  if (!barrier.fenced) m.Fail("a remote store on an mbarrier without fd_mbarrier_init_fence", at);
  copy.barrier = &barrier;
  copy.issued = &self.issue_token;
  copy.landed = &barrier.token[barrier.phase & 1];
  Release(copy.issued);
  m.Issue(copy);
}
