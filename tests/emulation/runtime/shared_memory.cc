// Shared memory: each buffer of a CTA's arena is an allocation of its own, so that what leaves one
// buffer is found even where the arena goes on.
#include <cstdlib>
#include <cstring>

#include "tests/emulation/runtime/annotations.h"
#include "tests/emulation/runtime/machine.h"

namespace fusiond::emulation {
namespace {

// The arena's alignment. A buffer's address has the remainder that its offset gives it, no more.
constexpr uint64_t kArenaAlignment = 1024;
#ifdef FDE_ASAN
constexpr uint64_t kTail = 0;  // AddressSanitizer watches the end
#else
constexpr uint64_t kTail = 256;  // NaN too; checked when the CTA is gone
#endif

}  // namespace

const Block* FindBlock(const Cta& cta, const void* p, uint64_t bytes) {
  const char* begin = static_cast<const char*>(p);
  for (const Block& block : cta.blocks) {
    if (begin >= block.data && begin + bytes <= block.data + block.bytes) return &block;
  }
  return nullptr;
}

Block& GetBlock(Cta& cta, uint32_t offset, uint64_t bytes, fde_site at) {
  Machine& m = Machine::Get();
  const std::string name =
      "the shared buffer [" + std::to_string(offset) + ", " + std::to_string(offset + bytes) + ")";
  for (Block& block : cta.blocks) {
    if (block.offset == offset && block.bytes == bytes) return block;
    if (offset < block.offset + block.bytes && block.offset < offset + bytes)
      m.Fail(name + " overlaps [" + std::to_string(block.offset) + ", " +
                 std::to_string(block.offset + block.bytes) + ")",
             at);
  }
  if (offset + bytes > cta.grid->launch->smem_bytes)
    m.Fail(name + " leaves the " + std::to_string(cta.grid->launch->smem_bytes) + " bytes launched",
           at);
  Block block{offset, bytes, nullptr, nullptr};
  const uint64_t lead = offset % kArenaAlignment;
  void* p = nullptr;
  if (posix_memalign(&p, kArenaAlignment, lead + bytes + kTail) != 0) abort();
  block.allocation = static_cast<char*>(p);
  block.data = block.allocation + lead;
  memset(block.allocation, 0xff, lead + bytes + kTail);
  Forbid(block.allocation, lead);
  cta.blocks.push_back(block);
  return cta.blocks.back();
}

std::string FreeBlocks(Cta& cta) {
  std::string damage;
  for (Block& block : cta.blocks) {
    for (uint64_t i = 0; i < kTail; i++) {
      if (static_cast<unsigned char>(block.data[block.bytes + i]) != 0xff)
        damage = "a byte was written " + std::to_string(i) + " bytes past the shared buffer at " +
                 std::to_string(block.offset);
    }
    Allow(block.allocation, block.data - block.allocation);
    free(block.allocation);
  }
  cta.blocks.clear();
  return damage;
}

}  // namespace fusiond::emulation

using namespace fusiond::emulation;  // NOLINT(google-build-using-namespace): the C side of the file

void* fde_smem(unsigned offset, unsigned long long bytes, unsigned alignment, fde_site at) {
  Quiet quiet;
  if (offset % (alignment < 16 ? 16 : alignment) != 0)
    Machine::Get().Fail("a shared buffer at an offset that is no multiple of 16 or its alignment",
                        at);
  return GetBlock(*Machine::Self().home, offset, bytes, at).data;
}

void* fde_cluster_map(void* shared, unsigned rank, fde_site at) {
  Quiet quiet;
  Machine& m = Machine::Get();
  Cta& home = *Machine::Self().home;
  Cluster& cluster = *home.cluster;
  if (rank >= cluster.ctas.size()) m.Fail("no CTA of rank " + std::to_string(rank), at);
  if (cluster.barrier.generation == 0)
    m.Fail("another CTA's shared memory before the first fd_cluster_sync", at);
  Cta& other = *cluster.ctas[rank];
  if (other.live == 0) m.Fail("the shared memory of a CTA that has ended", at);
  const Block* block = FindBlock(home, shared, 1);
  if (block == nullptr) m.Fail("fd_cluster_map of an address outside shared memory", at);
  // Found by offset, for `blocks` may grow when both are one CTA.
  const int64_t inside = static_cast<char*>(shared) - block->data;
  return GetBlock(other, block->offset, block->bytes, at).data + inside;
}
