// Options of a compile request; every one is part of the keys.
#ifndef FUSIOND_COMPILER_OPTIONS_H_
#define FUSIOND_COMPILER_OPTIONS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/math.h"

namespace fusiond::compiler {

using ir::Math;
enum class Precision { kNative, kDouble };  // kDouble: arch cpu only

struct Options {
  Math math = Math::kDefault;
  // Drops float→half→float round trips on internal edges; follows `math` when not set (off in
  // strict).
  std::optional<bool> excess_precision;
  Precision precision = Precision::kNative;

  bool ExcessPrecision() const { return excess_precision.value_or(math != Math::kStrict); }
  // Sorted name → value, defaults left out: the form in keys, on the wire and on command lines.
  std::map<std::string, std::string> ToMap() const;
  bool operator==(const Options&) const = default;
};

// INVALID_ARGUMENT names the option, the value and what is allowed; unknown names are refused.
absl::StatusOr<Options> OptionsFromMap(const std::map<std::string, std::string>& map);

}  // namespace fusiond::compiler

#endif  // FUSIOND_COMPILER_OPTIONS_H_
