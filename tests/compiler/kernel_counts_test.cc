// tests/data/kernel_counts: how many kernels each graph may take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/ir/specialise.h"
#include "compiler/ir/text.h"
#include "runtime/base/file.h"
#include "runtime/executable/explanation.h"
#include "tests/support/status_matchers.h"

namespace fusiond::compiler {
namespace {

// Of one kernel. Parsing is a small part of a cold compile, optimising is not: text of this size is
// as much as the kernels of today need, and more means loops written out.
constexpr size_t kMaxTextBytes = 56 << 10;

struct Row {
  std::string graph;
  int most = 0;
  std::string extents[2];
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.graph; }

std::vector<Row> Table() {
  std::vector<Row> rows;
  const absl::StatusOr<std::string> text = base::ReadFile("tests/data/kernel_counts/table.txt");
  std::istringstream lines(text.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Row row;
    if (line.empty() || line[0] == '#') continue;
    words >> row.graph >> row.most >> row.extents[0] >> row.extents[1];
    rows.push_back(row);
  }
  return rows;
}

TEST(KernelCountsTest, TableHoldsGraphsOfEveryKind) {
  int reductions = 0, long_ones = 0;
  for (const Row& row : Table()) {
    ASSERT_OK_AND_ASSIGN(
        const std::string text,
        base::ReadFile(absl::StrCat("tests/data/kernel_counts/", row.graph, ".fir")));
    ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Parse(text));
    bool reduces = false;
    int ops = 0;
    for (const ir::Node& node : graph.nodes()) {
      const ir::OpClass op_class = ir::Info(node.op).op_class;
      reduces |= op_class == ir::OpClass::kReduction;
      ops += op_class == ir::OpClass::kReduction || op_class == ir::OpClass::kPointwise;
    }
    reductions += reduces;
    long_ones += ops >= 20;
  }
  EXPECT_GE(Table().size(), 25u);
  EXPECT_GE(reductions, 12);
  EXPECT_GE(long_ones, 6);
}

class KernelCountsTest : public ::testing::TestWithParam<Row> {};

TEST_P(KernelCountsTest, NoMoreThanTheTableAllows) {
  const Row& row = GetParam();
  ASSERT_OK_AND_ASSIGN(
      const std::string text,
      base::ReadFile(absl::StrCat("tests/data/kernel_counts/", row.graph, ".fir")));
  ASSERT_OK_AND_ASSIGN(const ir::Graph graph, ir::Parse(text));
  for (const std::string& size : row.extents) {
    ASSERT_OK_AND_ASSIGN(const std::vector<ir::Dims> extents, ir::ParseExtents(size, graph));
    ASSERT_OK_AND_ASSIGN(const ir::Graph bound, ir::Specialise(graph, extents));
    for (const char* arch : {"sm_80", "sm_89", "sm_90a"}) {
      PlanRequest request;
      request.explain = true;
      request.graph = graph;
      for (ir::ValueId input : bound.inputs())
        request.inputs.push_back({bound.type(input).shape, bound.type(input).strides});
      ASSERT_OK_AND_ASSIGN(request.device, executable::ProfileByName(arch));
      ASSERT_OK_AND_ASSIGN(const PlanResult plan, Plan(request));
      int kernels = 0;
      for (const executable::Step& step : plan.skeleton.steps)
        kernels += std::holds_alternative<executable::KernelStep>(step);
      EXPECT_LE(kernels, row.most) << arch << " " << size << "\n"
                                   << executable::Print(plan.explanation);
      for (const KernelSource& source : plan.sources)
        EXPECT_LE(source.text.size(), kMaxTextBytes) << arch << " " << size << " " << source.name;
      EXPECT_THAT(plan.notes, ::testing::IsEmpty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, KernelCountsTest, ::testing::ValuesIn(Table()),
                         [](const auto& info) {
                           return absl::StrCat(info.param.graph, "_", info.index);
                         });

}  // namespace
}  // namespace fusiond::compiler
