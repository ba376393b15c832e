#include "client/cli/npy.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"

namespace fusiond::cli {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(".npy header: ", what));
}

// What stands behind 'key': in a Python dict, up to its comma (or, for the shape, its bracket).
absl::StatusOr<absl::string_view> Entry(absl::string_view dict, absl::string_view key, char end) {
  const std::string quoted = absl::StrCat("'", key, "':");
  const size_t at = dict.find(quoted);
  const size_t stop = at == absl::string_view::npos ? at : dict.find(end, at + quoted.size());
  if (stop == absl::string_view::npos) return Damaged(absl::StrCat("no ", key));
  return absl::StripAsciiWhitespace(dict.substr(at + quoted.size(), stop - at - quoted.size()));
}

std::optional<base::DType> DTypeOf(absl::string_view descr) {
  constexpr std::pair<absl::string_view, base::DType> kDescr[] = {
      {"'|b1'", base::DType::kBool},     {"'<i4'", base::DType::kInt32},
      {"'<i8'", base::DType::kInt},      {"'<f2'", base::DType::kHalf},
      {"'<V2'", base::DType::kBFloat16}, {"'|V2'", base::DType::kBFloat16},
      {"'<f4'", base::DType::kFloat},    {"'<f8'", base::DType::kDouble},
  };
  for (const auto& [name, dtype] : kDescr) {
    if (name == descr) return dtype;
  }
  return std::nullopt;
}

}  // namespace

bool IsNpy(absl::string_view file) { return absl::StartsWith(file, kMagic); }

absl::StatusOr<NpyHeader> ReadNpyHeader(absl::string_view file) {
  const auto byte = [&](size_t at) -> size_t {
    return at < file.size() ? static_cast<uint8_t>(file[at]) : 0;
  };
  // Version 1 has the length in two bytes, later ones in four.
  const size_t begin = byte(6) == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (begin == 12) length |= byte(10) << 16 | byte(11) << 24;
  if (file.size() < begin || file.size() - begin < length) return Damaged("the file ends in it");
  const absl::string_view dict = file.substr(begin, length);
  NpyHeader header;
  header.data_offset = begin + length;
  FUSIOND_ASSIGN_OR_RETURN(const absl::string_view descr, Entry(dict, "descr", ','));
  const std::optional<base::DType> dtype = DTypeOf(descr);
  if (!dtype) {
    return Damaged(absl::StrCat("dtype ", absl::CHexEscape(descr.substr(0, 64)),
                                " is none of |b1 <i4 <i8 <f2 <V2 <f4 <f8"));
  }
  header.dtype = *dtype;
  FUSIOND_ASSIGN_OR_RETURN(const absl::string_view order, Entry(dict, "fortran_order", ','));
  if (order != "False") return Damaged("the elements must be in C order");
  FUSIOND_ASSIGN_OR_RETURN(absl::string_view shape, Entry(dict, "shape", ')'));
  if (!absl::StartsWith(shape, "(")) return Damaged("no shape");
  for (absl::string_view part : absl::StrSplit(shape.substr(1), ',', absl::SkipWhitespace())) {
    int64_t extent;
    if (!absl::SimpleAtoi(part, &extent) || extent < 0) return Damaged("bad shape");
    header.shape.push_back(extent);
  }
  return header;
}

}  // namespace fusiond::cli
