// fusiond-opt: the compiler's stages on the command line.
//
//   fusiond-opt rms_norm.fir                              parse, verify, print
//   fusiond-opt --extents=2048x8192,8192 --hash -         the hash of a graph bound to extents
//   fusiond-opt --passes=all --math=strict rms_norm.fir   its canonical form
//   fusiond-opt --passes=fold_casts,deduplicate --print-after=all --time-passes …
//   fusiond-opt --emit=cuda --arch=sm_89 softmax.fir      the kernels' text
//   fusiond-opt --emit=schedule --explain softmax.fir     segments, candidates, refusals
//
// From --emit=schedule on, inputs are taken to be laid out as the graph says, 16-byte aligned.
//
// Dumps and times go to stderr, the result to stdout.
// Exit status: 0 done; 1 the graph was refused, with the reason on stderr; 2 a flag is wrong, or a
// file (NVRTC among them) cannot be read or written.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/compiler.h"
#include "compiler/ir/hash.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/pass_options.h"
#include "compiler/passes/pipeline.h"
#include "runtime/base/file.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/executable/explanation.h"

namespace fusiond {
namespace {

struct Flags {
  std::string file = "-";
  std::string extents;
  std::vector<std::string> passes;
  std::vector<std::string> disabled_passes;
  std::string print_after;
  bool time_passes = false;
  std::string math;
  std::string excess_precision;
  std::string emit = "ir";
  std::string arch = "sm_90a";
  std::vector<std::string> options;
  std::string nvrtc;
  int attempt = 0;
  bool explain = false;
  bool verify_only = false;
  bool hash = false;
};

// Marks what is wrong with the command line, not with the graph: exit status 2.
constexpr char kUsageMark[] = "fusiond-opt/usage";

absl::Status WrongUsage(absl::Status status) {
  if (!status.ok()) status.SetPayload(kUsageMark, absl::Cord());
  return status;
}

absl::StatusOr<compiler::Options> CompileOptions(const Flags& flags) {
  std::map<std::string, std::string> options;
  for (const std::string& option : flags.options) {
    if (!absl::StrContains(option, '=')) {
      return absl::InvalidArgumentError(
          absl::StrCat("--option: '", absl::CHexEscape(option), "' is not NAME=VALUE"));
    }
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(option, absl::MaxSplits('=', 1));
    options.insert(pair);
  }
  if (!flags.math.empty()) options["math"] = flags.math;
  if (!flags.excess_precision.empty()) options["excess_precision"] = flags.excess_precision;
  return compiler::OptionsFromMap(options);
}

absl::StatusOr<compiler::PlanResult> Plan(ir::Graph graph, const Flags& flags) {
  compiler::PlanRequest request;
  FUSIOND_ASSIGN_OR_RETURN(request.options, CompileOptions(flags));
  FUSIOND_ASSIGN_OR_RETURN(request.device, executable::ProfileByName(flags.arch));
  request.attempt = flags.attempt;
  request.explain = flags.explain;
  for (ir::ValueId input : graph.inputs())
    request.inputs.push_back({graph.type(input).shape, graph.type(input).strides});
  request.graph = std::move(graph);
  return compiler::Plan(request);
}

// What NVRTC says of the kernels of one image.
void AddResources(const std::string& name, const std::vector<nvrtc::EntryResources>& entries,
                  const executable::DeviceInfo& device, v1::Explanation& explanation) {
  for (v1::Explanation::Segment& segment : *explanation.mutable_segments()) {
    for (v1::Explanation::Kernel& kernel : *segment.mutable_kernels()) {
      for (const nvrtc::EntryResources& entry : entries) {
        if (kernel.name() != name || kernel.entry() != entry.entry) continue;
        executable::SetResources({entry.registers, entry.spill_store_bytes + entry.spill_load_bytes,
                                  entry.stack_bytes, entry.static_smem_bytes},
                                 device, kernel);
      }
    }
  }
}

// One part an image: PTX, or cubins one after another.
absl::StatusOr<std::string> CompileAll(compiler::PlanResult& plan, const Flags& flags) {
  nvrtc::NvrtcLocation location;
  location.explicit_path = flags.nvrtc;
  const absl::StatusOr<std::unique_ptr<nvrtc::Nvrtc>> nvrtc = nvrtc::Nvrtc::Open(location);
  FUSIOND_RETURN_IF_ERROR(WrongUsage(nvrtc.status()));
  FUSIOND_ASSIGN_OR_RETURN(const executable::DeviceInfo device,
                           executable::ProfileByName(flags.arch));
  std::string text;
  for (const compiler::KernelSource& source : plan.sources) {
    nvrtc::CompileInput input;
    input.source = source.text;
    input.name = source.name + ".cu";
    input.arch = plan.skeleton.arch;
    input.options = source.nvrtc_options;
    input.want_ptx = flags.emit == "ptx";
    FUSIOND_ASSIGN_OR_RETURN(const nvrtc::CompileOutput output, (*nvrtc)->Compile(input));
    absl::StrAppend(&text, flags.emit == "ptx" ? output.ptx : output.cubin);
    AddResources(source.name, output.entries, device, plan.explanation);
  }
  if (flags.explain) std::fputs(executable::Print(plan.explanation).c_str(), stderr);
  return text;
}

absl::StatusOr<std::string> RunBackEnd(ir::Graph graph, const Flags& flags) {
  FUSIOND_ASSIGN_OR_RETURN(compiler::PlanResult plan, Plan(std::move(graph), flags));
  if (flags.explain && flags.emit != "ptx" && flags.emit != "cubin")
    std::fputs(executable::Print(plan.explanation).c_str(), stderr);
  for (const std::string& note : plan.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  if (plan.sources.empty()) {
    std::fprintf(stderr, "note: arch %s has no kernels: its device evaluates the graph\n",
                 plan.skeleton.arch.c_str());
  }
  if (flags.emit == "schedule") return plan.skeleton.provenance.schedule;
  if (flags.emit != "cuda") return CompileAll(plan, flags);
  std::string text;
  for (const compiler::KernelSource& source : plan.sources)
    absl::StrAppend(&text, "// ---- ", source.name, "\n", source.text);
  return text;
}

// Reports each pass on stderr as the flags ask.
class PassReport {
 public:
  explicit PassReport(const Flags& flags) : flags_(flags), last_(Clock::now()) {}

  void After(absl::string_view name, int round, bool changed, const ir::Graph& graph) {
    const Clock::time_point now = Clock::now();
    spent_[std::string(name)] += now - last_;
    if (flags_.print_after == "all" || flags_.print_after == name) {
      const std::string text = changed ? "\n" + ir::Print(graph) : " (unchanged)\n";
      std::fprintf(stderr, "# after %s, round %d%s", std::string(name).c_str(), round,
                   text.c_str());
    }
    last_ = Clock::now();
  }

  void PrintTimes() const {
    if (!flags_.time_passes) return;
    for (const auto& [name, spent] : spent_) {
      std::fprintf(stderr, "%10.3f ms  %s\n",
                   std::chrono::duration<double, std::milli>(spent).count(), name.c_str());
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Flags& flags_;
  Clock::time_point last_;
  std::map<std::string, Clock::duration> spent_;
};

absl::StatusOr<ir::Graph> RunPasses(ir::Graph graph, const Flags& flags) {
  PassReport report(flags);
  passes::PassContext context;
  FUSIOND_ASSIGN_OR_RETURN(const compiler::Options options, CompileOptions(flags));
  context.options = compiler::PassOptions(options);
  context.options.disabled = flags.disabled_passes;
  context.after_pass = [&](absl::string_view name, int round, bool changed,
                           const ir::Graph& after) { report.After(name, round, changed, after); };
  absl::StatusOr<ir::Graph> result;
  if (flags.passes == std::vector<std::string>{"all"}) {
    result = passes::Canonicalise(graph, context);
  } else {
    const std::vector<absl::string_view> names(flags.passes.begin(), flags.passes.end());
    FUSIOND_RETURN_IF_ERROR(passes::RunPasses(graph, names, context).status());
    result = std::move(graph);
  }
  report.PrintTimes();
  return result;
}

// What no graph makes right.
absl::Status CheckFlags(const Flags& flags) {
  FUSIOND_RETURN_IF_ERROR(CompileOptions(flags).status());
  if (flags.passes.size() > 1 && std::count(flags.passes.begin(), flags.passes.end(), "all") > 0) {
    return absl::InvalidArgumentError("--passes: all stands alone");
  }
  const std::pair<const char*, bool> reports[] = {{"--print-after", !flags.print_after.empty()},
                                                  {"--time-passes", flags.time_passes}};
  for (const auto& [flag, given] : reports) {
    if (given && flags.passes.empty())
      return absl::InvalidArgumentError(absl::StrCat(flag, " is of --passes, and none is run"));
  }
  if (!flags.disabled_passes.empty() && flags.passes != std::vector<std::string>{"all"})
    return absl::InvalidArgumentError(
        "--disable-passes leaves out of --passes=all, and only there");
  if (flags.emit == "ir") return absl::OkStatus();
  const absl::Status arch = executable::ProfileByName(flags.arch).status();
  if (!arch.ok()) return absl::Status(arch.code(), absl::StrCat("--arch: ", arch.message()));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadText(const std::string& file) {
  const size_t limit = ir::Limits().max_bytes;
  if (file == "-") {
    // One byte more than a graph may have, so that endless input ends.
    std::string text(limit + 1, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), stdin));
    return text;
  }
  absl::StatusOr<std::string> text = base::ReadFile(file, limit);
  // A file that is too large is a graph that is.
  return text.ok() || absl::IsResourceExhausted(text.status()) ? text : WrongUsage(text.status());
}

// What goes to stdout.
absl::StatusOr<std::string> Run(const Flags& flags) {
  FUSIOND_RETURN_IF_ERROR(WrongUsage(CheckFlags(flags)));
  FUSIOND_ASSIGN_OR_RETURN(const std::string text, ReadText(flags.file));
  ir::ValueNames names;
  FUSIOND_ASSIGN_OR_RETURN(ir::Graph graph, ir::Parse(text, {}, &names));
  FUSIOND_RETURN_IF_ERROR(ir::Verify(graph, ir::Stage::kImported));
  // Passes and kernels are of known extents; the graph alone may say them all.
  if (!flags.extents.empty() || !flags.passes.empty() || flags.emit != "ir") {
    const absl::StatusOr<std::vector<ir::Dims>> extents = ir::ParseExtents(flags.extents, graph);
    if (!extents.ok()) {
      return WrongUsage(
          absl::InvalidArgumentError(absl::StrCat("--extents: ", extents.status().message())));
    }
    FUSIOND_ASSIGN_OR_RETURN(graph, ir::Specialise(graph, *extents, &names));
    FUSIOND_RETURN_IF_ERROR(ir::Verify(graph, ir::Stage::kSpecialised));
  }
  if (!flags.passes.empty()) {
    FUSIOND_ASSIGN_OR_RETURN(graph, RunPasses(std::move(graph), flags));
  }
  if (flags.hash) return ir::GraphHash(graph).Hex() + "\n";
  if (flags.verify_only) return "";
  return flags.emit == "ir" ? ir::Print(graph) : RunBackEnd(std::move(graph), flags);
}

int Main(int argc, char** argv) {
  base::HoldStandardStreams(argv);
  Flags flags;
  CLI::App app("Runs stages of the fusiond compiler on a graph in .fir text.", "fusiond-opt");
  app.add_option("file", flags.file, "The graph; - is standard input")->capture_default_str();
  app.add_option("--extents,--specialise", flags.extents,
                 "Bind symbolic extents first: the inputs' shapes in order, as 2048x8192,-,8192; "
                 "- keeps what the graph says, as for a scalar");
  std::vector<std::string> names;
  for (const passes::PassInfo& pass : passes::Pipeline()) names.emplace_back(pass.name);
  const CLI::IsMember one_pass(names);
  const std::string list = absl::StrJoin(names, ", ");
  names.emplace_back("all");
  const CLI::IsMember one_pass_or_all(names);
  app.add_option("--passes", flags.passes,
                 "Run these passes, once each in the order given, or all: the whole pipeline. "
                 "There are " +
                     list)
      ->check(one_pass_or_all)
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--disable-passes", flags.disabled_passes, "Leave these out of --passes=all")
      ->check(one_pass)
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--print-after", flags.print_after, "Print the graph after this pass, or all")
      ->check(one_pass_or_all);
  app.add_flag("--time-passes", flags.time_passes, "Print each pass's time");
  app.add_option("--math", flags.math, "Short for --option=math=…: strict, default or fast");
  app.add_option("--excess-precision", flags.excess_precision,
                 "Short for --option=excess_precision=…: true or false");
  app.add_option("--emit", flags.emit, "What to print")
      ->check(CLI::IsMember({"ir", "schedule", "cuda", "ptx", "cubin"}))
      ->capture_default_str();
  app.add_option("--arch", flags.arch, "Arch or device profile: sm_90a, h200, …")
      ->capture_default_str();
  app.add_option("--option", flags.options, "A compile option, as math=strict; repeatable")
      ->allow_extra_args(false);
  app.add_option("--attempt", flags.attempt, "Which candidate; the last one if there are fewer")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_option("--nvrtc", flags.nvrtc, "libnvrtc, or the folder that holds it");
  app.add_flag("--explain", flags.explain,
               "To stderr: inputs, IR, segments, schedules, kernels, what was refused and why; "
               "registers and spills with --emit=ptx or cubin");
  app.add_flag("--verify", flags.verify_only, "Print nothing; the exit status tells");
  app.add_flag("--hash", flags.hash, "Print the graph's hash");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::StatusOr<std::string> output = Run(flags);
  if (!output.ok()) {
    std::fprintf(stderr, "fusiond-opt: %s: %s\n",
                 flags.file == "-" ? "standard input" : flags.file.c_str(),
                 output.status().ToString(absl::StatusToStringMode::kWithNoExtraData).c_str());
    return output.status().GetPayload(kUsageMark) ? 2 : 1;
  }
  std::fwrite(output->data(), 1, output->size(), stdout);
  if (std::fflush(stdout) == 0) return 0;
  std::fputs("fusiond-opt: standard output cannot be written\n", stderr);
  return 2;
}

}  // namespace
}  // namespace fusiond

int main(int argc, char** argv) { return fusiond::Main(argc, argv); }
