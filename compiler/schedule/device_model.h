// What schedulers derive from a DeviceInfo and a region: bytes on the way, bytes moved, time.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_COMPILER_SCHEDULE_DEVICE_MODEL_H_
#define FUSIOND_COMPILER_SCHEDULE_DEVICE_MODEL_H_

#include "compiler/schedule/region.h"
#include "runtime/executable/device_info.h"

namespace fusiond::schedule {

// Bytes that an SM must have outstanding to keep DRAM busy: one microsecond of its share of the
// sheet rate (README, figure "in flight").
int64_t InFlightBytes(const executable::DeviceInfo& device);

// Bytes of a tensor that a pass over the region touches (expanded dims count once).
int64_t TouchedBytes(const Region& region, const Access& access);
// All loads and stores once.
int64_t TouchedBytes(const Region& region);

// t0 + bytes / (0.97 · copy rate), copy at 90 % of the sheet rate, t0 = 1.5 µs a kernel (README,
// figures "copy" and "time").
double Microseconds(const executable::DeviceInfo& device, int64_t dram_bytes, int kernels);
// As that for kernels of `ctas` CTAs, each of which moves at most 40 GB/s: 32 KB on the way (512
// threads with four vectors of 16 bytes) for 0.8 µs.
double Microseconds(const executable::DeviceInfo& device, int64_t dram_bytes, int kernels,
                    int64_t ctas);

// Elements side by side: 16 bytes of the narrowest tensor among the varying ones, the widest taking
// at most two such vectors.
int VectorElements(const Region& region);

// Bytes in memory of one element of each load that varies along some dim.
int64_t VaryingLoadBytes(const Region& region);

// Issue slots of computing one element of everything that varies along some dim.
int SlotsPerElement(const Region& region);

// Whether some tensor's offset, or an index up to `elements`, needs more than 31 bits.
bool NeedsWideIndex(const Region& region, int64_t elements);

// Row-major strides of the region's dims.
Strides DenseStrides(const Region& region);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_DEVICE_MODEL_H_
