#include "client/cli/graph_lines.h"

#include <algorithm>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/op_table.h"

namespace fusiond::cli {
namespace {

// A line as a node of a graph of lines.
struct Step {
  std::string text;              // without the names of values
  std::vector<size_t> operands;  // lines before it
  bool ordered = true;           // of the operands
  bool input = false;
};

// The end of the name that begins at `at` with '%'.
size_t NameEnd(absl::string_view text, size_t at) {
  const auto of_name = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '+' ||
           c == '-';
  };
  size_t end = at + 1;
  while (end < text.size() && of_name(text[end])) ++end;
  return end;
}

bool IsOrdered(absl::string_view computed) {
  const std::optional<ir::Op> op = ir::OpFromName(computed.substr(0, computed.find(' ')));
  return !op || !ir::IsCommutative(*op);
}

std::vector<Step> Steps(absl::Span<const std::string> lines) {
  absl::flat_hash_map<absl::string_view, size_t> made;  // by value
  std::vector<Step> steps;
  for (const std::string& line : lines) {
    const size_t equals = line.find(" = ");
    const absl::string_view text = line;
    const absl::string_view names = text.substr(0, equals == std::string::npos ? 0 : equals);
    const absl::string_view computed = equals == std::string::npos ? text : text.substr(equals + 3);
    Step step;
    step.ordered = IsOrdered(computed);
    step.input = absl::StartsWith(computed, "input");
    for (size_t at = 0; at < computed.size();) {
      if (computed[at] != '%') {
        step.text += computed[at++];
        continue;
      }
      const size_t end = NameEnd(computed, at);
      const auto operand = made.find(computed.substr(at, end - at));
      if (operand != made.end()) step.operands.push_back(operand->second);
      step.text += '%';
      at = end;
    }
    for (size_t at = names.find('%'); at != absl::string_view::npos; at = names.find('%', at + 1))
      made[names.substr(at, NameEnd(names, at) - at)] = steps.size();
    steps.push_back(std::move(step));
  }
  return steps;
}

using Colour = uint64_t;

Colour Mix(Colour a, Colour b) {
  Colour x = a * 0x9e3779b97f4a7c15u + b + 0x7f4a7c159e3779b9u;  // SplitMix64's finaliser
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Colour MixAll(Colour colour, std::vector<Colour> others, bool ordered) {
  if (!ordered) std::sort(others.begin(), others.end());
  for (Colour other : others) colour = Mix(colour, other);
  return colour;
}

// Each line's neighbourhood, however far, as a number: from operands to users and back.
std::vector<Colour> Colours(const std::vector<Step>& steps) {
  constexpr int kRounds = 4;
  std::vector<Colour> colours;
  for (const Step& step : steps) colours.push_back(absl::HashOf(step.text));
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < steps.size(); ++i) {
      std::vector<Colour> operands;
      for (size_t operand : steps[i].operands) operands.push_back(colours[operand]);
      colours[i] = MixAll(Mix(colours[i], 1), std::move(operands), steps[i].ordered);
    }
    std::vector<std::vector<Colour>> users(steps.size());
    for (size_t i = steps.size(); i-- > 0;) {
      colours[i] = MixAll(Mix(colours[i], 2), std::move(users[i]), false);
      for (size_t slot = 0; slot < steps[i].operands.size(); ++slot)
        users[steps[i].operands[slot]].push_back(Mix(colours[i], steps[i].ordered ? slot + 1 : 0));
    }
  }
  return colours;
}

}  // namespace

std::vector<std::string> LocalKeys(absl::Span<const std::string> lines) {
  const std::vector<Step> steps = Steps(lines);
  std::vector<std::string> keys;
  for (const Step& step : steps) {
    std::vector<absl::string_view> operands;
    for (size_t operand : step.operands) operands.push_back(steps[operand].text);
    if (!step.ordered) std::sort(operands.begin(), operands.end());
    keys.push_back(step.text);
    for (absl::string_view operand : operands) absl::StrAppend(&keys.back(), "\n", operand);
  }
  return keys;
}

std::optional<std::vector<size_t>> SameButForOrder(absl::Span<const std::string> a,
                                                   absl::Span<const std::string> b) {
  if (a.size() != b.size()) return std::nullopt;
  const std::vector<Step> a_steps = Steps(a), b_steps = Steps(b);
  const std::vector<Colour> a_colours = Colours(a_steps), b_colours = Colours(b_steps);
  std::vector<Colour> a_sorted = a_colours, b_sorted = b_colours;
  std::sort(a_sorted.begin(), a_sorted.end());
  std::sort(b_sorted.begin(), b_sorted.end());
  if (a_sorted != b_sorted) return std::nullopt;
  absl::flat_hash_map<Colour, std::vector<size_t>> inputs;  // b's, the first one last
  size_t place = 0;
  for (const Step& step : b_steps) place += step.input;
  for (size_t i = b_steps.size(); i-- > 0;)
    if (b_steps[i].input) inputs[b_colours[i]].push_back(--place);
  std::vector<size_t> places;
  for (size_t i = 0; i < a_steps.size(); ++i) {
    if (!a_steps[i].input) continue;
    std::vector<size_t>& candidates = inputs[a_colours[i]];
    if (candidates.empty()) return std::nullopt;  // it met a line that is no input
    places.push_back(candidates.back());
    candidates.pop_back();
  }
  return places;
}

}  // namespace fusiond::cli
