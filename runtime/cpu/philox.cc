#include "runtime/cpu/philox.h"

namespace fusiond::cpu {
namespace {

constexpr int kRounds = 10;
constexpr uint64_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57};
constexpr uint32_t kWeyl[] = {0x9E3779B9, 0xBB67AE85};  // golden ratio, √3 - 1

}  // namespace

PhiloxBlock Philox(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t first = kMultipliers[0] * counter[0];
    const uint64_t second = kMultipliers[1] * counter[2];
    counter = {
        static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += kWeyl[0];
    key[1] += kWeyl[1];
  }
  return counter;
}

uint32_t RandomBits(uint64_t index, uint64_t seed, uint64_t offset) {
  const uint64_t block = index / 4 + offset / 4;
  const PhiloxBlock words =
      Philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return words[index % 4];
}

}  // namespace fusiond::cpu
