#include "runtime/channel/completion.h"

#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace fusiond::channel {
namespace {

// Indexed by CompletionCode.
struct CodeRow {
  absl::StatusCode status;
  absl::string_view name;
};
constexpr CodeRow kCodes[] = {
    {absl::StatusCode::kOk, "OK"},
    {absl::StatusCode::kInvalidArgument, "INVALID_ARGUMENT"},
    {absl::StatusCode::kNotFound, "NOT_FOUND"},
    {absl::StatusCode::kFailedPrecondition, "FAILED_PRECONDITION"},
    {absl::StatusCode::kResourceExhausted, "RESOURCE_EXHAUSTED"},
    {absl::StatusCode::kDeadlineExceeded, "DEADLINE_EXCEEDED"},
    {absl::StatusCode::kUnimplemented, "UNIMPLEMENTED"},
    {absl::StatusCode::kInternal, "INTERNAL"},
    {absl::StatusCode::kAborted, "CONTEXT_LOST"},
    {absl::StatusCode::kUnavailable, "DRAINING"},
};

// Indexed by CompletionReason: the sentence, and which of index, limit and actual go with it.
struct ReasonRow {
  absl::string_view text;
  bool has_index;
  bool has_limit;
  bool has_actual;
};
constexpr ReasonRow kReasons[] = {
    {"", false, false, false},
    {"unknown opcode", false, false, true},
    {"reserved bits are set", false, false, true},
    {"stream slot", false, true, true},
    {"arguments reach beyond the slab", false, true, true},
    {"arguments are not aligned", false, true, true},
    {"bytes of arguments", false, true, true},
    {"number of tensors", false, true, true},
    {"number of extents", false, true, true},
    {"unknown executable", false, false, true},
    {"unknown buffer", true, false, true},
    {"access beyond the buffer's end", true, true, true},
    {"buffer offset is not aligned", true, true, true},
    {"extent", true, true, true},
    {"guard does not hold", true, false, false},
    {"feature was not negotiated", false, false, true},
    {"memory overlaps", true, false, false},
    {"memory", false, true, true},
    {"deadline has passed", false, true, true},
    {"device error", false, false, true},
    {"the device dropped the work", false, false, false},
    {"too much work is queued", false, true, false},
};
static_assert(std::size(kCodes) == static_cast<size_t>(CompletionCode::kDraining) + 1);
static_assert(std::size(kReasons) == static_cast<size_t>(CompletionReason::kQueue) + 1);

}  // namespace

absl::Status ToStatus(const CompletionEntry& completion) {
  if (completion.code >= std::size(kCodes) || completion.reason >= std::size(kReasons)) {
    return absl::InternalError(absl::StrCat("completion: unknown code ", completion.code,
                                            " or reason ", completion.reason));
  }
  const CodeRow& code = kCodes[completion.code];
  if (code.status == absl::StatusCode::kOk) return absl::OkStatus();
  const ReasonRow& reason = kReasons[completion.reason];
  std::string text(code.name);
  if (!reason.text.empty()) absl::StrAppend(&text, ": ", reason.text);
  if (reason.has_index) absl::StrAppend(&text, ", index ", completion.index);
  if (reason.has_limit) absl::StrAppend(&text, ", limit ", completion.limit);
  if (reason.has_actual) absl::StrAppend(&text, ", actual ", completion.actual);
  return absl::Status(code.status, text);
}

}  // namespace fusiond::channel
