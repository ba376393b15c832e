#include "compiler/nvrtc/locate.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "runtime/base/file.h"
#include "runtime/base/load_library.h"

namespace fusiond::nvrtc {
namespace {

constexpr absl::string_view kSonames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

// Below a root: the folder itself, a CUDA installation, the wheels nvidia-cuda-nvrtc (13) and
// nvidia-cuda-nvrtc-cu12.
constexpr absl::string_view kLayouts[] = {"",
                                          "/lib64",
                                          "/lib",
                                          "/targets/x86_64-linux/lib",
                                          "/targets/sbsa-linux/lib",
                                          "/nvidia/cu13/lib",
                                          "/nvidia/cuda_nvrtc/lib"};

std::vector<std::string> InstalledCudaFolders() {
  std::vector<std::string> versions;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/local", error)) {
    const std::string path = entry.path().string();
    if (absl::StartsWith(path, "/usr/local/cuda-")) versions.push_back(path);
  }
  std::sort(versions.begin(), versions.end(), [](const std::string& a, const std::string& b) {
    return ::strverscmp(a.c_str(), b.c_str()) > 0;
  });
  versions.insert(versions.begin(), "/usr/local/cuda");
  return versions;
}

// The file a handle was loaded from.
std::string PathOf(void* handle) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return "";
  std::error_code error;
  std::string resolved = std::filesystem::canonical(map->l_name, error).string();
  return error ? map->l_name : resolved;
}

// Tries one name; a failure is noted in `reasons`.
bool TryOpen(const std::string& name, OpenLibrary* library, std::vector<std::string>* reasons) {
  const absl::StatusOr<void*> handle = base::LoadLibrary(name);
  if (!handle.ok()) {
    reasons->emplace_back(handle.status().message());
    return false;
  }
  *library = {*handle, PathOf(*handle)};
  return true;
}

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

absl::Status NotFound(const std::vector<std::string>& reasons) {
  return absl::NotFoundError(absl::StrCat("NVRTC not found: ", absl::StrJoin(reasons, "; ")));
}

absl::StatusOr<OpenLibrary> OpenExplicit(const std::string& path) {
  OpenLibrary library;
  std::vector<std::string> reasons;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    // A name without a slash would be searched by the loader; a path is what was promised.
    std::string file = std::filesystem::absolute(path, error).string();
    if (TryOpen(file, &library, &reasons)) return library;
    return NotFound(reasons);
  }
  for (absl::string_view soname : kSonames) {
    if (TryOpen(absl::StrCat(path, "/", soname), &library, &reasons)) return library;
  }
  return NotFound(reasons);
}

}  // namespace

std::vector<std::string> SearchFolders(const NvrtcLocation& location) {
  std::vector<std::string> roots = location.folders;
  for (std::string& root : InstalledCudaFolders()) roots.push_back(std::move(root));
  std::vector<std::string> folders;
  for (const std::string& root : roots) {
    if (root.empty()) continue;
    for (absl::string_view layout : kLayouts) {
      std::string folder = absl::StrCat(root, layout);
      if (std::find(folders.begin(), folders.end(), folder) == folders.end()) {
        folders.push_back(std::move(folder));
      }
    }
  }
  return folders;
}

absl::Status CheckRootOwned(const std::string& path) {
  std::error_code error;
  std::filesystem::path part = std::filesystem::canonical(path, error);
  if (error) return absl::NotFoundError(absl::StrCat(path, ": ", error.message()));
  while (true) {
    struct stat info;
    if (::stat(part.c_str(), &info) != 0) {
      return base::ErrnoStatus(errno, absl::StrCat("stat ", part.string()));
    }
    if (info.st_uid != 0 || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
      return absl::PermissionDeniedError(
          absl::StrCat(path, ": not root's alone (", part.string(), ")"));
    }
    if (part == part.parent_path()) return absl::OkStatus();
    part = part.parent_path();
  }
}

absl::StatusOr<OpenLibrary> OpenNvrtc(const NvrtcLocation& location) {
  if (!location.explicit_path.empty()) return OpenExplicit(location.explicit_path);
  OpenLibrary library;
  std::vector<std::string> reasons;
  for (absl::string_view soname : kSonames) {
    if (TryOpen(std::string(soname), &library, &reasons)) return library;
  }
  std::vector<std::string> empty_folders;
  for (const std::string& folder : SearchFolders(location)) {
    bool present = false;
    for (absl::string_view soname : kSonames) {
      std::string file = absl::StrCat(folder, "/", soname);
      if (!Exists(file)) continue;
      present = true;
      absl::Status owned = location.root_owned_only ? CheckRootOwned(file) : absl::OkStatus();
      if (!owned.ok()) {
        reasons.emplace_back(owned.message());
      } else if (TryOpen(file, &library, &reasons)) {
        return library;
      }
    }
    if (!present) empty_folders.push_back(folder);
  }
  reasons.push_back(absl::StrCat("not in ", absl::StrJoin(empty_folders, ", ")));
  return NotFound(reasons);
}

absl::StatusOr<OpenLibrary> OpenBuiltins(const std::string& nvrtc_path, int major, int minor) {
  const std::string name = absl::StrCat("libnvrtc-builtins.so.", major, ".", minor);
  const std::string beside =
      (std::filesystem::path(nvrtc_path).parent_path() / std::string(name)).string();
  OpenLibrary library;
  std::vector<std::string> reasons;
  if (TryOpen(beside, &library, &reasons) || TryOpen(name, &library, &reasons)) return library;
  return absl::NotFoundError(absl::StrCat("NVRTC at ", nvrtc_path, " cannot work without ", name,
                                          ": ", absl::StrJoin(reasons, "; ")));
}

}  // namespace fusiond::nvrtc
