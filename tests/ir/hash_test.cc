#include "compiler/ir/hash.h"

#include "compiler/ir/text.h"
#include "tests/support/status_matchers.h"

namespace fusiond::ir {
namespace {

std::string HashOf(const std::string& text) {
  absl::StatusOr<Graph> graph = Parse(text);
  EXPECT_THAT(graph, ::fusiond::testing::IsOk()) << text;
  return graph.ok() ? GraphHash(*graph).Hex() : "";
}

constexpr char kBase[] = R"(fir 1
%a = input : f32[4,8]
%b = input : f32[4,8]
%c = mul %a, %b
%d = exp %a
%e = add %c, %d
output %e
)";

TEST(GraphHashTest, NamesOrderAndDeadNodesDoNotMatter) {
  const std::string base = HashOf(kBase);
  EXPECT_EQ(base, HashOf(R"(fir 1
%x = input : f32[4,8]{8,1}
%dead = neg %x : f32[4,8]{8,1}
%y = input {contiguity=[t,t], stride_order=[1,0]} : f32[4,8]{8,1}
%d = exp %x
%c = mul %x, %y
%e = add %c, %d
%alsodead = constant {value=1}
output %e
)"));
}

TEST(GraphHashTest, GoldenValue) {
  EXPECT_EQ(kGraphHashVersion, 1);
  // A change of this value changes every key of every cache: raise kGraphHashVersion with it.
  EXPECT_EQ(HashOf(kBase), "5caa36f3a9f97887cc3aec5f0c79bb5308f5fe58fd1f489f625f4b5157c4fe04");
}

}  // namespace
}  // namespace fusiond::ir
