#include "runtime/base/crc32c.h"

#include <array>
#include <cstring>

namespace fusiond::base {
namespace {

constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? (c >> 1) ^ 0x82F63B78u : c >> 1;
    table[i] = c;
  }
  return table;
}();

uint32_t ExtendPortable(const char* p, size_t n, uint32_t crc) {
  for (; n > 0; ++p, --n) crc = kTable[(crc ^ static_cast<uint8_t>(*p)) & 0xff] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendSse42(const char* p, size_t n, uint32_t crc) {
  uint64_t wide = crc;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof(word));
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; n > 0; ++p, --n) crc = __builtin_ia32_crc32qi(crc, static_cast<uint8_t>(*p));
  return crc;
}
#endif

}  // namespace

uint32_t Crc32c(absl::string_view data, uint32_t crc) {
  crc = ~crc;
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2");
  if (has_sse42) return ~ExtendSse42(data.data(), data.size(), crc);
#endif
  return ~ExtendPortable(data.data(), data.size(), crc);
}

}  // namespace fusiond::base
