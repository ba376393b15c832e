// Names, files and times that nobody expects, given to fusionctl and to the client library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond {
namespace {

using ::fusiond::testing::AddGraph;
using ::fusiond::testing::CtlProgram;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::Ran;
using ::fusiond::testing::TestDaemon;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class OddArgumentsTest : public ::testing::Test {
 protected:
  Ran Ctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {CtlProgram(), "--sockets", daemon_.sockets()});
    return testing::RunProgram(arguments);
  }
  std::string Graph(const std::string& name = "good.fir") const {
    const std::string path = absl::StrCat(daemon_.folder(), "/", name);
    std::ofstream(path) << "fir 1\n%a=input:f32[8]\n%b=neg %a\noutput %b\n";
    return path;
  }
  std::string Path(const std::string& name) const { return daemon_.folder() + "/" + name; }

  TestDaemon daemon_;
};

TEST_F(OddArgumentsTest, OutputFollowsLinksAndReplacesNoDevice) {
  daemon_.Serve();
  const std::string graph = Graph(), file = Path("executable"), link = Path("link");
  std::ofstream(file) << "longer than what takes its place" << std::string(10'000, 'x');
  std::filesystem::create_symlink(file, link);
  ASSERT_EQ(Ctl({"compile", graph, "--output", link}).code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  const std::string executable = Contents(file);
  EXPECT_THAT(executable, AllOf(HasSubstr("cpu"), Not(HasSubstr("xxx"))));

  const std::string fifo = Path("fifo"), copy = Path("copy");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const Ran ran = testing::RunProgram(
      {"/bin/sh", "-c",
       absl::StrCat("cat ", fifo, " > ", copy, " & ", CtlProgram(), " --sockets ",
                    daemon_.sockets(), " compile ", graph, " --output ", fifo, "; wait")});
  EXPECT_TRUE(std::filesystem::is_fifo(fifo)) << ran.output;
  EXPECT_EQ(Contents(copy), executable);

  ASSERT_EQ(Ctl({"artifacts", graph, "--folder", Path("folder")}).code, 0);
  std::filesystem::remove(Path("folder/canonical.ir"));
  std::filesystem::create_symlink(copy, Path("folder/canonical.ir"));
  ASSERT_EQ(Ctl({"artifacts", graph, "--folder", Path("folder")}).code, 0);
  EXPECT_THAT(Contents(copy), HasSubstr("fir 1"));

  const Ran full = Ctl({"compile", graph, "--output", "/dev/full"});
  EXPECT_EQ(full.code, 2);
  EXPECT_THAT(full.output, HasSubstr("/dev/full: write: No space left on device"));
}

TEST_F(OddArgumentsTest, TextThatIsNoUtf8IsSaidToBeThat) {
  daemon_.Serve();
  const std::string graph = Graph(), odd = Graph("\xff\xfe.fir");
  EXPECT_EQ(Ctl({"compile", odd}).code, 0);
  const std::pair<std::vector<std::string>, std::string> rows[] = {
      {{"compile", graph, "--target", "\xff"}, "CompileRequest.target: '\\xff' is no UTF-8"},
      {{"compile", graph, "-o", "math=\xfe"}, "OptionsEntry.value: '\\xfe' is no UTF-8"},
      {{"compile", graph, "-o", "\xfe=1"}, "OptionsEntry.key: '\\xfe' is no UTF-8"},
      {{"explain", graph, "--target", "\xff"}, "CompileRequest.target: '\\xff' is no UTF-8"},
      {{"artifacts", graph, "--kind", "\xff"}, "kinds: '\\xff' is no UTF-8"},
      {{"warm", graph, "--target", "\xff"}, "WarmRequest.targets: '\\xff' is no UTF-8"},
  };
  for (const auto& [arguments, words] : rows) {
    const Ran ran = Ctl(arguments);
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.output, AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(words),
                                  Not(HasSubstr("libprotobuf"))));
  }
  const Ran warm = Ctl({"warm", odd, "--target", "cpu"});
  EXPECT_EQ(warm.code, 0) << warm.output;
  EXPECT_THAT(warm.output, HasSubstr("??.fir\t"));
}

TEST_F(OddArgumentsTest, FileWithoutEndAndNumberWithoutPlaceAreRefused) {
  const Ran file = Ctl({"compile", "/dev/zero"});
  EXPECT_EQ(file.code, 1);
  EXPECT_THAT(file.output, HasSubstr("/dev/zero: more than the limit of 16777216 bytes"));
  for (const char* seed : {"-1", "18446744073709551616", "1.5", "many"}) {
    const Ran ran = Ctl({"run", Graph(), "--seed", seed});
    EXPECT_EQ(ran.code, 2) << seed;
    EXPECT_THAT(ran.output, HasSubstr(absl::StrCat("--seed: 0 to 2^64 - 1, not '", seed, "'")));
  }
}

// gRPC takes the path for a URI.
TEST_F(OddArgumentsTest, EveryFolderNameLeadsToTheSocket) {
  for (const char* name : {"a%41b", "a#b", "a?b=c", "a b", "%", "\xff"}) {
    const std::string sockets = Path(name);
    TestDaemon daemon;
    daemon.Start({.arguments = {"--sockets", sockets, "--memory-only"},
                  .environment = {},
                  .listen_fds = {}});
    daemon.WaitForLog("serving at ");
    EXPECT_THAT(client::Client::Connect(sockets), IsOk()) << name;
  }
}

TEST_F(OddArgumentsTest, EndlessTimesAreEndless) {
  daemon_.Serve();
  const absl::Duration times[] = {absl::InfiniteDuration(), absl::Hours(24 * 365 * 1000)};
  for (absl::Duration time : times) {
    ASSERT_OK_AND_ASSIGN(auto client, client::Client::Connect(daemon_.sockets(), time));
    EXPECT_THAT(client->Compile(AddGraph(), "cpu", {}, {}, time), IsOk());
    EXPECT_THAT(client->OpenDevice("cpu", time), IsOk());
  }
}

}  // namespace
}  // namespace fusiond
