// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011. Pure functions, thread-safe.
#ifndef FUSIOND_RUNTIME_CPU_PHILOX_H_
#define FUSIOND_RUNTIME_CPU_PHILOX_H_

#include <array>
#include <cstdint>

namespace fusiond::cpu {

using PhiloxBlock = std::array<uint32_t, 4>;

PhiloxBlock Philox(PhiloxBlock counter, std::array<uint32_t, 2> key);

// What op random_bits computes: word `index` modulo 4 of block index / 4 + offset / 4, whose number
// is the counter's lower half, under the key `seed`. All three are taken as unsigned.
uint32_t RandomBits(uint64_t index, uint64_t seed, uint64_t offset);

}  // namespace fusiond::cpu

#endif  // FUSIOND_RUNTIME_CPU_PHILOX_H_
