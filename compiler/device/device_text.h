// The device files of this folder as text, embedded at build. A kernel's source is the text of the
// files it needs, followed by its body; it includes nothing.
//
// Thread-safety: immutable.
#ifndef FUSIOND_COMPILER_DEVICE_DEVICE_TEXT_H_
#define FUSIOND_COMPILER_DEVICE_DEVICE_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fusiond::device {

struct DeviceFile {
  absl::string_view name;  // "math.cuh"
  absl::string_view text;
};

// Every file, each after those it needs.
absl::Span<const DeviceFile> DeviceFiles();

// The names that a file's line "// Needs: a.cuh, b.cuh" lists, in that order.
std::vector<absl::string_view> Needs(const DeviceFile& file);

// The text of the named files and of all that they need, each once, in the order of DeviceFiles().
// Requires: every name is that of a device file.
std::string Prelude(absl::Span<const absl::string_view> names);

}  // namespace fusiond::device

#endif  // FUSIOND_COMPILER_DEVICE_DEVICE_TEXT_H_
