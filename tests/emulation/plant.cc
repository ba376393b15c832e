#include "tests/emulation/plant.h"

#include "absl/strings/str_format.h"

namespace fusiond::emulation {

absl::StatusOr<std::string> Plant(absl::string_view text, const Fault& fault) {
  std::string planted(text);
  for (const Edit& edit : fault.edits) {
    size_t at = planted.find(edit.find);
    for (int i = 0; i < edit.occurrence && at != std::string::npos; i++)
      at = planted.find(edit.find, at + 1);
    if (at == std::string::npos) {
      return absl::NotFoundError(absl::StrFormat("fault \"%s\": no occurrence %d of \"%s\"",
                                                 fault.name, edit.occurrence, edit.find));
    }
    planted.replace(at, edit.find.size(), edit.replace);
  }
  return planted;
}

}  // namespace fusiond::emulation
