#include "runtime/executable/explanation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/counted.h"

namespace fusiond::executable {
namespace {

using base::Counted;
using v1::Explanation;

constexpr size_t kNameWidth = 12;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Source: CUDA C++ Programming Guide 13.0, table "Technical Specifications per Compute Capability".
int MaxCtasPerSm(int compute_capability) {
  if (compute_capability == 86) return 16;
  return compute_capability == 89 || compute_capability == 120 ? 24 : 32;
}

int CtasPerSm(const Explanation::Kernel& kernel, const DeviceInfo& device) {
  constexpr int64_t kWarp = 32, kRegisterUnit = 256, kReservedSmem = 1024, kSmemUnit = 128;
  const int64_t warps = (kernel.threads() + kWarp - 1) / kWarp;
  if (warps == 0) return 0;
  const int64_t warp_registers =
      RoundUp(std::max(1, kernel.resources().registers()) * kWarp, kRegisterUnit);
  const int64_t smem =
      RoundUp(kernel.dynamic_smem_bytes() + kernel.resources().static_smem_bytes() + kReservedSmem,
              kSmemUnit);
  return static_cast<int>(
      std::min({int64_t{MaxCtasPerSm(device.compute_capability)},
                device.max_threads_per_sm / (warps * kWarp),
                device.registers_per_sm / warp_registers / warps, device.smem_per_sm / smem}));
}

std::string Estimate(int64_t bytes, int64_t kernels, double microseconds) {
  return absl::StrCat(Counted(kernels, "kernel"), ", ", DecimalBytes(bytes), " moved, ",
                      absl::StrFormat("%.2f us estimated", microseconds));
}

std::string GridText(const Explanation::Kernel& kernel) {
  std::vector<int64_t> grid(kernel.grid().begin(), kernel.grid().end());
  while (grid.size() > 1 && grid.back() == 1) grid.pop_back();
  return absl::StrJoin(grid, "x");
}

std::string KernelText(const Explanation::Kernel& kernel) {
  std::string text = absl::StrCat(kernel.name(), ": grid ", GridText(kernel), ", ",
                                  Counted(kernel.threads(), "thread"));
  if (kernel.cluster() > 1) absl::StrAppend(&text, ", clusters of ", kernel.cluster());
  const int64_t smem = kernel.dynamic_smem_bytes() + kernel.resources().static_smem_bytes();
  absl::StrAppend(&text, "; ", smem == 0 ? "no" : DecimalBytes(smem), " shared memory");
  if (kernel.has_resources()) {
    const Explanation::Kernel::Resources& used = kernel.resources();
    absl::StrAppend(
        &text, "; ", Counted(used.registers(), "register"), ", ",
        used.spill_bytes() == 0 ? "no spills" : absl::StrCat(used.spill_bytes(), " B of spills"),
        "; ", Counted(used.ctas_per_sm(), "CTA"), " an SM");
  }
  if (kernel.pdl()) absl::StrAppend(&text, "; begins before the kernel ahead has ended");
  if (!kernel.problem().empty())
    absl::StrAppend(&text, "; registers not known: ", kernel.problem());
  return text;
}

std::string TensorText(const Explanation::Tensor& tensor) {
  std::string text = absl::StrCat(tensor.name(), " ", tensor.dtype());
  if (tensor.read_bytes() > 0) absl::StrAppend(&text, ", read ", DecimalBytes(tensor.read_bytes()));
  if (tensor.written_bytes() > 0)
    absl::StrAppend(&text, ", written ", DecimalBytes(tensor.written_bytes()));
  return absl::StrCat(text, ", ", tensor.access_bytes(), " B an access");
}

// "input 0 64 B, %7 128 B: 192 B a thread".
std::string HeldText(const Explanation::Segment& segment, bool shared) {
  int64_t bytes = 0;
  std::vector<std::string> parts;
  for (const Explanation::Buffer& buffer : segment.held()) {
    if (buffer.shared() != shared) continue;
    bytes += buffer.bytes();
    parts.push_back(absl::StrCat(buffer.what(), " ", DecimalBytes(buffer.bytes())));
  }
  if (parts.empty()) return "";
  return absl::StrCat(absl::StrJoin(parts, ", "), ": ", DecimalBytes(bytes),
                      shared ? " of a CTA's shared memory" : " of a thread's registers");
}

// Which segments compute each node, by node: "0,2".
std::map<uint32_t, std::string> Owners(const Explanation& explanation) {
  std::map<uint32_t, std::string> owners;
  for (int s = 0; s < explanation.segments_size(); ++s) {
    for (const uint32_t node : explanation.segments(s).nodes())
      absl::StrAppend(&owners[node], owners[node].empty() ? "" : ",", s);
  }
  return owners;
}

void Append(std::string& text, absl::string_view margin, const std::vector<Fact>& facts) {
  for (const Fact& fact : facts) absl::StrAppend(&text, margin, ToText(fact), "\n");
}

}  // namespace

void SetResources(const KernelResources& resources, const DeviceInfo& device,
                  Explanation::Kernel& kernel) {
  Explanation::Kernel::Resources& to = *kernel.mutable_resources();
  to.set_registers(static_cast<int32_t>(resources.registers));
  to.set_spill_bytes(resources.spill_bytes);
  to.set_stack_bytes(resources.stack_bytes);
  to.set_static_smem_bytes(resources.static_smem_bytes);
  to.set_ctas_per_sm(CtasPerSm(kernel, device));
}

const Explanation::Choice* Chosen(const Explanation::Segment& segment) {
  for (const Explanation::Choice& choice : segment.choices())
    if (choice.chosen()) return &choice;
  return nullptr;
}

ExplainedCost CostOf(const Explanation& explanation) {
  ExplainedCost cost;
  for (const Explanation::Segment& segment : explanation.segments()) {
    cost.kernels += segment.kernels_size();
    if (const Explanation::Choice* choice = Chosen(segment)) {
      cost.dram_bytes += choice->dram_bytes();
      cost.microseconds += choice->microseconds();
    }
  }
  return cost;
}

std::string ToText(const Fact& fact) {
  return absl::StrFormat("%-*s%s", kNameWidth, fact.name, fact.text);
}

std::vector<Fact> Facts(const Explanation& e) {
  std::vector<Fact> facts = {{"target", absl::StrCat(e.profile(), ", arch ", e.arch(), ", ",
                                                     Counted(e.sm_count(), "SM"))}};
  const std::map<std::string, std::string> options(e.options().begin(), e.options().end());
  for (const auto& [name, value] : options)
    facts.push_back({"option", absl::StrCat(name, "=", value)});
  for (int i = 0; i < e.inputs_size(); ++i)
    facts.push_back({absl::StrCat("input ", i), e.inputs(i)});
  for (int i = 0; i < e.outputs_size(); ++i)
    facts.push_back({absl::StrCat("output ", i), e.outputs(i)});
  const ExplainedCost cost = CostOf(e);
  facts.push_back({"all", absl::StrCat(Counted(e.segments_size(), "segment"), ", ",
                                       Estimate(cost.dram_bytes, cost.kernels, cost.microseconds),
                                       ", ", DecimalBytes(e.workspace_bytes()), " of workspace")});
  for (const std::string& cut : e.cuts()) facts.push_back({"cut", cut});
  for (const std::string& note : e.notes()) facts.push_back({"note", note});
  return facts;
}

std::vector<Fact> Facts(const Explanation::Segment& segment) {
  std::vector<Fact> facts = {{"space", segment.space()}};
  if (segment.copy()) facts.push_back({"", "a copy to outputs that could not be written in place"});
  if (segment.last_resort())
    facts.push_back({"", "one op, the last resort: no scheduler took it with others"});
  if (const Explanation::Choice* choice = Chosen(segment)) {
    facts.push_back({"schedule", choice->schedule()});
    if (!choice->meaning().empty()) facts.push_back({"", choice->meaning()});
    if (!choice->refused().empty()) facts.push_back({"", choice->refused()});
    facts.push_back(
        {"estimate", Estimate(choice->dram_bytes(), choice->kernels(), choice->microseconds())});
  }
  for (const Explanation::Kernel& kernel : segment.kernels())
    facts.push_back({"kernel", KernelText(kernel)});
  for (const Explanation::Tensor& tensor : segment.tensors())
    facts.push_back({"memory", TensorText(tensor)});
  for (const bool shared : {false, true}) {
    if (std::string held = HeldText(segment, shared); !held.empty())
      facts.push_back({"held", std::move(held)});
  }
  for (const Explanation::Choice& choice : segment.choices()) {
    if (choice.chosen()) continue;
    if (choice.refused().empty()) {
      facts.push_back({"other", absl::StrCat(choice.schedule(), ": ",
                                             Estimate(choice.dram_bytes(), choice.kernels(),
                                                      choice.microseconds()))});
    } else {
      facts.push_back({"refused", absl::StrCat(choice.schedule(), ": ", choice.refused())});
    }
  }
  return facts;
}

std::vector<std::string> GraphLines(const Explanation& explanation) {
  const std::string& text =
      explanation.scheduled_ir().empty() ? explanation.canonical_ir() : explanation.scheduled_ir();
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (!lines.empty() && absl::StartsWith(lines[0], "fir ")) lines.erase(lines.begin());
  return lines;
}

std::string Print(const Explanation& explanation) {
  std::string text;
  Append(text, "", Facts(explanation));
  absl::StrAppend(
      &text, "\n",
      explanation.scheduled_ir().empty() ? "canonical IR" : "canonical IR, as it is scheduled",
      "; in front, the segments that compute a node\n");
  const std::map<uint32_t, std::string> owners = Owners(explanation);
  const std::vector<std::string> lines = GraphLines(explanation);
  for (uint32_t i = 0; i < lines.size(); ++i) {
    const auto owner = owners.find(i);
    absl::StrAppendFormat(&text, "%-*s%s\n", kNameWidth, owner == owners.end() ? "" : owner->second,
                          lines[i]);
  }
  for (int s = 0; s < explanation.segments_size(); ++s) {
    absl::StrAppend(&text, "\nsegment ", s, "\n");
    Append(text, "  ", Facts(explanation.segments(s)));
  }
  return text;
}

std::string DecimalBytes(int64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (number < 1e4) return absl::StrFormat("%d B", bytes);
  if (number < 1e6) return absl::StrFormat("%.1f kB", number / 1e3);
  if (number < 1e9) return absl::StrFormat("%.1f MB", number / 1e6);
  return absl::StrFormat("%.1f GB", number / 1e9);
}

}  // namespace fusiond::executable
