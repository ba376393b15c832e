#include "runtime/base/status_numbers.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fusiond::base {
namespace {

constexpr char kNeeded[] = "fusiond/needed-bytes";
constexpr char kLimit[] = "fusiond/limit-bytes";
constexpr char kFree[] = "fusiond/free-bytes";

}  // namespace

absl::Status WithNumber(absl::Status status, absl::string_view name, uint64_t value) {
  status.SetPayload(name, absl::Cord(absl::StrCat(value)));
  return status;
}

std::optional<uint64_t> NumberOf(const absl::Status& status, absl::string_view name) {
  const absl::optional<absl::Cord> payload = status.GetPayload(name);
  uint64_t value = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &value)) return std::nullopt;
  return value;
}

absl::Status WithMemoryNeed(const absl::Status& status, const MemoryNeed& need) {
  absl::Status with(
      status.code(),
      absl::StrCat(status.message(), "; ",
                   need.needed_bytes == 0 ? "" : absl::StrCat(need.needed_bytes, " bytes needed, "),
                   need.free_bytes, " free of ", need.limit_bytes));
  with = WithNumber(std::move(with), kNeeded, need.needed_bytes);
  with = WithNumber(std::move(with), kLimit, need.limit_bytes);
  return WithNumber(std::move(with), kFree, need.free_bytes);
}

std::optional<MemoryNeed> MemoryNeedOf(const absl::Status& status) {
  const std::optional<uint64_t> needed = NumberOf(status, kNeeded),
                                limit = NumberOf(status, kLimit), free = NumberOf(status, kFree);
  if (!needed || !limit || !free) return std::nullopt;
  return MemoryNeed{*needed, *limit, *free};
}

}  // namespace fusiond::base
