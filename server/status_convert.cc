#include "server/status_convert.h"

#include <string>

namespace fusiond::server {
namespace {

// gRPC refuses metadata above 8 KiB by default, and percent-encoding triples a byte at worst.
constexpr size_t kMaxText = 2048;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string text(status.message());
  if (text.size() > kMaxText) {
    size_t cut = kMaxText;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80)
      --cut;  // not inside a character
    text.resize(cut);
    text += " …";
  }
  // The two enumerations have the same numbers by construction (google.rpc.Code).
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), text);
}

}  // namespace fusiond::server
