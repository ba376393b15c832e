#include "tests/emulation/runtime/tensors.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "tests/emulation/runtime/annotations.h"

namespace fusiond::emulation {
namespace {

constexpr uint64_t kPage = 4096;
constexpr unsigned char kFiller = 0xc5;

[[maybe_unused]] uint64_t RoundUp(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

}  // namespace

Tensors::Tensors(const std::vector<Tensor>& tensors) : tensors_(tensors) {
  for (const Tensor& tensor : tensors) {
    const uint64_t bytes = tensor.bytes.size(), alignment = tensor.alignment;
    Range range{nullptr, bytes, nullptr, 0, 0};
#ifdef FDE_ASAN
    // The address is an odd multiple of the alignment, the end malloc's.
    void* p = nullptr;
    if (posix_memalign(&p, 2 * alignment < 16 ? 16 : 2 * alignment, alignment + bytes) != 0)
      abort();
    range.allocation = static_cast<char*>(p);
    range.data = range.allocation + alignment;
    range.allocated = alignment;
    Forbid(range.allocation, alignment);
#else
    const uint64_t usable = RoundUp(bytes + 2 * alignment, kPage);
    range.mapped = usable + kPage;
    void* p =
        mmap(nullptr, range.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(static_cast<char*>(p) + usable, kPage, PROT_NONE) != 0) abort();
    range.allocation = static_cast<char*>(p);
    range.allocated = usable;
    uint64_t begin = (usable - bytes) / alignment * alignment;
    if (alignment < kPage && begin / alignment % 2 == 0) begin -= alignment;
    range.data = range.allocation + begin;
#endif
    ranges_.push_back(range);
  }
}

Tensors::~Tensors() {
  for (const Range& range : ranges_) {
    if (range.mapped != 0) {
      munmap(range.allocation, range.mapped);
    } else {
      free(range.allocation);
    }
  }
}

void Tensors::Fill() {
  for (size_t i = 0; i < ranges_.size(); i++) {
    if (ranges_[i].mapped != 0) memset(ranges_[i].allocation, kFiller, ranges_[i].allocated);
    memcpy(ranges_[i].data, tensors_[i].bytes.data(), ranges_[i].bytes);
  }
}

std::string Tensors::Contents(size_t tensor) const {
  return std::string(ranges_[tensor].data, ranges_[tensor].bytes);
}

bool Tensors::Hold(const void* p, uint64_t bytes) const {
  const uint64_t begin = reinterpret_cast<uint64_t>(p);
  for (const Range& range : ranges_) {
    const uint64_t data = reinterpret_cast<uint64_t>(range.data);
    if (begin >= data && begin + bytes <= data + range.bytes) return true;
  }
  return false;
}

std::string Tensors::Describe(const void* p) const {
  for (size_t i = 0; i < ranges_.size(); i++) {
    const int64_t offset = static_cast<const char*>(p) - ranges_[i].data;
    const int64_t past = offset - static_cast<int64_t>(ranges_[i].bytes);
    if (offset < 0 && offset >= -static_cast<int64_t>(kPage))
      return std::to_string(-offset) + " bytes before tensor " + std::to_string(i);
    if (offset >= 0 && past < static_cast<int64_t>(kPage))
      return past < 0 ? "inside tensor " + std::to_string(i)
                      : std::to_string(past) + " bytes past the end of tensor " + std::to_string(i);
  }
  return "";
}

std::string Tensors::CheckSurroundings() const {
  for (const Range& range : ranges_) {
    if (range.mapped == 0) continue;
    for (uint64_t i = 0; i < range.allocated; i++) {
      const char* p = range.allocation + i;
      if (p == range.data) i += range.bytes, p += range.bytes;
      if (i < range.allocated && static_cast<unsigned char>(*p) != kFiller)
        return "a byte was written " + Describe(p);
    }
  }
  return "";
}

}  // namespace fusiond::emulation
