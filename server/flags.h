// The command line of fusiond, and the file that may hold the same flags.
//
// Every value is checked here, and an error names flag, rule and value, and in a file also file and
// line. What only this host can say (is the folder there, does the library load) is CheckHost's.
//
// Thread-safety: pure but for what they read.
#ifndef FUSIOND_SERVER_FLAGS_H_
#define FUSIOND_SERVER_FLAGS_H_

#include <string>
#include <variant>
#include <vector>

#include "server/lifecycle/daemon.h"

namespace fusiond::server {

struct Flags {
  DaemonOptions daemon;
  std::string log_level = "info";
  bool check_config = false;
  // What the daemon gives to its own processes.
  std::string role;
  std::string device = "cpu";
  bool probe = false;
};

// `defaults`: what the environment suggests. The flags, or the exit code to end with: everything
// has been printed then. Flags win over the file that --config names.
std::variant<Flags, int> ParseFlags(int argc, const char* const* argv, const Flags& defaults);

// Why the daemon would not start here as it is told to, or not with everything that it is told to
// use: one line each. Makes nothing, and does not care whether another daemon runs here now.
std::vector<std::string> CheckHost(const DaemonOptions& options);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_FLAGS_H_
