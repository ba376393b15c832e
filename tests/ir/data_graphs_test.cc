// The graphs under tests/data/graphs: all are valid, and the two RMSNorm backward definitions are
// the public ones, op for op.
#include <filesystem>
#include <map>
#include <string>

#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "runtime/base/file.h"
#include "tests/support/status_matchers.h"

namespace fusiond::ir {
namespace {

using ::fusiond::testing::IsOk;

constexpr char kFolder[] = "tests/data/graphs/";

absl::StatusOr<Graph> Load(const std::string& name) {
  FUSIOND_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(kFolder + name));
  return Parse(text);
}

// How often each op occurs.
std::map<std::string, int> CountOps(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes()) ++counts[std::string(Info(node.op).name)];
  return counts;
}

TEST(DataGraphsTest, AllAreValid) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    SCOPED_TRACE(entry.path());
    ASSERT_OK_AND_ASSIGN(const Graph graph, Load(entry.path().filename()));
    EXPECT_THAT(Verify(graph, Stage::kImported), IsOk());
    ++files;
  }
  EXPECT_GE(files, 11);
}

// Counts of fd.ops calls, tensors and scalars in the definitions as published.
TEST(DataGraphsTest, ThunderBackwardHasTheOpsOfItsDefinition) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, Load("rms_norm_backward_thunder.fir"));
  EXPECT_EQ(CountOps(graph), (std::map<std::string, int>{{"input", 4},
                                                         {"constant", 3},
                                                         {"cast", 9},
                                                         {"mul", 9},
                                                         {"broadcast_in_dim", 5},
                                                         {"sum", 3},
                                                         {"add", 2},
                                                         {"pow", 1},
                                                         {"reciprocal", 1}}));
  EXPECT_EQ(graph.outputs().size(), 2);
}

// T4.shape() stands in three places and T4.size() in two: eight extents.
TEST(DataGraphsTest, ManualBackwardHasTheOpsOfItsDefinition) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, Load("rms_norm_backward_manual.fir"));
  EXPECT_EQ(CountOps(graph), (std::map<std::string, int>{{"input", 4},
                                                         {"constant", 1},
                                                         {"mul", 11},
                                                         {"cast", 5},
                                                         {"broadcast_in_dim", 5},
                                                         {"reciprocal", 4},
                                                         {"sum", 3},
                                                         {"neg", 1},
                                                         {"pow", 1},
                                                         {"add", 1},
                                                         {"size", 8}}));
  EXPECT_EQ(graph.outputs().size(), 2);
}

TEST(DataGraphsTest, ManualBackwardSpecialisesToAnyExtents) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, Load("rms_norm_backward_manual.fir"));
  ASSERT_OK_AND_ASSIGN(const std::vector<Dims> extents, ParseExtents("3x5,3x1,3x5,5", graph));
  ASSERT_OK_AND_ASSIGN(const Graph special, Specialise(graph, extents));
  EXPECT_THAT(Verify(special, Stage::kSpecialised), IsOk());
  EXPECT_EQ(special.type(special.outputs()[0].value), TensorType(DType::kBFloat16, {3, 5}));
  EXPECT_EQ(special.type(special.outputs()[1].value), TensorType(DType::kBFloat16, {5}));
}

}  // namespace
}  // namespace fusiond::ir
