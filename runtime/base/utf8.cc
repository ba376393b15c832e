#include "runtime/base/utf8.h"

#include <cstdint>

namespace fusiond::base {
namespace {

// Length of the valid character that `text` starts with; 0 when it starts with none. Overlong
// forms, surrogates and values above U+10FFFF are invalid.
size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  uint8_t low = 0x80, high = 0xbf;  // of the second byte
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return length;
}

}  // namespace

std::string ToUtf8(absl::string_view text, size_t max_bytes) {
  std::string result;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const absl::string_view character = length > 0 ? text.substr(0, length) : "?";
    if (result.size() + character.size() > max_bytes) return result + " …";
    result.append(character.data(), character.size());
    text.remove_prefix(length > 0 ? length : 1);
  }
  return result;
}

}  // namespace fusiond::base
