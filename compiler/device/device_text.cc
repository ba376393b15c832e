#include "compiler/device/device_text.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_split.h"
#include "runtime/base/check.h"

namespace fusiond::device {

extern const DeviceFile kDeviceFiles[];
extern const int kDeviceFilesCount;

absl::Span<const DeviceFile> DeviceFiles() {
  return absl::MakeConstSpan(kDeviceFiles, kDeviceFilesCount);
}

std::vector<absl::string_view> Needs(const DeviceFile& file) {
  constexpr absl::string_view kMark = "// Needs: ";
  const size_t begin = file.text.find(kMark);
  if (begin == absl::string_view::npos) return {};
  const absl::string_view rest = file.text.substr(begin + kMark.size());
  return absl::StrSplit(rest.substr(0, rest.find('\n')), ", ");
}

std::string Prelude(absl::Span<const absl::string_view> names) {
  absl::flat_hash_set<absl::string_view> wanted(names.begin(), names.end());
  // Backwards, so that a file's needs are noted before they are reached.
  std::vector<absl::string_view> texts;
  const absl::Span<const DeviceFile> files = DeviceFiles();
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    if (wanted.erase(file->name) == 0) continue;
    texts.push_back(file->text);
    for (absl::string_view need : Needs(*file)) wanted.insert(need);
  }
  FUSIOND_CHECK(wanted.empty());
  std::string prelude;
  for (auto text = texts.rbegin(); text != texts.rend(); ++text)
    prelude.append(text->data(), text->size());
  return prelude;
}

}  // namespace fusiond::device
