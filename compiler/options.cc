#include "compiler/options.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace fusiond::compiler {
namespace {

absl::Status BadValue(const std::string& name, const std::string& value, const char* allowed) {
  return absl::InvalidArgumentError(absl::StrCat(
      "option ", name, ": '", absl::CHexEscape(value.substr(0, 64)), "' is none of ", allowed));
}

}  // namespace

std::map<std::string, std::string> Options::ToMap() const {
  std::map<std::string, std::string> map;
  if (math == Math::kStrict) map["math"] = "strict";
  if (math == Math::kFast) map["math"] = "fast";
  if (excess_precision) map["excess_precision"] = *excess_precision ? "true" : "false";
  if (precision == Precision::kDouble) map["precision"] = "double";
  return map;
}

absl::StatusOr<Options> OptionsFromMap(const std::map<std::string, std::string>& map) {
  Options options;
  for (const auto& [name, value] : map) {
    if (name == "math") {
      if (value == "strict") {
        options.math = Math::kStrict;
      } else if (value == "default") {
        options.math = Math::kDefault;
      } else if (value == "fast") {
        options.math = Math::kFast;
      } else {
        return BadValue(name, value, "strict, default, fast");
      }
    } else if (name == "excess_precision") {
      if (value != "true" && value != "false") return BadValue(name, value, "true, false");
      options.excess_precision = value == "true";
    } else if (name == "precision") {
      if (value != "native" && value != "double") return BadValue(name, value, "native, double");
      options.precision = value == "double" ? Precision::kDouble : Precision::kNative;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("option '", absl::CHexEscape(name.substr(0, 64)),
                       "' is unknown; known: excess_precision, math, precision"));
    }
  }
  return options;
}

}  // namespace fusiond::compiler
