#include "runtime/base/load_error.h"

#include <dlfcn.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fusiond::base {

std::string LoadError(const std::string& name) {
  const char* text = ::dlerror();  // NOLINT(concurrency-mt-unsafe): per thread in glibc
  std::string reason = text == nullptr ? "unknown reason" : text;
  const bool missing =
      absl::StartsWith(reason, name + ": ") && absl::StrContains(reason, "No such file");
  if (missing && absl::StrContains(name, '/') && ::access(name.c_str(), R_OK) == 0)
    return absl::StrCat(name, ": is there, but for another architecture");
  return reason;
}

}  // namespace fusiond::base
