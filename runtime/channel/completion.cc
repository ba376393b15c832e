#include "runtime/channel/completion.h"

#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"

namespace fusiond::channel {
namespace {

// Indexed by CompletionCode: the status, and what it is called where that says more.
struct CodeRow {
  absl::StatusCode status;
  absl::string_view name;
};
constexpr CodeRow kCodes[] = {
    {absl::StatusCode::kOk, ""},
    {absl::StatusCode::kInvalidArgument, ""},
    {absl::StatusCode::kNotFound, ""},
    {absl::StatusCode::kFailedPrecondition, ""},
    {absl::StatusCode::kResourceExhausted, ""},
    {absl::StatusCode::kDeadlineExceeded, ""},
    {absl::StatusCode::kUnimplemented, ""},
    {absl::StatusCode::kInternal, ""},
    {absl::StatusCode::kAborted, "CONTEXT_LOST"},
    {absl::StatusCode::kUnavailable, "DRAINING"},
};

// Indexed by CompletionReason: the sentence, with $0 for index, $1 for limit and $2 for actual.
constexpr absl::string_view kReasons[] = {
    "",
    "unknown opcode, actual $2",
    "reserved bits are set, actual $2",
    "stream slot, limit $1, actual $2",
    "arguments reach beyond the slab, limit $1, actual $2",
    "arguments are not aligned, limit $1, actual $2",
    "bytes of arguments, limit $1, actual $2",
    "number of tensors, limit $1, actual $2",
    "number of extents, limit $1, actual $2",
    "unknown executable, actual $2",
    "unknown buffer, index $0, actual $2",
    "access beyond the buffer's end, index $0, limit $1, actual $2",
    "buffer offset is not aligned, index $0, limit $1, actual $2",
    "extent, index $0, limit $1, actual $2",
    "guard does not hold, index $0",
    "feature was not negotiated, actual $2",
    "memory overlaps, index $0",
    "out of memory",  // completed by MemoryText
    "deadline has passed, limit $1, actual $2",
    "device error $2, with $0 launches or copies of its stream before it",
    "the device dropped the work",
    "too much work is queued, limit $1, actual $2",
    "arguments contradict each other or the executable",
};
static_assert(std::size(kCodes) == static_cast<size_t>(CompletionCode::kDraining) + 1);
static_assert(std::size(kReasons) == static_cast<size_t>(CompletionReason::kArguments) + 1);

std::string MemoryText(const CompletionEntry& completion) {
  if (completion.limit == 0) return "";
  return absl::StrCat(
      ": ", completion.actual == 0 ? "" : absl::StrCat(completion.actual, " bytes needed, "),
      completion.index, " MiB free of ", completion.limit >> 20, " MiB");
}

}  // namespace

absl::Status ToStatus(const CompletionEntry& completion) {
  if (completion.code >= std::size(kCodes) || completion.reason >= std::size(kReasons)) {
    return absl::InternalError(absl::StrCat("completion: unknown code ", completion.code,
                                            " or reason ", completion.reason));
  }
  const CodeRow& code = kCodes[completion.code];
  if (code.status == absl::StatusCode::kOk) return absl::OkStatus();
  const auto reason = static_cast<CompletionReason>(completion.reason);
  std::string text(code.name);
  const absl::string_view before = text.empty() ? "" : ": ";
  if (reason != CompletionReason::kNone) {
    absl::StrAppend(&text, before,
                    absl::Substitute(kReasons[completion.reason], completion.index,
                                     completion.limit, completion.actual));
  } else if (text.empty()) {
    text = "the device gave no reason; its worker's log may";
  }
  if (reason == CompletionReason::kMemory) absl::StrAppend(&text, MemoryText(completion));
  return absl::Status(code.status, text);
}

}  // namespace fusiond::channel
