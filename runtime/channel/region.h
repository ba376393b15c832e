// Makes, maps and checks the two shared regions of a ring.
//
// Thread-safety: functions are thread-safe; the structs are thread-compatible. Ownership: whoever
// holds the struct owns mapping and descriptor; ring ends point into the mappings and must not
// outlive them.
#ifndef FUSIOND_RUNTIME_CHANNEL_REGION_H_
#define FUSIOND_RUNTIME_CHANNEL_REGION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/memfd.h"
#include "runtime/channel/layout.h"

namespace fusiond::channel {

struct RingGeometry {
  uint32_t entries = 256;            // of both rings; power of two in [2, kMaxRingEntries]
  uint32_t slab_bytes = 256u << 10;  // multiple of 4096 in [4096, kMaxSlabBytes]
};

inline constexpr uint32_t kMaxRingEntries = 4096;
inline constexpr uint32_t kMaxSlabBytes = 4u << 20;

// INVALID_ARGUMENT naming field, limit and actual value.
absl::Status CheckGeometry(const RingGeometry& geometry);

size_t RegionABytes(const RingGeometry& geometry);
size_t RegionBBytes(const RingGeometry& geometry);

// Where things stand inside mapped memory. The ring ends are built from these.
struct RegionA {
  ClientControl* control;
  SubmissionEntry* entries;
  char* slab;
};
struct RegionB {
  WorkerControl* control;
  CompletionEntry* entries;
};
struct ReadOnlyRegionB {
  const WorkerControl* control;
  const CompletionEntry* entries;
};

// Fills fresh, zeroed memory of RegionABytes / RegionBBytes, 128-byte aligned.
RegionA FormatRegionA(char* memory, const RingGeometry& geometry, uint64_t epoch,
                      uint64_t features);
RegionB FormatRegionB(char* memory, const RingGeometry& geometry, uint64_t epoch,
                      uint64_t features);

// The worker's side: creates, formats and seals. RESOURCE_EXHAUSTED when shared memory is full;
// nothing is left behind then.
struct WorkerRegions {
  base::SharedMemory memory_a;
  base::SharedMemory memory_b;
  RegionA a;
  RegionB b;
};
absl::StatusOr<WorkerRegions> CreateRegions(const RingGeometry& geometry, uint64_t epoch,
                                            uint64_t features);

// The client's side: checks seals, sizes, magic, versions and every struct size before use.
// FAILED_PRECONDITION names what differs.
struct ClientRegions {
  base::Mapping mapping_a;
  base::Mapping mapping_b;
  RegionA a;
  ReadOnlyRegionB b;
  uint64_t epoch;
};
absl::StatusOr<ClientRegions> MapRegions(int fd_a, int fd_b, const RingGeometry& geometry);

}  // namespace fusiond::channel

#endif  // FUSIOND_RUNTIME_CHANNEL_REGION_H_
