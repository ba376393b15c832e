#include "server/flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/file.h"

namespace fusiond::server {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr double kDay_s = 86400;
constexpr int64_t kTiB = int64_t{1} << 40;
// What the compiler and NVRTC need before they look at a graph is some 20 MiB.
constexpr int64_t kLeastCompileMemory = int64_t{64} << 20;
constexpr int kMostProcesses = 1024;

std::string Refuse(const std::string& rule, const std::string& text) {
  return absl::StrCat(rule, ", not '", text, "'");
}

CLI::Validator Seconds(double least, double most) {
  const std::string rule = absl::StrCat("seconds, ", least, " to ", most);
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        const bool fits = absl::SimpleAtod(text, &value) && std::isfinite(value) &&
                          value >= least && value <= most;
        return fits ? std::string() : Refuse(rule, text);
      },
      "SECONDS");
}

CLI::Validator Count(int least, int most) {
  const std::string rule = absl::StrCat("a number, ", least, " to ", most);
  return CLI::Validator(
      [=](std::string& text) {
        int value = 0;
        const bool fits = absl::SimpleAtoi(text, &value) && value >= least && value <= most;
        return fits ? std::string() : Refuse(rule, text);
      },
      "NUMBER");
}

// "1536", "1.5k", "2G", "512MiB": a power of 1024 whatever the spelling. False for anything else.
bool ParseBytes(const std::string& text, double& bytes) {
  const size_t digits = text.find_first_not_of("0123456789.");
  std::string unit = absl::AsciiStrToLower(digits == std::string::npos ? "" : text.substr(digits));
  if (!absl::SimpleAtod(text.substr(0, digits), &bytes)) return false;
  if (unit.size() > 1 && unit.back() == 'b') unit.pop_back();
  if (unit.size() > 1 && unit.back() == 'i') unit.pop_back();
  if (unit.empty() || unit == "b") return true;
  const size_t power = unit.size() == 1 ? std::string("kmgt").find(unit) : std::string::npos;
  if (power == std::string::npos) return false;
  bytes = std::ldexp(bytes, 10 * static_cast<int>(power + 1));
  return true;
}

// Leaves the number of bytes for the option to read.
CLI::Validator Bytes(int64_t least, const std::string& least_name) {
  const std::string rule = absl::StrCat("bytes, ", least_name, " to 1T, as 1536, 512M or 2GiB");
  return CLI::Validator(
      [=](std::string& text) {
        double bytes = 0;
        if (!ParseBytes(text, bytes) || bytes < static_cast<double>(least) ||
            bytes > static_cast<double>(kTiB)) {
          return Refuse(rule, text);
        }
        text = absl::StrCat(static_cast<int64_t>(bytes));
        return std::string();
      },
      "BYTES");
}

// The options and where they put what they read.
class Parser {
 public:
  Parser(const Flags& defaults, const std::string& program) : flags_(defaults) {
    app_.name(program);
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app_.set_version_flag("--version", defaults.daemon.version)->configurable(false);
    app_.get_help_ptr()->configurable(false);
    app_.add_option("--config", config_, "file with these options, one NAME=VALUE a line")
        ->configurable(false);
    app_.add_flag("--check-config", flags_.check_config,
                  "check options and what they name on this host, and end")
        ->configurable(false);
    AddPlaces();
    AddLimits();
    AddInternal();
  }
  Parser(const Parser&) = delete;

  CLI::App& app() { return app_; }
  const std::string& config() const { return config_; }

  // Requires: parsed.
  Flags Take() {
    DaemonOptions& daemon = flags_.daemon;
    if (daemon.memory_only) daemon.state.clear();
    daemon.admit_all = service_;
    daemon.nvrtc_root_owned_only = (service_ || ::geteuid() == 0) && !any_owner_;
    daemon.socket_mode = service_ ? 0660 : 0600;
    daemon.drain_grace = absl::Seconds(drain_s_);
    daemon.compile_limit = absl::Seconds(compile_limit_s_);
    return std::move(flags_);
  }

 private:
  void AddPlaces() {
    DaemonOptions& daemon = flags_.daemon;
    app_.add_option("--sockets", daemon.sockets, "folder for control.sock and channel.sock")
        ->capture_default_str();
    app_.add_option("--state", daemon.state, "folder of the cache")->capture_default_str();
    app_.add_flag("--memory-only", daemon.memory_only, "keep nothing on disk");
    app_.add_flag(
        "--service", service_,
        "admit every user that can open the sockets (mode 0660) instead of this one alone");
    app_.add_flag("--allow-network-fs", daemon.allow_network_fs,
                  "allow the state folder on NFS and the like");
    app_.add_option("--nvrtc", daemon.nvrtc_path,
                    "libnvrtc to use, whoever owns it; default: the loader's, then --nvrtc-folder");
    app_.add_option("--nvrtc-folder", daemon.nvrtc_folders, "folders to look for libnvrtc in")
        ->take_all();
    app_.add_flag("--nvrtc-any-owner", any_owner_,
                  "as root or as a service, also take a found libnvrtc that others could replace");
    app_.add_option("--driver", daemon.driver_path, "libcuda to use");
  }

  void AddLimits() {
    DaemonOptions& daemon = flags_.daemon;
    app_.add_option("--compile-processes", daemon.compile_processes,
                    "0 = as many as processors and memory allow")
        ->check(Count(0, kMostProcesses));
    app_.add_option("--compile-memory", daemon.compile_memory_bytes,
                    "bytes that one compile process may use")
        ->transform(Bytes(kLeastCompileMemory, "64M"))
        ->capture_default_str();
    app_.add_option("--compile-limit", compile_limit_s_, "seconds that one compile may take")
        ->check(Seconds(0.1, kDay_s))
        ->capture_default_str();
    app_.add_option("--cache-memory", daemon.cache_memory_bytes,
                    "bytes of the memory tier, at most a quarter of the memory that is available; "
                    "0 = answer from disk alone")
        ->transform(Bytes(0, "0"))
        ->capture_default_str();
    app_.add_option("--call-memory", daemon.call_memory_bytes,
                    "bytes that the calls of one user may take at once, requests and answers, at "
                    "most an eighth of the memory that is available")
        ->transform(Bytes(kLeastCallMemory, "40M"))
        ->capture_default_str();
    app_.add_option("--drain", drain_s_, "seconds that running calls get after SIGTERM")
        ->check(Seconds(0, kDay_s))
        ->capture_default_str();
    app_.add_option("--log-level", flags_.log_level,
                    "how much is logged; calls that the cache answers at debug")
        ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
        ->capture_default_str();
  }

  void AddInternal() {
    app_.add_option("--role", flags_.role, "compile or worker; used by the daemon itself")
        ->group("Internal")
        ->configurable(false);
    app_.add_option("--device", flags_.device, "of a worker")
        ->group("Internal")
        ->configurable(false);
    app_.add_flag("--probe", flags_.probe, "of a worker: report devices and end")
        ->group("Internal")
        ->configurable(false);
  }

  CLI::App app_{
      "fusiond compiles tensor fusion graphs to GPU kernels once, keeps them, and launches them.\n"
      "Exit codes: 0 stopped, 1 failed, 2 wrong usage, 3 another daemon listens there, 4 the state "
      "folder is in use."};
  Flags flags_;
  std::string config_;
  bool service_ = false, any_owner_ = false;
  double drain_s_ = 5, compile_limit_s_ = 60;
};

void ParseArguments(CLI::App& app, const std::string& program,
                    const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {program.c_str()};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  app.parse(static_cast<int>(argv.size()), argv.data());
}

int Fail(const std::string& what) {
  std::fprintf(stderr, "fusiond: %s\n", what.c_str());
  return kDaemonUsage;
}

// `line` of the file as an argument; empty for one that says nothing.
absl::StatusOr<std::string> ToArgument(absl::string_view line, CLI::App& app) {
  line = absl::StripAsciiWhitespace(line);
  if (line.empty() || line[0] == '#' || line[0] == ';') return std::string();
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(line, absl::MaxSplits('=', 1));
  const absl::string_view name = absl::StripAsciiWhitespace(parts.first);
  if (name.size() == line.size())
    return absl::InvalidArgumentError(absl::StrCat("NAME=VALUE expected, not '", line, "'"));
  absl::string_view value = absl::StripAsciiWhitespace(parts.second);
  if (value.size() >= 2 && value.front() == value.back() &&
      (value.front() == '"' || value.front() == '\'')) {
    value = value.substr(1, value.size() - 2);
  }
  const CLI::Option* option = app.get_option_no_throw(absl::StrCat("--", name));
  if (option == nullptr || !option->get_configurable())
    return absl::InvalidArgumentError(absl::StrCat("no flag '", name, "' for a file"));
  return absl::StrCat("--", name, "=", value);
}

// The flags of the file as arguments, each checked by itself so that an error has its line.
absl::StatusOr<std::vector<std::string>> ReadFlagFile(const std::string& path,
                                                      const Flags& defaults,
                                                      const std::string& program) {
  absl::StatusOr<std::string> text = base::ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return text.status();
  std::vector<std::string> arguments;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    ++number;
    Parser parser(defaults, program);
    absl::StatusOr<std::string> argument = ToArgument(line, parser.app());
    std::string wrong(argument.status().message());
    if (argument.ok() && !argument->empty()) {
      try {
        ParseArguments(parser.app(), program, {*argument});
      } catch (const CLI::ParseError& error) {
        wrong = error.what();
      }
    }
    if (!wrong.empty())
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": ", wrong));
    if (!argument->empty()) arguments.push_back(*std::move(argument));
  }
  return arguments;
}

}  // namespace

std::variant<Flags, int> ParseFlags(int argc, const char* const* argv, const Flags& defaults) {
  const std::string program = argv[0];
  std::vector<std::string> arguments(argv + 1, argv + argc);
  auto parser = std::make_unique<Parser>(defaults, program);
  try {
    ParseArguments(parser->app(), program, arguments);
    if (!parser->config().empty()) {
      absl::StatusOr<std::vector<std::string>> file =
          ReadFlagFile(parser->config(), defaults, program);
      if (!file.ok()) return Fail(std::string(file.status().message()));
      file->insert(file->end(), arguments.begin(), arguments.end());
      parser = std::make_unique<Parser>(defaults, program);
      ParseArguments(parser->app(), program, *file);
    }
  } catch (const CLI::ParseError& error) {
    return parser->app().exit(error) == 0 ? kDaemonOk : kDaemonUsage;
  }
  Flags flags = parser->Take();
  if (!flags.role.empty() && flags.role != "compile" && flags.role != "worker")
    return Fail(absl::StrCat("--role is compile or worker, not '", flags.role, "'"));
  return flags;
}

}  // namespace fusiond::server
