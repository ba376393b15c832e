// NVRTC, opened at run time: CUDA C++ text in, cubin, log and resource use out.
//
// Nothing links to CUDA, and no GPU or driver is needed: any host compiles for any arch that its
// NVRTC knows. Once Open() has returned no file is needed any more, so Compile() works in a sandbox
// without open(). Elsewhere the first Compile() of a process opens libcuda where there is one and
// calls cuInit (seen with 13.0; NVRTC's own doing).
//
// Thread-safety: Nvrtc is immutable and thread-safe; NVRTC itself serialises most of a compile
// inside one process, so parallel compiles mean processes.
// Cost: Open() maps about 110 MB of library in milliseconds; Compile() blocks for tens of
// milliseconds and more, and cannot be cancelled.
#ifndef FUSIOND_COMPILER_NVRTC_NVRTC_H_
#define FUSIOND_COMPILER_NVRTC_NVRTC_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler/nvrtc/locate.h"
#include "compiler/nvrtc/nvrtc_api.h"
#include "compiler/nvrtc/ptxas_log.h"

namespace fusiond::nvrtc {

struct NvrtcVersion {
  int major = 0;
  int minor = 0;
};

struct CompileInput {
  std::string source;
  std::string name;  // shown in diagnostics, e.g. "row_persistent.cu"
  std::string arch;  // "sm_90a"
  // Passed on as they are, after --gpu-architecture=<arch>, --ptxas-options=-v (changes the log,
  // not the cubin) and, where NVRTC has it, --minimal (no textures, surfaces or managed variables),
  // which this class adds itself.
  std::vector<std::string> options{};
  bool want_ptx = false;
};

struct CompileOutput {
  std::string cubin;
  std::string ptx;  // only if wanted
  std::string log;  // without timing lines: equal inputs, equal log
  std::vector<EntryResources> entries;
  absl::Duration compile_time;
};

class Nvrtc {
 public:
  // NOT_FOUND: no libnvrtc (lists the places looked at) or no builtins library (named).
  // FAILED_PRECONDITION: a library that lacks one of our symbols (named).
  static absl::StatusOr<std::unique_ptr<Nvrtc>> Open(const NvrtcLocation& location);

  const std::string& path() const { return path_; }
  NvrtcVersion version() const { return version_; }
  // Version, build id of libnvrtc, build id of the builtins: part of every key over a cubin.
  const std::string& identity() const { return identity_; }
  // Numbers without suffix, ascending, e.g. {75, 80, …, 121}.
  const std::vector<int>& supported_archs() const { return supported_archs_; }

  // INVALID_ARGUMENT: `arch` is not of the form sm_<number>[a|f], or the source holds a NUL.
  // FAILED_PRECONDITION: this NVRTC does not know the arch; names both.
  // RESOURCE_EXHAUSTED: NVRTC says that it ran out of memory. Never a statement about the source.
  // INTERNAL: the source or an option is rejected; the message ends with the log, cut to 64 KiB.
  absl::StatusOr<CompileOutput> Compile(const CompileInput& input) const;

 private:
  Nvrtc() = default;
  absl::Status CheckArch(absl::string_view arch) const;
  absl::Status Failure(api::Result result, absl::string_view action, const CompileInput& input,
                       absl::string_view log) const;

  api::Symbols symbols_;
  std::string path_;
  NvrtcVersion version_;
  std::string identity_;
  std::vector<int> supported_archs_;
};

}  // namespace fusiond::nvrtc

#endif  // FUSIOND_COMPILER_NVRTC_NVRTC_H_
