// CheckHost of server/flags.h: what can be known of this host before a start.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler/nvrtc/locate.h"
#include "runtime/base/file.h"
#include "server/cache/state_folder.h"
#include "server/flags.h"

namespace fusiond::server {
namespace {

constexpr size_t kLongestSocketPath = sizeof(sockaddr_un::sun_path) - 1;

// The folder itself, or the nearest above it that exists.
std::string NearestFolder(std::string path) {
  struct stat info;
  while (::stat(path.c_str(), &info) != 0 && path.size() > 1) {
    const size_t slash = path.rfind('/');
    path = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  }
  return path;
}

// Why we could not write there; empty if we could.
std::string CannotMake(const std::string& folder) {
  const std::string nearest = NearestFolder(folder);
  struct stat info;
  if (::stat(nearest.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return absl::StrCat(nearest == folder ? "" : folder + ": ", nearest, " is no folder");
  if (::faccessat(AT_FDCWD, nearest.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return absl::StrCat(folder, ": ", base::ErrnoStatus(errno, "write to " + nearest).message());
  return "";
}

void CheckSockets(const std::string& folder, std::vector<std::string>& problems) {
  for (const char* name : {"control.sock", "channel.sock"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    struct stat info;
    if (path.size() > kLongestSocketPath) {
      problems.push_back(absl::StrCat("--sockets: the limit of a socket's path is ",
                                      kLongestSocketPath, " bytes, ", path, " has ", path.size()));
    } else if (::lstat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
      problems.push_back(absl::StrCat("--sockets: ", path, " exists and is no socket"));
    }
  }
  if (const std::string why = CannotMake(folder); !why.empty())
    problems.push_back(absl::StrCat("--sockets: ", why));
}

void CheckReadable(absl::string_view flag, const std::string& path, bool folder,
                   std::vector<std::string>& problems) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || ::access(path.c_str(), R_OK) != 0) {
    problems.push_back(absl::StrCat(flag, ": ", base::ErrnoStatus(errno, path).message()));
  } else if (folder != S_ISDIR(info.st_mode)) {
    problems.push_back(absl::StrCat(flag, ": ", path, folder ? " is no folder" : " is a folder"));
  }
}

}  // namespace

std::vector<std::string> CheckHost(const DaemonOptions& options) {
  std::vector<std::string> problems;
  if (options.control_fd < 0 || options.channel_fd < 0) CheckSockets(options.sockets, problems);
  if (!options.state.empty()) {
    std::string why = CannotMake(options.state);
    if (why.empty() && !options.allow_network_fs)
      why = std::string(cache::CheckFileSystem(NearestFolder(options.state)).message());
    if (!why.empty())
      problems.push_back(absl::StrCat("--state: ", why, " (--memory-only keeps nothing on disk)"));
  }
  for (const std::string& folder : options.nvrtc_folders)
    CheckReadable("--nvrtc-folder", folder, true, problems);
  if (!options.nvrtc_path.empty()) {
    nvrtc::NvrtcLocation location;
    location.explicit_path = options.nvrtc_path;
    location.root_owned_only = options.nvrtc_root_owned_only;
    const absl::StatusOr<nvrtc::OpenLibrary> opened = nvrtc::OpenNvrtc(location);
    if (!opened.ok()) problems.push_back(absl::StrCat("--nvrtc: ", opened.status().message()));
  }
  // By name alone it is the loader's to find.
  if (options.driver_path.find('/') != std::string::npos)
    CheckReadable("--driver", options.driver_path, false, problems);
  return problems;
}

}  // namespace fusiond::server
