// fusionctl diff: how two graphs become kernels, held against each other.
#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/graph_lines.h"
#include "client/cli/json.h"
#include "client/cli/sequence_diff.h"
#include "client/cli/support.h"
#include "runtime/base/status_macros.h"
#include "runtime/executable/explanation.h"

namespace fusiond::cli {
namespace {

using executable::Fact;
using v1::Explanation;

// Equal lines that are told as their number.
constexpr size_t kFolded = 3;
constexpr char kIr[] = "canonical IR";

struct Side {
  std::string name;
  v1::CompileRequest request;
  v1::ExplainResponse explained;

  const Explanation& plan() const { return explained.schedule(); }
};

// Whether a part is the same, and else how it differs: "first in …".
struct Verdict {
  const char* part;
  bool same = true;
  std::string difference;
};

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

// The place where two lists differ first; their length where they do not.
size_t FirstDifference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(at.first - a.begin());
}

Verdict CompareIr(const Explanation& a, const Explanation& b) {
  Verdict verdict{kIr, a.canonical_ir() == b.canonical_ir(), ""};
  if (verdict.same) return verdict;
  const std::vector<std::string> a_lines = Lines(a.canonical_ir()),
                                 b_lines = Lines(b.canonical_ir());
  if (const auto places = SameButForOrder(a_lines, b_lines)) {
    verdict.difference =
        absl::StrCat("but in the order of inputs and outputs alone: A's inputs are B's ",
                     absl::StrJoin(*places, ", "));
    return verdict;
  }
  const std::vector<DiffRun> runs = DiffSequences(LocalKeys(a_lines), LocalKeys(b_lines));
  for (const DiffRun& run : runs) {
    if (run.same) continue;
    const bool in_a = run.a_begin < run.a_end, in_b = run.b_begin < run.b_end;
    verdict.difference = absl::StrCat(
        "first in ", in_a ? absl::StrCat("A's '", a_lines[run.a_begin], "'") : "",
        in_a && in_b ? " and " : "", in_b ? absl::StrCat("B's '", b_lines[run.b_begin], "'") : "",
        in_a && in_b ? "" : ", which the other has not");
    return verdict;
  }
  verdict.difference = "in what the same steps are applied to";
  return verdict;
}

// Where no kernels are, there is nothing to be different.
bool HasNone(const Explanation& a, const Explanation& b) {
  return a.segments_size() == 0 && b.segments_size() == 0;
}

Verdict CompareSchedules(const Explanation& a, const Explanation& b) {
  Verdict verdict{"schedules", true, ""};
  const auto schedule = [](const Explanation& plan, int segment) -> std::string {
    if (segment >= plan.segments_size()) return "none";
    const Explanation::Choice* chosen = executable::Chosen(plan.segments(segment));
    return chosen == nullptr ? "none" : chosen->schedule();
  };
  for (int s = 0; s < std::max(a.segments_size(), b.segments_size()); ++s) {
    const std::string of_a = schedule(a, s), of_b = schedule(b, s);
    if (of_a == of_b) continue;
    return {"schedules", false, absl::StrCat("first in segment ", s, ", ", of_a, " and ", of_b)};
  }
  return verdict;
}

std::vector<const Explanation::Kernel*> Kernels(const Explanation& plan) {
  std::vector<const Explanation::Kernel*> kernels;
  for (const Explanation::Segment& segment : plan.segments())
    for (const Explanation::Kernel& kernel : segment.kernels()) kernels.push_back(&kernel);
  return kernels;
}

// "line 212" of two kernels' texts; nothing where they cannot be had.
std::string FirstLine(client::Client& client, const Side& a, const std::string& a_kernel,
                      const Side& b, const std::string& b_kernel) {
  const auto text = [&](const Side& side, const std::string& kernel) {
    v1::GetArtifactsRequest request;
    *request.mutable_request() = side.request;
    request.add_kinds("cuda");
    std::string found;
    const absl::StatusOr<v1::GetArtifactsResponse> response = client.GetArtifacts(request);
    if (!response.ok()) return found;
    for (const v1::GetArtifactsResponse::Artifact& artifact : response->artifacts())
      if (artifact.name() == kernel) found = artifact.contents();
    return found;
  };
  const std::string of_a = text(a, a_kernel), of_b = text(b, b_kernel);
  if (of_a.empty() || of_b.empty()) return "";
  const std::vector<std::string> a_lines = absl::StrSplit(of_a, '\n');
  const std::vector<std::string> b_lines = absl::StrSplit(of_b, '\n');
  if (of_a == of_b) return ", in NVRTC's options";
  return absl::StrCat(", line ", FirstDifference(a_lines, b_lines) + 1);
}

Verdict CompareKernels(client::Client& client, const Side& a, const Side& b) {
  Verdict verdict{"kernels", true, ""};
  if (a.plan().arch() != b.plan().arch()) {
    return {"kernels", false,
            absl::StrCat("being for arch ", a.plan().arch(), " and ", b.plan().arch())};
  }
  const auto of_a = Kernels(a.plan()), of_b = Kernels(b.plan());
  for (size_t k = 0; k < std::max(of_a.size(), of_b.size()); ++k) {
    if (k >= of_a.size() || k >= of_b.size())
      return {"kernels", false, absl::StrCat(of_a.size(), " of A and ", of_b.size(), " of B")};
    if (of_a[k]->digest() == of_b[k]->digest()) continue;
    return {"kernels", false,
            absl::StrCat(
                "first in ", of_a[k]->name(),
                of_a[k]->name() == of_b[k]->name() ? "" : absl::StrCat(" and ", of_b[k]->name()),
                FirstLine(client, a, of_a[k]->name(), b, of_b[k]->name()))};
  }
  return verdict;
}

// `a` and `b` line by line, equal runs folded; `keys`: what makes lines equal.
void PrintDiff(const std::vector<std::string>& a, const std::vector<std::string>& a_keys,
               const std::vector<std::string>& b, const std::vector<std::string>& b_keys) {
  for (const DiffRun& run : DiffSequences(a_keys, b_keys)) {
    const size_t count = run.a_end - run.a_begin;
    if (run.same && count >= kFolded) {
      std::cout << "  ... " << count << " the same\n";
      continue;
    }
    for (size_t i = run.a_begin; i < run.a_end; ++i)
      std::cout << (run.same ? "  " : "A ") << a[i] << "\n";
    for (size_t i = run.b_begin; !run.same && i < run.b_end; ++i) std::cout << "B " << b[i] << "\n";
  }
}

void PrintFacts(const std::string& title, const std::vector<Fact>& a, const std::vector<Fact>& b) {
  if (a == b) {
    std::cout << "\n" << title << ": the same\n";
    return;
  }
  const auto lines = [](const std::vector<Fact>& facts) {
    std::vector<std::string> text;
    for (const Fact& fact : facts) text.push_back(executable::ToText(fact));
    return text;
  };
  const std::vector<std::string> a_lines = lines(a), b_lines = lines(b);
  std::cout << "\n" << title << "\n";
  PrintDiff(a_lines, a_lines, b_lines, b_lines);
}

void Print(const Side& a, const Side& b, const std::vector<Verdict>& verdicts) {
  const bool none = HasNone(a.plan(), b.plan());
  std::cout << absl::StrJoin(verdicts, "; ", [&](std::string* out, const Verdict& v) {
    absl::StrAppend(out, v.part,
                    none && v.part != kIr ? ": none"
                    : v.same              ? ": the same"
                                          : ": different, ",
                    v.difference);
  }) << "\n\n";
  for (const auto& [mark, side] : {std::pair("A  ", &a), std::pair("B  ", &b)})
    std::cout << mark << side->name << ", key " << Hex(side->explained.key()).substr(0, 16) << "\n";
  PrintFacts("plan", executable::Facts(a.plan()), executable::Facts(b.plan()));
  const std::vector<std::string> a_lines = executable::GraphLines(a.plan());
  const std::vector<std::string> b_lines = executable::GraphLines(b.plan());
  if (a_lines == b_lines) {
    std::cout << "\ncanonical IR: the same\n";
  } else if (SameButForOrder(a_lines, b_lines)) {
    std::cout << "\ncanonical IR: the same but for the order of inputs and outputs\n";
  } else {
    std::cout << "\ncanonical IR\n";
    PrintDiff(a_lines, LocalKeys(a_lines), b_lines, LocalKeys(b_lines));
  }
  const int segments = std::max(a.plan().segments_size(), b.plan().segments_size());
  for (int s = 0; s < segments; ++s) {
    const auto facts = [&](const Side& side) {
      return s < side.plan().segments_size() ? executable::Facts(side.plan().segments(s))
                                             : std::vector<Fact>();
    };
    PrintFacts(absl::StrCat("segment ", s), facts(a), facts(b));
  }
}

void PrintAsJson(const Side& a, const Side& b, const std::vector<Verdict>& verdicts) {
  std::cout << "{\n";
  for (const Verdict& v : verdicts) {
    std::cout << "  "
              << JsonString(absl::AsciiStrToLower(absl::StrReplaceAll(v.part, {{" ", "_"}})))
              << ": {\"same\": " << (v.same ? "true" : "false")
              << ", \"difference\": " << JsonString(v.difference) << "},\n";
  }
  std::cout << "  \"a\": " << ToJson(a.explained) << ",\n  \"b\": " << ToJson(b.explained) << "\n}"
            << std::endl;
}

// `like`: the side of a key whose target a file takes when the command line names none.
absl::StatusOr<Side> ExplainSide(client::Client& client, const std::string& what,
                                 const GraphArguments& arguments, const Side* like) {
  Side side;
  side.name = what;
  GraphArguments graph = SplitExtents(what, "");
  graph.target =
      like != nullptr && !arguments.target_given ? like->request.target() : arguments.target;
  if (!IsKey(what)) graph.options = arguments.options;
  FUSIOND_ASSIGN_OR_RETURN(v1::ExplainRequest request, MakeExplainRequest(graph));
  request.set_schedule(true);
  FUSIOND_ASSIGN_OR_RETURN(side.explained, client.Explain(request));
  side.request = side.explained.has_request() ? side.explained.request() : request.request();
  return side;
}

}  // namespace

int Diff(const Common& common, const GraphArguments& arguments, const std::string& a,
         const std::string& b) {
  if (IsKey(a) && IsKey(b) && (arguments.target_given || !arguments.options.empty())) {
    return Fail(common, WrongUsage(absl::InvalidArgumentError(
                            "--target and --option are of files, and both sides are keys")));
  }
  auto client = Connect(common);
  if (!client.ok()) return Fail(common, client.status());
  // Keys first: they say what target files are to be held against.
  absl::StatusOr<Side> sides[2] = {absl::UnknownError(""), absl::UnknownError("")};
  const std::string* names[2] = {&a, &b};
  const size_t first = IsKey(a) || !IsKey(b) ? 0 : 1;
  for (const size_t i : {first, 1 - first}) {
    const Side* like = i != first && IsKey(*names[first]) ? &*sides[first] : nullptr;
    sides[i] = ExplainSide(**client, *names[i], arguments, like);
    if (!sides[i].ok()) return Fail(common, sides[i].status());
  }
  const std::vector<Verdict> verdicts = {CompareIr(sides[0]->plan(), sides[1]->plan()),
                                         CompareSchedules(sides[0]->plan(), sides[1]->plan()),
                                         CompareKernels(**client, *sides[0], *sides[1])};
  if (common.json) {
    PrintAsJson(*sides[0], *sides[1], verdicts);
  } else {
    Print(*sides[0], *sides[1], verdicts);
  }
  return kExitOk;
}

}  // namespace fusiond::cli
