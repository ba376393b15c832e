#include "client/cli/summary.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/json.h"
#include "runtime/base/element.h"

namespace fusiond::cli {
namespace {

constexpr size_t kShown = 5;

}  // namespace

Summary Summarise(const HostArray& array) {
  Summary summary;
  summary.dtype = array.dtype;
  summary.shape = array.shape;
  double sum = 0;
  ForEachElement(array, [&](size_t at) {
    const char* element = array.data.data() + at;
    const bool floating = base::IsFloatingPoint(array.dtype);
    const int64_t integer = floating ? 0 : base::LoadInteger(array.dtype, element);
    const double value =
        floating ? base::LoadFloat(array.dtype, element) : static_cast<double>(integer);
    ++summary.elements;
    if (summary.first.size() < kShown) {
      if (floating) {
        summary.first.emplace_back(value);
      } else {
        summary.first.emplace_back(integer);
      }
    }
    if (!std::isfinite(value)) {
      ++summary.not_finite;
      return;
    }
    summary.min = std::fmin(summary.min, value);
    summary.max = std::fmax(summary.max, value);
    sum += value;
  });
  const uint64_t finite = summary.elements - summary.not_finite;
  if (finite > 0) summary.mean = sum / static_cast<double>(finite);
  return summary;
}

std::string ToText(const Summary& summary) {
  std::string text =
      absl::StrCat(base::DTypeName(summary.dtype), "[", absl::StrJoin(summary.shape, ","), "]");
  if (summary.elements == 0) return text + " is empty";
  text += " =";
  for (const std::variant<int64_t, double>& element : summary.first) {
    const int64_t* integer = std::get_if<int64_t>(&element);
    absl::StrAppend(&text, " ",
                    integer != nullptr ? absl::StrCat(*integer)
                                       : absl::StrFormat("%.6g", std::get<double>(element)));
  }
  if (summary.elements == summary.first.size()) return text;
  text += " ...";
  if (summary.not_finite < summary.elements)
    absl::StrAppendFormat(&text, "; min %.6g, max %.6g, mean %.6g", summary.min, summary.max,
                          summary.mean);
  if (summary.not_finite > 0) absl::StrAppend(&text, "; ", summary.not_finite, " not finite");
  return text;
}

std::string ToJsonMembers(const Summary& summary) {
  const auto number = [](std::string* out, const std::variant<int64_t, double>& element) {
    const int64_t* integer = std::get_if<int64_t>(&element);
    out->append(integer != nullptr ? absl::StrCat(*integer)
                                   : JsonNumber(std::get<double>(element)));
  };
  return absl::StrCat(
      "\"dtype\": ", JsonString(base::DTypeName(summary.dtype)), ", \"shape\": [",
      absl::StrJoin(summary.shape, ", "), "], \"first\": [",
      absl::StrJoin(summary.first, ", ", number), "], \"min\": ", JsonNumber(summary.min),
      ", \"max\": ", JsonNumber(summary.max), ", \"mean\": ", JsonNumber(summary.mean),
      ", \"not_finite\": ", summary.not_finite);
}

}  // namespace fusiond::cli
