#include "server/cache/nvrtc_identity.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/crc32c.h"
#include "runtime/base/file.h"
#include "server/cache/fields.h"

namespace fusiond::cache {
namespace {

constexpr absl::string_view kMagic = "fusiond.nvrtc.1";
constexpr size_t kMaxFileBytes = 64 << 10;

std::string PathIn(const std::string& state_folder) { return state_folder + "/nvrtc"; }

// Fields: magic with version, identity, CRC-32C of the identity.
std::string Encode(absl::string_view identity) {
  FieldWriter writer;
  writer.Field(kMagic).Field(identity).Field(uint64_t{base::Crc32c(identity)});
  return std::move(writer).Finish();
}

}  // namespace

std::optional<std::string> LastNvrtcIdentity(const std::string& state_folder) {
  absl::StatusOr<std::string> bytes = base::ReadFile(PathIn(state_folder), kMaxFileBytes);
  if (!bytes.ok()) return std::nullopt;
  FieldReader reader(*bytes);
  reader.Bytes();  // the magic; Encode below compares it
  std::string identity(reader.Bytes());
  if (Encode(identity) != *bytes) return std::nullopt;
  return identity;
}

absl::Status RememberNvrtcIdentity(const std::string& state_folder, absl::string_view identity) {
  if (LastNvrtcIdentity(state_folder) == identity) return absl::OkStatus();
  return base::WriteFileAtomically(PathIn(state_folder), Encode(identity));
}

}  // namespace fusiond::cache
