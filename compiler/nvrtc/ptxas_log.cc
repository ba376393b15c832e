#include "compiler/nvrtc/ptxas_log.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fusiond::nvrtc {
namespace {

// The integer directly before `unit` in `line`, e.g. 16 for "Used 16 registers, …" and "
// registers". 0 if there is none.
int64_t NumberBefore(absl::string_view line, absl::string_view unit) {
  size_t end = line.find(unit);
  if (end == absl::string_view::npos) return 0;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t value = 0;
  return absl::SimpleAtoi(line.substr(begin, end - begin), &value) ? value : 0;
}

// The text between the first two quotes: "Compiling entry function 'k' for 'sm_90a'" gives k.
absl::string_view Quoted(absl::string_view line) {
  size_t begin = line.find('\'');
  if (begin == absl::string_view::npos) return "";
  size_t end = line.find('\'', begin + 1);
  return end == absl::string_view::npos ? "" : line.substr(begin + 1, end - begin - 1);
}

bool IsTiming(absl::string_view line) {
  return absl::StartsWith(line, "ptxas info") && absl::StrContains(line, "Compile time =");
}

}  // namespace

std::vector<EntryResources> ParsePtxasLog(absl::string_view log) {
  std::vector<EntryResources> entries;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StrContains(line, "Compiling entry function '")) {
      entries.push_back({.entry = std::string(Quoted(line))});
      continue;
    }
    if (entries.empty()) continue;
    EntryResources& entry = entries.back();
    if (absl::StrContains(line, " bytes stack frame,")) {
      entry.stack_bytes = std::max(entry.stack_bytes, NumberBefore(line, " bytes stack frame"));
      entry.spill_store_bytes += NumberBefore(line, " bytes spill stores");
      entry.spill_load_bytes += NumberBefore(line, " bytes spill loads");
    } else if (absl::StrContains(line, "Used ") && absl::StrContains(line, " registers")) {
      entry.registers = NumberBefore(line, " registers");
      entry.stack_bytes =
          std::max(entry.stack_bytes, NumberBefore(line, " bytes cumulative stack size"));
      entry.static_smem_bytes = NumberBefore(line, " bytes smem");
    }
  }
  return entries;
}

std::string StableLog(absl::string_view log) {
  std::vector<absl::string_view> lines = absl::StrSplit(log, '\n');
  lines.erase(std::remove_if(lines.begin(), lines.end(), IsTiming), lines.end());
  return std::string(absl::StripTrailingAsciiWhitespace(absl::StrJoin(lines, "\n")));
}

}  // namespace fusiond::nvrtc
