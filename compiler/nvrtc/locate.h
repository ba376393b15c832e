// Where libnvrtc is looked for, and how it and its builtins library are opened.
//
// Order: (1) an explicit path, and then nothing else: a wrong path is an error, not a hint;
// (2) the dynamic loader, by soname, newest major version first; (3) the caller's folders, in their
// order, each with the layouts of a CUDA installation and of NVIDIA's Python wheels below it;
// (4) /usr/local/cuda, then /usr/local/cuda-*, newest first. The first that opens wins.
//
// Thread-safety: all functions are thread-safe. Libraries stay mapped for the life of the process:
// NVRTC leaves thread-local state behind that must not outlive its code.
#ifndef FUSIOND_COMPILER_NVRTC_LOCATE_H_
#define FUSIOND_COMPILER_NVRTC_LOCATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fusiond::nvrtc {

struct NvrtcLocation {
  // The library's file, or the folder that holds it. Empty: search.
  std::string explicit_path{};
  // Roots to search: $CUDA_HOME, a site-packages folder, build/nvrtc, or the libraries' own folder.
  std::vector<std::string> folders{};
  // Of (3) and (4) take only files that nobody but root can replace (a service sets this).
  bool root_owned_only = false;
};

// The folders of steps (3) and (4), existing or not, in order, without repetition.
std::vector<std::string> SearchFolders(const NvrtcLocation& location);

// OK if neither `path` (links resolved) nor any folder above it belongs to, or may be written by,
// anyone but root; PERMISSION_DENIED names the part that fails, NOT_FOUND a missing file.
absl::Status CheckRootOwned(const std::string& path);

struct OpenLibrary {
  void* handle = nullptr;
  std::string path;  // absolute, links resolved
};

// NOT_FOUND lists every place looked at with the reason it was passed over.
absl::StatusOr<OpenLibrary> OpenNvrtc(const NvrtcLocation& location);

// Opens libnvrtc-builtins.so.MAJOR.MINOR, beside `nvrtc_path` or else through the loader, so that
// NVRTC's own later dlopen finds it without opening a file. NOT_FOUND names the library: without it
// every compile fails.
absl::StatusOr<OpenLibrary> OpenBuiltins(const std::string& nvrtc_path, int major, int minor);

}  // namespace fusiond::nvrtc

#endif  // FUSIOND_COMPILER_NVRTC_LOCATE_H_
