// The commands of fusionctl. Each returns an exit code and prints its result, or its error, itself.
#ifndef FUSIOND_CLIENT_CLI_COMMANDS_H_
#define FUSIOND_CLIENT_CLI_COMMANDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fusiond::cli {

// Documented in README.md and --help; scripts rely on them.
enum ExitCode {
  kExitOk = 0,
  kExitFailed = 1,       // the graph was refused, here or by the daemon, or the work failed
  kExitUsage = 2,        // the command line is wrong, or a file it names cannot be used
  kExitNoDaemon = 3,     // no daemon answers, or none that serves now: UNAVAILABLE
  kExitCheckFailed = 4,  // run --check: a result is off tolerance
};

struct Common {
  std::string sockets;  // folder
  bool json = false;
};

// A graph file and what of its inputs the command line fixes.
struct GraphArguments {
  std::string file;              // .fir; "-" = standard input
  std::string extents;           // as ir::ParseExtents takes them
  bool extents_if_open = false;  // ignores `extents` where the graph says them all
  std::string target = "cpu";
  bool target_given = false;                   // on the command line
  std::map<std::string, std::string> options;  // compile options
};

struct RunArguments {
  GraphArguments graph;
  std::vector<std::string> inputs;  // as ParseInputSetting takes them
  std::string device;               // "cpu" or a UUID; empty = first that has the target's arch
  bool local = false;               // launch from a lease in this process
  bool check = false;               // against arch cpu, precision=double
  uint64_t seed = 0;                // 0 = a fresh one, printed
  int repeat = 1;
  double wait_limit_s = 120;  // for one answer of the worker
  std::string driver;         // libcuda, for --local
};

struct WarmArguments {
  std::vector<std::string> files;  // "norm.fir", or "norm.fir:2048x8192,8192" with its extents
  std::string extents;             // of those that bring none and leave some open
  std::vector<std::string> targets;
  std::map<std::string, std::string> options;
};

// `output_file`: where the executable goes; empty = nowhere.
int Compile(const Common& common, const GraphArguments& arguments, const std::string& output_file);
int Run(const Common& common, const RunArguments& arguments);
int Warm(const Common& common, const WarmArguments& arguments);
// Takes a key, too. `schedule`: how the graph becomes kernels, instead of how it is keyed.
int Explain(const Common& common, const GraphArguments& arguments, bool schedule);
// `a` and `b`: graph files, with their extents behind a colon if need be, or keys; `arguments`:
// target and options of files.
int Diff(const Common& common, const GraphArguments& arguments, const std::string& a,
         const std::string& b);
int Artifacts(const Common& common, const GraphArguments& arguments,
              const std::vector<std::string>& kinds, const std::string& folder);
int Status(const Common& common);
int Devices(const Common& common);
int CacheStats(const Common& common);
int CacheList(const Common& common, uint32_t limit);
// `key`: its first digits are enough where no other entry has them.
int CacheEvict(const Common& common, const std::string& key, bool all);

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_COMMANDS_H_
