#include "compiler/ir/text.h"

#include <limits>

#include "compiler/ir/verify.h"
#include "tests/support/status_matchers.h"

namespace fusiond::ir {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

constexpr char kEveryForm[] = R"(fir 1
%0 = input : bf16[2048,8192]{8192,1}
%1 = input {contiguity=[f,b]} : f32[-1,1]{?,1}
%2 = input {contiguity=[b,t], stride_order=[0,1]} : f32[4,8]{1,0}
%3 = input {host=true} : f64[]{}
%4 = input : i64
%5 = input : f32[2048]{1}
%6 = constant {value=3.0} : f64
%7 = constant {value=-0.0, dtype=f32} : f32
%8 = constant {value=9007199254740993} : i64
%9 = constant {value=nan} : f64
%10 = constant {value=true} : bool
%11 = cast %0 {dtype=f32} : f32[2048,8192]{8192,1}
%12, %13 = var_mean %11 {dims=[1], keepdim=true, correction=0} : f32[2048,1]{1,1}, f32[2048,1]{1,1}
%14 = size %1 {dims=[0]} : i64
%15 = broadcast_in_dim %1, %14 {shape=[-1,7], broadcast_dims=[0,1]} : f32[-1,7]{1,0}
%16 = full %6, %14 {dtype=f16, shape=[-1,2]} : f16[-1,2]{2,1}
%17 = broadcast %2 {is_broadcast_dim=[true,false,false]} : f32[1,4,8]{32,8,1}
%18 = sum %11 {dims=[1]} : f32[2048]{1}
output %12
output %15
output %18 alias %5
)";

TEST(TextTest, EveryFormRoundTrips) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, Parse(kEveryForm));
  EXPECT_EQ(Print(graph), kEveryForm);
  EXPECT_THAT(Verify(graph, Stage::kImported), IsOk());
}

TEST(TextTest, TypesCommentsAndNamesAreTheWritersChoice) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       Parse("# a comment first\n\nfir 1  # version\n"
                             "%x.1 = input:f32[4,8]\r\n"
                             "\t%sum_of-x = sum %x.1 { dims = [ 0 , 1 ] } # no type\n"
                             "output %sum_of-x"));
  EXPECT_EQ(Print(graph),
            "fir 1\n%0 = input : f32[4,8]{8,1}\n%1 = sum %0 {dims=[0,1]} : f32[]{}\noutput %1\n");
}

TEST(TextTest, DoublesPrintShortestAndReadBack) {
  for (const double value :
       {0.1, 1e300, 5e-324, -1.0, 123456789.0, 1e22, std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    Graph graph;
    graph.AddConstant(value, DType::kDouble);
    ASSERT_OK_AND_ASSIGN(const ValueId t, graph.AddInput(TensorType(DType::kFloat, {})));
    graph.AddOutput(t);
    ASSERT_OK_AND_ASSIGN(const Graph back, Parse(Print(graph)));
    EXPECT_EQ(back.ConstantValue(0), Number(value)) << Print(graph);
  }
}

struct Bad {
  const char* text;
  const char* message;
};

TEST(TextTest, ErrorsCarryLineAndColumn) {
  const Bad kCases[] = {
      {"", "1:1: expected 'fir', found the end of the text"},
      {"fire 1", "1:1: the first statement must be 'fir 1'"},
      {"fir 2", "1:5: version '2' is not supported, this is version 1"},
      {"fir 1\n%a = input", "2:6: node %a: an input needs its type"},
      {"fir 1\n%a = input : f32[4\n", "2:19: expected ']', found the end of the line"},
      {"fir 1\n%a = input : f99[4]", "2:14: 'f99' is no dtype"},
      {"fir 1\n% a = input : f32", "2:1: a name must follow '%' at once"},
      {"fir 1\n%a = input : f32[4] x", "2:21: expected the end of the line, found 'x'"},
      {"fir 1\nresult %a", "2:1: expected '%' or 'output', found 'result'"},
      {"fir 1\n\x01", "2:1: expected '%' or 'output', found '\\x01'"},
      {"fir 1\n%a = input : f32[4]\n%b = neg %a,\n", "3:13: expected '%', found the end"},
      {"fir 1\n%a = constant {value=99999999999999999999}", "2:22: '99999999999999999999' is no"},
  };
  for (const Bad& bad : kCases) {
    EXPECT_THAT(Parse(bad.text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad.message)))
        << bad.text;
  }
}

}  // namespace
}  // namespace fusiond::ir
