// What every command needs: connecting, reading graphs, printing results and errors.
#ifndef FUSIOND_CLIENT_CLI_SUPPORT_H_
#define FUSIOND_CLIENT_CLI_SUPPORT_H_

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cc/client.h"
#include "client/cli/commands.h"
#include "compiler/ir/graph.h"

namespace fusiond::cli {

// Prints the status to stderr and returns the exit code for it.
int Fail(const absl::Status& status);
// As Fail, for a mistake on the command line.
int FailUsage(const absl::Status& status);

absl::StatusOr<std::unique_ptr<client::Client>> Connect(const Common& common);

struct LoadedGraph {
  ir::Graph graph;
  std::vector<client::Layout> layouts;  // one an input
};
// Reads and parses the file, and binds symbolic extents. INVALID_ARGUMENT "file:line:column: …", or
// names the input whose extents are missing or contradict the graph.
absl::StatusOr<LoadedGraph> LoadGraph(const GraphArguments& arguments);

void PrintJson(const google::protobuf::Message& message);
// "12.3 ms", "4.5 us"
std::string Duration(int64_t ns);
// "1.5 MiB"
std::string Bytes(uint64_t bytes);
std::string Hex(const std::string& bytes);
const char* SourceName(v1::Source source);

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_SUPPORT_H_
