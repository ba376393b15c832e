// What every command needs: connecting, reading graphs, printing results and errors.
#ifndef FUSIOND_CLIENT_CLI_SUPPORT_H_
#define FUSIOND_CLIENT_CLI_SUPPORT_H_

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cc/client.h"
#include "client/cli/commands.h"
#include "compiler/ir/graph.h"
#include "runtime/base/counted.h"

namespace fusiond::cli {

using base::Counted;

// Marks what is wrong whatever a graph says: a flag that cannot be understood, a file that cannot
// be read or written. Fail answers it with kExitUsage.
absl::Status WrongUsage(absl::Status status);

// Tells of a failure, on stderr in words and under --json on stdout too, as
// {"error": {"code", "message", "exit_code"}}; returns the exit code that README.md promises.
int Fail(const Common& common, const absl::Status& status);

absl::StatusOr<std::unique_ptr<client::Client>> Connect(const Common& common);

struct LoadedGraph {
  ir::Graph graph;
  std::vector<client::Layout> layouts;  // one an input
};
// Reads and parses the file, and binds symbolic extents. As `ir::Parse` with the file's name in
// front; names the input whose extents are missing or contradict the graph. WrongUsage: the file
// cannot be read, or --extents is no list of extents.
absl::StatusOr<LoadedGraph> LoadGraph(const GraphArguments& arguments);

// "norm.fir:2048x8192,8192": extents after the last colon, if a graph file ends there; else
// `extents` where the graph leaves some open.
GraphArguments SplitExtents(const std::string& file, const std::string& extents);

// Whether `what` is the first digits (8 to 64) of a key rather than a file's name.
bool IsKey(const std::string& what);
// Of a file, or of a key, which says everything else itself: WrongUsage where flags do too.
absl::StatusOr<v1::ExplainRequest> MakeExplainRequest(const GraphArguments& arguments);

// Writes a file that the user names. What is no regular file, as a device or a pipe, is written
// into, and a link is followed. WrongUsage otherwise.
absl::Status WriteOutput(const std::string& path, absl::string_view data);

void PrintJson(const google::protobuf::Message& message);
// "12.3 ms", "4.5 us", "26h3m5s"
std::string Duration(int64_t ns);
// "1.5 MiB"
std::string Bytes(uint64_t bytes);
std::string Hex(const std::string& bytes);
// "compiled", "memory", …
const char* SourceName(v1::Source source);

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_SUPPORT_H_
