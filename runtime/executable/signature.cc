#include "runtime/executable/signature.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace fusiond::executable {
namespace {

constexpr uint32_t kEncodingVersion = 1;
constexpr uint32_t kMaxInputs = 4096;
constexpr uint8_t kMaxRank = 8;

void Put(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

absl::StatusOr<uint64_t> Take(absl::string_view* bytes, size_t count) {
  if (bytes->size() < count) return absl::InvalidArgumentError("signature: cut short");
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value |= uint64_t{static_cast<uint8_t>((*bytes)[i])} << (8 * i);
  bytes->remove_prefix(count);
  return value;
}

enum Flags : uint8_t { kScalarFlag = 1, kHostFlag = 2 };

absl::StatusOr<SignatureInput> TakeInput(absl::string_view* bytes) {
  SignatureInput input;
  FUSIOND_ASSIGN_OR_RETURN(uint64_t dtype, Take(bytes, 1));
  FUSIOND_ASSIGN_OR_RETURN(uint64_t flags, Take(bytes, 1));
  FUSIOND_ASSIGN_OR_RETURN(uint64_t rank, Take(bytes, 1));
  if (dtype < 1 || dtype > static_cast<uint64_t>(DType::kDouble) || flags > 3 || rank > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat("signature: dtype ", dtype, ", flags ", flags,
                                                   ", rank ", rank, " out of range"));
  }
  input.dtype = static_cast<DType>(dtype);
  input.scalar = (flags & kScalarFlag) != 0;
  input.space = (flags & kHostFlag) != 0 ? MemorySpace::kHost : MemorySpace::kDevice;
  for (uint64_t d = 0; d < rank; ++d) {
    FUSIOND_ASSIGN_OR_RETURN(uint64_t present, Take(bytes, 1));
    FUSIOND_ASSIGN_OR_RETURN(uint64_t extent, Take(bytes, 8));
    if (present > 1 || (present == 0 && extent != 0)) {
      return absl::InvalidArgumentError("signature: malformed extent");
    }
    input.extents.push_back(present == 1 ? std::make_optional(static_cast<int64_t>(extent))
                                         : std::nullopt);
  }
  return input;
}

}  // namespace

std::string Signature::Encode() const {
  std::string out;
  Put(kEncodingVersion, 4, &out);
  Put(inputs.size(), 4, &out);
  for (const SignatureInput& input : inputs) {
    Put(static_cast<uint8_t>(input.dtype), 1, &out);
    Put((input.scalar ? kScalarFlag : 0) | (input.space == MemorySpace::kHost ? kHostFlag : 0), 1,
        &out);
    Put(input.extents.size(), 1, &out);
    for (const std::optional<int64_t>& extent : input.extents) {
      Put(extent.has_value() ? 1 : 0, 1, &out);
      Put(static_cast<uint64_t>(extent.value_or(0)), 8, &out);
    }
  }
  return out;
}

absl::StatusOr<Signature> Signature::Decode(absl::string_view bytes) {
  FUSIOND_ASSIGN_OR_RETURN(uint64_t version, Take(&bytes, 4));
  if (version != kEncodingVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("signature: version ", kEncodingVersion, " expected, is ", version));
  }
  FUSIOND_ASSIGN_OR_RETURN(uint64_t count, Take(&bytes, 4));
  if (count > kMaxInputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("signature: limit is ", kMaxInputs, " inputs, has ", count));
  }
  Signature signature;
  for (uint64_t i = 0; i < count; ++i) {
    FUSIOND_ASSIGN_OR_RETURN(SignatureInput input, TakeInput(&bytes));
    signature.inputs.push_back(std::move(input));
  }
  if (!bytes.empty()) return absl::InvalidArgumentError("signature: bytes left over");
  return signature;
}

std::string Signature::ToString() const {
  return absl::StrJoin(inputs, ", ", [](std::string* out, const SignatureInput& input) {
    absl::StrAppend(out, base::DTypeName(input.dtype));
    if (input.scalar) return;
    absl::StrAppend(out, "[",
                    absl::StrJoin(input.extents, ",",
                                  [](std::string* o, const std::optional<int64_t>& extent) {
                                    absl::StrAppend(o, extent ? absl::StrCat(*extent) : ".");
                                  }),
                    "]", input.space == MemorySpace::kHost ? "@host" : "");
  });
}

}  // namespace fusiond::executable
