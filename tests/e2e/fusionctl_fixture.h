// fusionctl against a daemon of a test's own.
//
// Thread-safety: thread-compatible.
#ifndef FUSIOND_TESTS_E2E_FUSIONCTL_FIXTURE_H_
#define FUSIOND_TESTS_E2E_FUSIONCTL_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/test_daemon.h"

namespace fusiond::testing {

class FusionctlTest : public ::testing::Test {
 protected:
  // Both outputs.
  Ran Ctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {CtlProgram(), "--sockets", daemon_.sockets()});
    return testing::RunProgram(arguments);
  }
  // A graph file of this text behind "fir 1".
  std::string File(const std::string& name, const std::string& text) const {
    const std::string path = absl::StrCat(daemon_.folder(), "/", name, ".fir");
    std::ofstream(path) << "fir 1\n" << text << "\n";
    return path;
  }
  std::string Good() const { return File("good", "%a=input:f32[8]\n%b=neg %a\noutput %b"); }
  // Floats that take a sixth of this machine's memory.
  static int64_t Sixth() { return ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE) / 4 / 6; }
  std::string Open() const { return File("open", "%a=input:f32[-1,4]\n%b=neg %a\noutput %b"); }

  TestDaemon daemon_;
};

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_E2E_FUSIONCTL_FIXTURE_H_
