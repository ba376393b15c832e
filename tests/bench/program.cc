#include "tests/bench/program.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "tests/support/nvrtc_for_tests.h"

namespace fusiond::bench {
namespace {

// Beside this program, as in a bundle, or in bin/ beside its folder, as in a build folder.
std::string FindDaemon() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside = self.parent_path() / "fusiond";
  if (std::filesystem::exists(beside, error)) return beside;
  return self.parent_path().parent_path() / "bin" / "fusiond";
}

}  // namespace

Flags ParseFlags(int argc, char** argv) {
  const std::string command = absl::StrJoin(absl::MakeSpan(argv, static_cast<size_t>(argc)), " ");
  benchmark::Initialize(&argc, argv);
  Flags flags;
  flags.fusiond = FindDaemon();
  CLI::App app("A benchmark of fusiond; --benchmark_help for Google Benchmark's flags.");
  app.add_option("--fusiond", flags.fusiond, "The daemon's program")->capture_default_str();
  app.add_option("--cupti", flags.cupti, "libcupti");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the only thread
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  benchmark::AddCustomContext("command", command);
  return flags;
}

Machine OpenMachine() {
  Machine machine;
  machine.gpu = testing::Gpu::Open();
  machine.nvrtc = nvrtc::Nvrtc::Open(testing::NvrtcLocationForTests());
  if (!machine.status().ok()) {
    std::fprintf(stderr, "no measurements: %s\n", machine.status().ToString().c_str());
  }
  return machine;
}

bool SkipOnError(benchmark::State& state, const absl::Status& status) {
  if (status.ok()) return false;
  state.SkipWithError(status.ToString().c_str());
  return true;
}

}  // namespace fusiond::bench
