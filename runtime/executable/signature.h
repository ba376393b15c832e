// Signature: what of the inputs goes into a key. Per input, in order: dtype, rank, memory space
// and, for each symbolic dim, its extent. Strides, alignment and divisibility are guards of the
// executable and never part of a key.
#ifndef FUSIOND_RUNTIME_EXECUTABLE_SIGNATURE_H_
#define FUSIOND_RUNTIME_EXECUTABLE_SIGNATURE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/executable/executable.h"

namespace fusiond::executable {

struct SignatureInput {
  DType dtype = DType::kFloat;
  bool scalar = false;
  MemorySpace space = MemorySpace::kDevice;
  // One entry a dim; nullopt where the graph states the extent, so that it is not repeated.
  std::vector<std::optional<int64_t>> extents;
  bool operator==(const SignatureInput&) const = default;
};

struct Signature {
  std::vector<SignatureInput> inputs;

  // Versioned bytes for keys and records; "bf16[2048,8192], f32[2048,.]" for people.
  std::string Encode() const;
  static absl::StatusOr<Signature> Decode(absl::string_view bytes);
  std::string ToString() const;
  bool operator==(const Signature&) const = default;
};

}  // namespace fusiond::executable

#endif  // FUSIOND_RUNTIME_EXECUTABLE_SIGNATURE_H_
