// The commands of fusionctl. Each returns an exit code and prints its result, or its error, itself.
#ifndef FUSIOND_CLIENT_CLI_COMMANDS_H_
#define FUSIOND_CLIENT_CLI_COMMANDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fusiond::cli {

// Documented in README.md; scripts rely on them.
enum ExitCode {
  kExitOk = 0,
  kExitFailed = 1,       // the daemon refused or could not do it; the status is on stderr
  kExitUsage = 2,        // the command line or a file it names is wrong
  kExitNoDaemon = 3,     // nobody listens
  kExitCheckFailed = 4,  // run --check: a result is off tolerance
};

struct Common {
  std::string sockets;  // folder
  bool json = false;
};

// A graph file and what of its inputs the command line fixes.
struct GraphArguments {
  std::string file;                  // .fir; "-" = standard input
  std::vector<std::string> extents;  // "2048x8192" an input, in order; "-" for scalars
  std::string target = "cpu";
  std::map<std::string, std::string> options;  // compile options
};

struct RunArguments {
  GraphArguments graph;
  std::string device;  // "cpu" or a UUID; empty = first that has the target's arch
  bool local = false;  // launch from a lease in this process
  bool check = false;  // against arch cpu, precision=double
  uint64_t seed = 0;   // 0 = a fresh one, printed
  int repeat = 1;
  double wait_limit_s = 120;  // for one answer of the worker
  std::string driver;         // libcuda, for --local
};

int Compile(const Common& common, const GraphArguments& arguments, bool include_executable,
            const std::string& output_file);
int Run(const Common& common, const RunArguments& arguments);
int Warm(const Common& common, const std::vector<std::string>& files,
         const std::vector<std::string>& targets,
         const std::map<std::string, std::string>& options);
int Explain(const Common& common, const GraphArguments& arguments);
int Artifacts(const Common& common, const GraphArguments& arguments,
              const std::vector<std::string>& kinds, const std::string& folder);
int Status(const Common& common);
int Devices(const Common& common);
int CacheStats(const Common& common);
int CacheList(const Common& common, uint32_t limit);
int CacheEvict(const Common& common, const std::string& key, bool all);

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_COMMANDS_H_
