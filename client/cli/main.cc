// fusionctl: the command line of fusiond.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string>

#include "client/cc/paths.h"
#include "client/cli/commands.h"

namespace fusiond::cli {
namespace {

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

// More than zero and at most a day; not what only parses (nan, inf).
CLI::Validator Seconds() {
  const auto check = [](std::string& text) -> std::string {
    double seconds = 0;
    if (CLI::detail::lexical_cast(text, seconds) && seconds > 0 && seconds <= 86400) return "";
    return "more than 0 and at most 86400 seconds, not '" + text + "'";
  };
  return CLI::Validator(check, "SECONDS");
}

void AddGraph(CLI::App& command, GraphArguments& graph, std::vector<std::string>& options) {
  command.add_option("graph", graph.file, "graph file (.fir), - for standard input")->required();
  command
      .add_option("--extents", graph.extents,
                  "extents of each input in order, as 2048x8192; - keeps what the graph says")
      ->delimiter(',');
  command
      .add_option("--target", graph.target,
                  "cpu, an arch (sm_90a), a profile (h200) or a device UUID")
      ->capture_default_str();
  command.add_option("--option,-o", options,
                     "compile option NAME=VALUE: math=strict|default|fast, …");
}

int Main(int argc, char** argv) {
  CLI::App app{
      "fusionctl: talks to a fusiond daemon.\nExit codes: 0 done, 1 refused or failed, 2 wrong "
      "usage, "
      "3 no daemon, 4 a check failed."};
  app.require_subcommand(1);
  Common common;
  common.sockets = client::DefaultSocketFolder();
  app.add_option("--sockets", common.sockets, "folder with control.sock and channel.sock")
      ->capture_default_str();
  app.add_flag("--json", common.json, "print JSON");
  app.fallthrough();

  std::function<int()> run;
  GraphArguments graph;
  std::vector<std::string> options;

  CLI::App* compile = app.add_subcommand("compile", "compile a graph, or find it in the cache");
  AddGraph(*compile, graph, options);
  std::string output;
  compile->add_option("--output", output,
                      "write the executable (fusiond.v1.Executable) to this file");
  compile->callback([&] {
    graph.options = ParseOptions(options);
    run = [&] { return Compile(common, graph, !output.empty(), output); };
  });

  CLI::App* launch = app.add_subcommand("run", "run a graph on random inputs");
  RunArguments arguments;
  AddGraph(*launch, arguments.graph, options);
  launch->add_option("--device", arguments.device,
                     "cpu or a device UUID; default: the first of the target's arch");
  launch->add_flag("--local", arguments.local,
                   "launch in this process from a lease instead of in a worker");
  launch->add_flag("--check", arguments.check, "compare with the CPU device in double precision");
  launch->add_option("--seed", arguments.seed, "of the random inputs; 0 = a fresh one, printed");
  launch->add_option("--repeat", arguments.repeat, "launches")->check(CLI::Range(1, 1000000));
  launch
      ->add_option("--wait-limit", arguments.wait_limit_s,
                   "seconds that the worker may take for one launch, copy or request")
      ->check(Seconds())
      ->capture_default_str();
  launch->add_option("--driver", arguments.driver, "libcuda for --local");
  launch->callback([&] {
    arguments.graph.options = ParseOptions(options);
    run = [&] { return Run(common, arguments); };
  });

  CLI::App* warm =
      app.add_subcommand("warm", "compile many graphs for many targets at low priority");
  std::vector<std::string> files, targets;
  warm->add_option("graphs", files, "graph files; extents after a colon: norm.fir:2048x8192,8192")
      ->required();
  warm->add_option("--target", targets, "targets; each graph is compiled for each")
      ->required()
      ->delimiter(',');
  warm->add_option("--option,-o", options, "compile option NAME=VALUE");
  warm->callback(
      [&] { run = [&] { return Warm(common, files, targets, ParseOptions(options)); }; });

  CLI::App* explain =
      app.add_subcommand("explain", "say how a request is keyed and why it hits or misses");
  AddGraph(*explain, graph, options);
  explain->callback([&] {
    graph.options = ParseOptions(options);
    run = [&] { return Explain(common, graph); };
  });

  CLI::App* artifacts =
      app.add_subcommand("artifacts", "canonical IR, schedule, CUDA text, PTX of a graph");
  AddGraph(*artifacts, graph, options);
  std::vector<std::string> kinds;
  std::string folder;
  artifacts->add_option("--kind", kinds, "ir, schedule, cuda, ptx, sass, explanation; default all")
      ->delimiter(',');
  artifacts->add_option("--folder", folder, "write files here instead of printing");
  artifacts->callback([&] {
    graph.options = ParseOptions(options);
    run = [&] { return Artifacts(common, graph, kinds, folder); };
  });

  app.add_subcommand("status", "state of the daemon")->callback([&] {
    run = [&] { return Status(common); };
  });
  app.add_subcommand("devices", "devices of the daemon's host")->callback([&] {
    run = [&] { return Devices(common); };
  });

  CLI::App* cache = app.add_subcommand("cache", "the kernel cache");
  cache->require_subcommand(1);
  cache->add_subcommand("stats", "figures")->callback([&] {
    run = [&] { return CacheStats(common); };
  });
  CLI::App* list = cache->add_subcommand("list", "entries in order of key");
  uint32_t limit = 100;
  list->add_option("--limit", limit, "entries at most")->capture_default_str();
  list->callback([&] { run = [&] { return CacheList(common, limit); }; });
  CLI::App* evict = cache->add_subcommand("evict", "remove entries (administrator)");
  std::string key;
  bool all = false;
  CLI::Option* by_key = evict->add_option("key", key, "request key, 64 hexadecimal digits");
  evict->add_flag("--all", all, "everything that is not leased")->excludes(by_key);
  evict->callback([&] { run = [&] { return CacheEvict(common, key, all); }; });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return run();
}

}  // namespace
}  // namespace fusiond::cli

int main(int argc, char** argv) { return fusiond::cli::Main(argc, argv); }
