#include "tests/support/kernel_code.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

namespace fusiond::testing {
namespace {

template <class T>
T At(const std::string& bytes, uint64_t offset) {
  T value{};
  if (offset <= bytes.size() && bytes.size() - offset >= sizeof(T))
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace

std::string KernelCode(const std::string& cubin, const std::string& kernel) {
  const auto header = At<Elf64_Ehdr>(cubin, 0);
  const auto section = [&](int i) {
    return At<Elf64_Shdr>(cubin, header.e_shoff + static_cast<uint64_t>(i) * header.e_shentsize);
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (int i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr code = section(i);
    if (cubin.c_str() + names.sh_offset + code.sh_name == ".text." + kernel)
      return cubin.substr(code.sh_offset, code.sh_size);
  }
  return "";
}

}  // namespace fusiond::testing
