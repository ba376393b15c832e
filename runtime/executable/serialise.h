// Executable ↔ bytes. Deterministic: equal executables give equal bytes, hence equal digests.
#ifndef FUSIOND_RUNTIME_EXECUTABLE_SERIALISE_H_
#define FUSIOND_RUNTIME_EXECUTABLE_SERIALISE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/sha256.h"
#include "runtime/executable/executable.h"

namespace fusiond::executable {

std::string Serialise(const Executable& executable);
// INVALID_ARGUMENT for bytes that are no executable, break a rule of Validate, or have another
// version (both named).
absl::StatusOr<Executable> Deserialise(absl::string_view bytes);
// Every index in range, every formula well-formed, entry names and counts within limits.
absl::Status Validate(const Executable& executable);
// Guards alone, for the record that leads from a request to an executable.
std::string SerialiseGuards(const std::vector<Guard>& guards);
absl::StatusOr<std::vector<Guard>> DeserialiseGuards(absl::string_view bytes);
// SHA-256 of the serialised form.
base::Digest ExecutableDigest(absl::string_view serialised);

}  // namespace fusiond::executable

#endif  // FUSIOND_RUNTIME_EXECUTABLE_SERIALISE_H_
