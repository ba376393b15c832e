// fusionctl: the command line of fusiond.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cc/paths.h"
#include "client/cli/commands.h"
#include "client/cli/support.h"
#include "runtime/base/standard_streams.h"
#include "runtime/executable/device_info.h"

namespace fusiond::cli {
namespace {

constexpr char kAbout[] = "fusionctl: talks to a fusiond daemon.";
constexpr char kExitCodes[] =
    "Exit codes:\n"
    "  0  done\n"
    "  1  refused or failed\n"
    "  2  wrong usage, or a file that cannot be used\n"
    "  3  no daemon answers\n"
    "  4  run --check: a result is off tolerance\n"
    "Errors go to stderr and, with --json, as an object to stdout.";
constexpr char kGraphHelp[] = "graph (.fir text), - for standard input";
constexpr char kMoreHelp[] = "fusionctl --help has --sockets, --json and the exit codes.";

// "math=strict" → {"math", "strict"}
std::map<std::string, std::string> ParseOptions(const std::vector<std::string>& entries) {
  std::map<std::string, std::string> options;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos)
      throw CLI::ValidationError("--option", "'" + entry + "' is not NAME=VALUE");
    options[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return options;
}

// "cpu; an arch: sm_80, …; a profile: a100, …; or …": what --target takes.
std::string KnownTargets() {
  std::vector<std::string> archs, profiles;
  for (const executable::DeviceInfo& info : executable::Profiles()) {
    if (info.arch == executable::kCpuArch) continue;
    (info.profile == info.arch ? archs : profiles).push_back(info.profile);
  }
  return absl::StrCat("cpu; an arch: ", absl::StrJoin(archs, ", "),
                      "; a profile: ", absl::StrJoin(profiles, ", "),
                      "; or a device's UUID (fusionctl devices)");
}

// More than zero and at most a day; not what only parses (nan, inf).
CLI::Validator Seconds() {
  const auto check = [](std::string& text) -> std::string {
    double seconds = 0;
    if (CLI::detail::lexical_cast(text, seconds) && seconds > 0 && seconds <= 86400) return "";
    return "more than 0 and at most 86400 seconds, not '" + text + "'";
  };
  return CLI::Validator(check, "SECONDS");
}

// The parser would take -1 as the largest number, and what is too large as it too.
CLI::Validator Unsigned() {
  const auto check = [](std::string& text) -> std::string {
    uint64_t number = 0;
    return absl::SimpleAtoi(text, &number) ? "" : "0 to 2^64 - 1, not '" + text + "'";
  };
  return CLI::Validator(check, "");
}

// A flag that takes one value each time it stands, or several between commas; never the words
// behind them.
CLI::Option* AddList(CLI::App& command, const std::string& flag, std::vector<std::string>& list,
                     const std::string& type, const std::string& help) {
  return command.add_option(flag, list, help)->type_name(type)->allow_extra_args(false);
}

class CommandLine {
 public:
  CommandLine() {
    common_.sockets = client::DefaultSocketFolder();
    app_.require_subcommand(1);
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app_.footer(kExitCodes);
    app_.add_option("--sockets", common_.sockets,
                    "with control.sock and channel.sock. Without it: $FUSIOND_SOCKETS, else "
                    "$XDG_RUNTIME_DIR/fusiond where a daemon of yours has its sockets, else "
                    "/run/fusiond")
        ->type_name("FOLDER")
        ->capture_default_str();
    app_.add_flag("--json", common_.json, "print JSON");
    app_.fallthrough();
    AddCompile();
    AddRun();
    AddWarm();
    AddExplain();
    AddDiff();
    AddArtifacts();
    AddCommand(app_, "status", "state of the daemon", [this] { return Status(common_); });
    AddCommand(app_, "devices", "devices of the daemon's host",
               [this] { return Devices(common_); });
    AddCache();
  }

  int Main(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& help) {
      return app_.exit(help);
    } catch (const CLI::ParseError& error) {
      common_.json = std::find(argv, argv + argc, std::string("--json")) != argv + argc;
      // CLI11 misses what must be there before it looks at the words that it does not know.
      const std::vector<std::string> unknown = app_.remaining(true);
      const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
      const std::string what = missing && !unknown.empty()
                                   ? absl::StrCat("'", unknown[0], "' is not known here")
                                   : error.what();
      return Fail(common_, WrongUsage(absl::InvalidArgumentError(
                               absl::StrCat(what, "; --help lists what there is"))));
    }
    const int code = run_();
    std::cout.flush();
    if (std::cout.good()) return code;
    return Fail(common_, WrongUsage(absl::DataLossError("standard output cannot be written")));
  }

 private:
  CLI::App& AddCommand(CLI::App& parent, const std::string& name, const std::string& help,
                       std::function<int()> run) {
    CLI::App& command = *parent.add_subcommand(name, help);
    command.footer(kMoreHelp);
    command.callback([this, &command, run = std::move(run)] {
      graph_.options = ParseOptions(options_);
      const CLI::Option* target = command.get_option_no_throw("--target");
      graph_.target_given = target != nullptr && target->count() > 0;
      run_ = run;
    });
    return command;
  }

  void AddOptions(CLI::App& command) {
    AddList(command, "--option,-o", options_, "NAME=VALUE",
            "compile option: math=strict|default|fast, excess_precision=true|false, "
            "precision=native|double (cpu)");
  }

  void AddTarget(CLI::App& command) {
    command.add_option("--target", graph_.target, KnownTargets())
        ->type_name("TARGET")
        ->capture_default_str();
    AddOptions(command);
  }

  void AddGraph(CLI::App& command, const std::string& help = kGraphHelp) {
    command.add_option("graph", graph_.file, help)->type_name("FILE")->required();
    command
        .add_option("--extents", graph_.extents,
                    "extents of each input in order, as 2048x8192,-,8192; - keeps what the "
                    "graph says, as for a scalar")
        ->type_name("SHAPES");
    AddTarget(command);
  }

  void AddCompile() {
    CLI::App& command = AddCommand(app_, "compile", "compile a graph, or find it in the cache",
                                   [this] { return Compile(common_, graph_, output_); });
    AddGraph(command);
    command
        .add_option("--output", output_,
                    "write the executable (fusiond.v1.Executable) to this file")
        ->type_name("FILE");
  }

  void AddRun() {
    CLI::App& command = AddCommand(app_, "run", "run a graph on random or given inputs", [this] {
      arguments_.graph = graph_;
      return Run(common_, arguments_);
    });
    AddGraph(command);
    AddList(command, "--input", arguments_.inputs, "INDEX=VALUE",
            "INDEX=VALUE: the scalar, or every element of the tensor, is VALUE; INDEX=@FILE: its "
            "elements, from a .npy file or row-major without a header. Other inputs are random: "
            "floats normal, integers in [-8, 8]; one number alone in [0.5, 1.5) or [1, 8]");
    CLI::Option* device =
        command
            .add_option("--device", arguments_.device,
                        "cpu or a device UUID; default: the first of the target's arch")
            ->type_name("DEVICE");
    CLI::Option* local = command.add_flag(
        "--local", arguments_.local, "launch in this process from a lease instead of in a worker");
    local->excludes(device);
    command.add_flag("--check", arguments_.check,
                     "compare with the CPU device in double precision");
    command.add_option("--seed", arguments_.seed, "of the random inputs; 0 = a fresh one, printed")
        ->check(Unsigned())
        ->type_name("NUMBER");
    command.add_option("--repeat", arguments_.repeat, "launches")
        ->check(CLI::Range(1, 1000000))
        ->type_name("NUMBER")
        ->capture_default_str();
    command
        .add_option("--wait-limit", arguments_.wait_limit_s,
                    "seconds that the worker may take for one launch, copy or request")
        ->check(Seconds())
        ->capture_default_str();
    command.add_option("--driver", arguments_.driver, "libcuda for --local")
        ->type_name("FILE")
        ->needs(local);
  }

  void AddWarm() {
    CLI::App& command = AddCommand(
        app_, "warm",
        "compile many graphs for many targets at low priority; a bad one stops no other", [this] {
          warm_.options = graph_.options;
          return Warm(common_, warm_);
        });
    command
        .add_option("graphs", warm_.files,
                    "graph files, each with its own extents behind a colon if need be: "
                    "norm.fir:2048x8192,8192")
        ->type_name("FILE")
        ->required();
    command
        .add_option("--extents", warm_.extents,
                    "extents of the inputs of every graph that leaves some open and has none "
                    "behind a colon")
        ->type_name("SHAPES");
    AddList(command, "--target", warm_.targets, "TARGETS",
            absl::StrCat("as cpu,sm_90a,h200; each graph is compiled for each. ", KnownTargets()))
        ->required()
        ->delimiter(',');
    AddOptions(command);
  }

  void AddExplain() {
    CLI::App& command =
        AddCommand(app_, "explain",
                   "say how a request is keyed and why it hits or misses, or why its kernels are "
                   "what they are",
                   [this] { return Explain(common_, graph_, schedule_); });
    AddGraph(command, absl::StrCat(kGraphHelp, "; or a key of the cache, 8 digits or more"));
    command.add_flag("--schedule", schedule_,
                     "inputs, canonical IR, segments, schedules, launches, registers, memory, "
                     "estimated times, and what was refused and why");
  }

  void AddDiff() {
    CLI::App& command =
        AddCommand(app_, "diff",
                   "how two graphs become kernels, side by side: whether canonical IR, schedules "
                   "and kernels are the same, and where they first differ",
                   [this] { return Diff(common_, graph_, graph_.file, other_); });
    const std::string help =
        "graph file, with its extents behind a colon if need be: norm.fir:2048x8192,8192; or a "
        "key of the cache, 8 digits or more";
    command.add_option("a", graph_.file, help)->type_name("A")->required();
    command.add_option("b", other_, "as A; without --target a file takes that of the key")
        ->type_name("B")
        ->required();
    AddTarget(command);
  }

  void AddArtifacts() {
    CLI::App& command =
        AddCommand(app_, "artifacts", "canonical IR, schedule, CUDA text, PTX, SASS of a graph",
                   [this] { return Artifacts(common_, graph_, kinds_, output_); });
    AddGraph(command);
    AddList(command, "--kind", kinds_, "KINDS",
            "ir, schedule, explanation, cuda, ptx, sass; default: all that there is")
        ->delimiter(',');
    command.add_option("--folder", output_, "write files here instead of printing")
        ->type_name("FOLDER");
  }

  void AddCache() {
    CLI::App& cache = *app_.add_subcommand("cache", "the kernel cache");
    cache.require_subcommand(1);
    cache.footer(kMoreHelp);
    AddCommand(cache, "stats", "its figures", [this] { return CacheStats(common_); });
    AddCommand(cache, "list", "entries in order of key",
               [this] { return CacheList(common_, limit_); })
        .add_option("--limit", limit_, "entries at most")
        ->check(CLI::Range(1, 1000000000))
        ->type_name("NUMBER")
        ->capture_default_str();
    CLI::App& evict = AddCommand(cache, "evict", "remove entries (administrator)",
                                 [this] { return CacheEvict(common_, key_, all_); });
    CLI::Option* key =
        evict.add_option("key", key_, "request key, or its first digits where no other has them")
            ->type_name("KEY");
    evict.add_flag("--all", all_, "everything that is not leased")->excludes(key);
  }

  CLI::App app_{kAbout};
  Common common_;
  GraphArguments graph_;
  RunArguments arguments_;
  WarmArguments warm_;
  std::vector<std::string> options_, kinds_;
  std::string output_;  // file, or folder
  std::string key_, other_;
  bool all_ = false, schedule_ = false;
  uint32_t limit_ = 100;
  std::function<int()> run_;  // the command that the line names
};

}  // namespace
}  // namespace fusiond::cli

int main(int argc, char** argv) {
  fusiond::base::HoldStandardStreams(argv);
  return fusiond::cli::CommandLine().Main(argc, argv);
}
