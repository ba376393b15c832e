#include "compiler/schedule/kernel_schedule.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/schedule/variants.h"
#include "runtime/base/status_macros.h"

namespace fusiond::schedule {
namespace {

constexpr SchedulerId kSchedulers[] = {SchedulerId::kPointwise,     SchedulerId::kTranspose,
                                       SchedulerId::kRowPersistent, SchedulerId::kRowStream,
                                       SchedulerId::kRowColumn,     SchedulerId::kColumn};

template <auto Member>
constexpr ScheduleField Field(absl::string_view name) {
  using Type = std::remove_cvref_t<decltype(KernelSchedule().*Member)>;
  return {name, [](const KernelSchedule& s) -> int64_t { return s.*Member; },
          [](KernelSchedule& s, int64_t value) { s.*Member = static_cast<Type>(value); },
          std::numeric_limits<Type>::max()};
}

constexpr ScheduleField kFields[] = {
    Field<&KernelSchedule::threads>("threads"),
    Field<&KernelSchedule::vector>("vector"),
    Field<&KernelSchedule::unroll>("unroll"),
    Field<&KernelSchedule::threads_per_row>("threads_per_row"),
    Field<&KernelSchedule::rows_per_cta>("rows_per_cta"),
    Field<&KernelSchedule::stages>("stages"),
    Field<&KernelSchedule::splits>("splits"),
    Field<&KernelSchedule::cluster>("cluster"),
    Field<&KernelSchedule::smem_bytes>("smem_bytes"),
    Field<&KernelSchedule::shared_columns>("shared_columns"),
    Field<&KernelSchedule::unpacked>("unpacked"),
    Field<&KernelSchedule::wide_index>("wide_index"),
};

constexpr size_t kAlwaysPrinted = 3;  // threads, vector, unroll

std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, 64)), "'");
}

template <typename... What>
absl::Status Malformed(const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat("schedule: ", what...));
}

absl::StatusOr<SchedulerId> ParseScheduler(absl::string_view name) {
  for (const SchedulerId id : kSchedulers)
    if (name == Name(id)) return id;
  return Malformed(Quoted(name), " is no scheduler; there are: ",
                   absl::StrJoin(kSchedulers, ", ", [](std::string* out, SchedulerId id) {
                     absl::StrAppend(out, Name(id));
                   }));
}

absl::Status CheckVariant(SchedulerId scheduler, absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Variant& variant : Variants())
    if (variant.scheduler == scheduler) names.push_back(variant.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return Malformed(Quoted(name), " is no variant of ", Name(scheduler),
                   "; there are: ", absl::StrJoin(names, ", "));
}

absl::Status ParseValue(absl::string_view entry, SchedulePattern& pattern) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(entry, absl::MaxSplits('=', 1));
  const auto* field = std::find_if(std::begin(kFields), std::end(kFields),
                                   [&](const ScheduleField& f) { return f.name == parts.first; });
  if (field == std::end(kFields)) {
    return Malformed(Quoted(parts.first), " is no parameter; there are: ",
                     absl::StrJoin(kFields, ", ", [](std::string* out, const ScheduleField& f) {
                       absl::StrAppend(out, f.name);
                     }));
  }
  int64_t value = 0;
  if (!absl::SimpleAtoi(parts.second, &value) || value < 0 || value > field->most)
    return Malformed(field->name, ": ", Quoted(parts.second), " is no number from 0 to ",
                     field->most);
  for (const auto& [other, number] : pattern.values)
    if (other == field) return Malformed(field->name, " is given twice");
  pattern.values.emplace_back(field, value);
  return absl::OkStatus();
}

}  // namespace

const char* Name(SchedulerId id) {
  switch (id) {
    case SchedulerId::kPointwise:
      return "pointwise";
    case SchedulerId::kTranspose:
      return "transpose";
    case SchedulerId::kRowPersistent:
      return "row_persistent";
    case SchedulerId::kRowStream:
      return "row_stream";
    case SchedulerId::kRowColumn:
      return "row_column";
    case SchedulerId::kColumn:
      return "column";
  }
  return "";
}

absl::Span<const ScheduleField> ScheduleFields() { return kFields; }

std::string Print(const KernelSchedule& schedule) {
  SchedulePattern pattern{schedule.scheduler, schedule.variant, {}};
  const KernelSchedule defaults;
  for (const ScheduleField& field : kFields)
    if (&field < kFields + kAlwaysPrinted || field.get(schedule) != field.get(defaults))
      pattern.values.emplace_back(&field, field.get(schedule));
  return Print(pattern);
}

absl::StatusOr<KernelSchedule> ParseSchedule(absl::string_view text) {
  FUSIOND_ASSIGN_OR_RETURN(SchedulePattern pattern, ParsePattern(text));
  if (pattern.variant.empty())
    return Malformed(Quoted(text), " names no variant of ", Name(pattern.scheduler));
  KernelSchedule schedule;
  schedule.scheduler = pattern.scheduler;
  schedule.variant = std::move(pattern.variant);
  for (const auto& [field, value] : pattern.values) field->set(schedule, value);
  return schedule;
}

absl::StatusOr<SchedulePattern> ParsePattern(absl::string_view text) {
  if (text.size() > kMaxPatternBytes)
    return Malformed(text.size(), " bytes, the limit is ", kMaxPatternBytes);
  const size_t brace = text.find('{');
  const std::pair<absl::string_view, absl::string_view> names =
      absl::StrSplit(text.substr(0, brace), absl::MaxSplits('/', 1));
  SchedulePattern pattern;
  FUSIOND_ASSIGN_OR_RETURN(pattern.scheduler, ParseScheduler(names.first));
  if (names.first.size() < std::min(brace, text.size())) {
    FUSIOND_RETURN_IF_ERROR(CheckVariant(pattern.scheduler, names.second));
    pattern.variant = std::string(names.second);
  }
  if (brace == absl::string_view::npos) return pattern;
  absl::string_view values = text.substr(brace + 1);
  if (values.empty() || values.back() != '}')
    return Malformed(Quoted(text), " does not end with }");
  values.remove_suffix(1);
  if (!values.empty()) {
    for (absl::string_view entry : absl::StrSplit(values, ','))
      FUSIOND_RETURN_IF_ERROR(ParseValue(entry, pattern));
  }
  std::sort(pattern.values.begin(), pattern.values.end());
  return pattern;
}

std::string Print(const SchedulePattern& pattern) {
  std::string text = Name(pattern.scheduler);
  if (!pattern.variant.empty()) absl::StrAppend(&text, "/", pattern.variant);
  if (pattern.values.empty()) return text;
  return absl::StrCat(text, "{",
                      absl::StrJoin(pattern.values, ",",
                                    [](std::string* out, const auto& entry) {
                                      absl::StrAppend(out, entry.first->name, "=", entry.second);
                                    }),
                      "}");
}

bool Matches(const SchedulePattern& pattern, const KernelSchedule& schedule) {
  return pattern.scheduler == schedule.scheduler &&
         (pattern.variant.empty() || pattern.variant == schedule.variant) &&
         std::all_of(pattern.values.begin(), pattern.values.end(),
                     [&](const auto& entry) { return entry.first->get(schedule) == entry.second; });
}

}  // namespace fusiond::schedule
