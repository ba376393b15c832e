// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78): detects damaged records. Not a defence
// against forgery. Source: RFC 3720 appendix B.4. Thread-safe; uses the SSE 4.2 instruction where
// the processor has it.
#ifndef FUSIOND_RUNTIME_BASE_CRC32C_H_
#define FUSIOND_RUNTIME_BASE_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace fusiond::base {

// CRC of `data`; pass an earlier result as `crc` to continue it.
uint32_t Crc32c(absl::string_view data, uint32_t crc = 0);

}  // namespace fusiond::base

#endif  // FUSIOND_RUNTIME_BASE_CRC32C_H_
