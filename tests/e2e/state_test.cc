// What the daemon makes of its state folder, or of having none.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "leveldb/db.h"
#include "runtime/base/crc32c.h"
#include "runtime/base/file.h"
#include "server/cache/fields.h"
#include "server/cache/record.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/status_matchers.h"

namespace fusiond {
namespace {

using ::fusiond::testing::AddGraph;
using ::fusiond::testing::CtlProgram;
using ::fusiond::testing::DaemonProgram;
using ::fusiond::testing::IsOk;
using ::fusiond::testing::RunProgram;
using ::fusiond::testing::TestDaemon;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// A command of its arguments by a user who has no home; root has a place of its own.
std::string Homeless() {
  return absl::StrCat("unset HOME XDG_CACHE_HOME; exec ",
                      ::geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "",
                      "\"$@\"");
}

TEST(StateTest, NoFolderThatNobodyAskedForIsInLogAndStatus) {
  if (RunProgram({"/bin/sh", "-c", Homeless(), "sh", "test", "-x", DaemonProgram()}).code != 0)
    GTEST_SKIP() << "another user cannot run " << DaemonProgram();
  TestDaemon daemon;
  ASSERT_EQ(::chmod(daemon.folder().c_str(), 0777), 0);
  daemon.Through({"/bin/sh", "-c", Homeless(), "sh"});
  daemon.NameNoState();
  const std::string words = "cache is in memory alone: no folder is given (--state), and neither";
  daemon.Serve({.arguments = {"--service"}, .environment = {}, .listen_fds = {}});
  EXPECT_THAT(daemon.log(), HasSubstr("warning the " + words));
  const auto status = RunProgram({CtlProgram(), "--sockets", daemon.sockets(), "status"});
  EXPECT_THAT(status.output, HasSubstr("degraded    " + words));
}

TEST(StateTest, MemoryThatWasAskedForIsNothingToTell) {
  TestDaemon daemon;
  daemon.Serve({.arguments = {"--memory-only"}, .environment = {}, .listen_fds = {}});
  ASSERT_OK_AND_ASSIGN(const v1::StatusResponse status, daemon.Connect()->GetStatus());
  EXPECT_THAT(status.degraded(), Not(Contains(HasSubstr("cache"))));
}

// A graph whose executable for arch cpu, which holds it, has a file of its own.
ir::Graph LargeGraph(int64_t elements) {
  std::string text = absl::StrCat("%0=input:i32[", elements, "]\n");
  for (int i = 0; i < 60'000; ++i)
    absl::StrAppend(&text, "%", i + 1, "=bitwise_right_shift %", i, ",%0\n");
  return testing::Graph(text + "output %60000");
}

// As another version of us would write it: what it has besides is its own business, the checksum is
// right.
std::string OfVersion(uint16_t version, std::string record) {
  constexpr size_t kVersion = 4, kCrc = 24;
  const auto put = [&record](size_t at, uint64_t number, int bytes) {
    std::string text;
    cache::AppendLittleEndian(number, bytes, &text);
    record.replace(at, text.size(), text);
  };
  put(kVersion, version, 2);
  const absl::string_view view = record;
  put(kCrc,
      base::Crc32c(view.substr(cache::kRecordHeaderBytes), base::Crc32c(view.substr(0, kCrc))), 4);
  return record;
}

class OtherVersionTest : public ::testing::TestWithParam<int> {
 protected:
  // The source of each answer, of a daemon that runs for just these.
  std::vector<std::string> Compile(const std::vector<ir::Graph>& graphs) {
    daemon_.Serve();
    std::unique_ptr<client::Client> client = daemon_.Connect();
    std::vector<std::string> sources;
    for (const ir::Graph& graph : graphs) {
      const absl::StatusOr<client::Fusion> fusion = client->Compile(graph, "cpu");
      sources.push_back(fusion.ok() ? v1::Source_Name(fusion->response.source())
                                    : fusion.status().ToString());
    }
    stats_ = client->CacheStats().value_or(v1::CacheStatsResponse());
    EXPECT_EQ(daemon_.Stop(SIGTERM), 0);
    return sources;
  }
  std::unique_ptr<leveldb::DB> Database() const {
    leveldb::DB* db = nullptr;
    EXPECT_TRUE(leveldb::DB::Open({}, daemon_.state() + "/cache/db", &db).ok());
    return std::unique_ptr<leveldb::DB>(db);
  }
  std::set<std::string> Keys() const {
    const std::unique_ptr<leveldb::DB> db = Database();
    const std::unique_ptr<leveldb::Iterator> at(db->NewIterator({}));
    std::set<std::string> keys;
    for (at->SeekToFirst(); at->Valid(); at->Next()) keys.insert(at->key().ToString());
    return keys;
  }
  std::vector<std::string> Blobs() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(daemon_.state() + "/cache/blobs"))
      paths.push_back(entry.path().string());
    return paths;
  }

  TestDaemon daemon_;
  v1::CacheStatsResponse stats_;
};

TEST_P(OtherVersionTest, RecordsAreMissesThatAreCountedAndReplaced) {
  const std::vector<ir::Graph> graphs = {AddGraph(64), AddGraph(128), LargeGraph(8)};
  const std::vector<std::string> found(3, "DISK");
  Compile({graphs[0]});
  const std::set<std::string> kept = Keys();
  EXPECT_EQ(Compile(graphs), (std::vector<std::string>{"DISK", "COMPILED", "COMPILED"}));
  ASSERT_THAT(Blobs(), SizeIs(2));  // graph and executable
  for (const std::string& key : Keys()) {
    if (kept.count(key) > 0) continue;
    const std::unique_ptr<leveldb::DB> db = Database();
    std::string record;
    ASSERT_TRUE(db->Get({}, key, &record).ok());
    ASSERT_TRUE(db->Put({}, key, OfVersion(static_cast<uint16_t>(GetParam()), record)).ok());
  }
  EXPECT_EQ(Compile(graphs), (std::vector<std::string>{"DISK", "COMPILED", "COMPILED"}));
  EXPECT_GE(stats_.bad_records(), 2u);
  EXPECT_THAT(daemon_.log(), HasSubstr(absl::StrCat("format version ", GetParam(), ", this is ",
                                                    cache::kRecordVersion)));
  EXPECT_EQ(Compile(graphs), found);
  EXPECT_EQ(stats_.bad_records(), 0u);
  EXPECT_THAT(Blobs(), SizeIs(2));
}

// Another version may head its files, name them otherwise, and keep more beside them.
TEST_P(OtherVersionTest, FilesAreMissesThatAreCountedAndReplaced) {
  const std::vector<ir::Graph> graphs = {AddGraph(64), LargeGraph(8), LargeGraph(16)};
  Compile({graphs[0], graphs[1]});
  const std::vector<std::string> before = Blobs();
  Compile({graphs[2]});
  ASSERT_THAT(before, SizeIs(2));
  const std::string header = absl::StrCat("FSDB", std::string(1, static_cast<char>(GetParam())));
  for (const std::string& path : before) {
    ASSERT_OK_AND_ASSIGN(const std::string payload, base::ReadFile(path));
    ASSERT_THAT(base::WriteFileAtomically(path, header + payload), IsOk());
  }
  for (const char* name : {"/cache/blobs/v9", "/cache/index", "/nvrtc"}) {
    ASSERT_THAT(base::WriteFileAtomically(daemon_.state() + name, header), IsOk());
  }
  EXPECT_EQ(Compile(graphs), (std::vector<std::string>{"DISK", "COMPILED", "DISK"}));
  EXPECT_GE(stats_.bad_records(), 1u);
  EXPECT_EQ(Compile(graphs), (std::vector<std::string>{"DISK", "DISK", "DISK"}));
  EXPECT_EQ(stats_.bad_records(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Versions, OtherVersionTest,
                         ::testing::Values(cache::kRecordVersion - 1, cache::kRecordVersion + 1));

}  // namespace
}  // namespace fusiond
