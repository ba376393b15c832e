#include "client/cc/paths.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace fusiond::client {

std::string ControlSocket(const std::string& folder) {
  return absl::StrCat(folder, "/control.sock");
}
std::string ChannelSocket(const std::string& folder) {
  return absl::StrCat(folder, "/channel.sock");
}

std::string DefaultSocketFolder() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  if (const char* folder = std::getenv("FUSIOND_SOCKETS"); folder != nullptr && *folder != '\0')
    return folder;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR");
      runtime != nullptr && *runtime != '\0') {
    std::string folder = absl::StrCat(runtime, "/fusiond");
    if (::access(ControlSocket(folder).c_str(), F_OK) == 0) return folder;
  }
  return "/run/fusiond";
}

}  // namespace fusiond::client
