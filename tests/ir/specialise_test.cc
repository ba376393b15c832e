#include "compiler/ir/specialise.h"

#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "tests/support/status_matchers.h"

namespace fusiond::ir {
namespace {

using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

absl::StatusOr<std::string> Special(const std::string& text, absl::string_view extents) {
  ValueNames names;
  FUSIOND_ASSIGN_OR_RETURN(const Graph graph, Parse("fir 1\n" + text, {}, &names));
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<Dims> shapes, ParseExtents(extents, graph));
  FUSIOND_ASSIGN_OR_RETURN(Graph special, Specialise(graph, shapes, &names));
  FUSIOND_RETURN_IF_ERROR(Verify(special, Stage::kSpecialised));
  special.Compact();
  return Print(special);
}

TEST(SpecialiseTest, ParsesShapes) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       Parse("fir 1\n%a=input:f32[-1,-1]\n%b=input:f32[8192]\n%c=input:f64\n"
                             "%d=input:f32[-1,1]\n%e=input:f32[]\noutput %a"));
  const std::vector<Dims> expected = {{2048, 8192}, {8192}, {}, {0, 1}, {}};
  for (const char* same : {"2048x8192,8192,,0x1", "2048x8192,-,-,0x1,-", "2048x8192,,-,0x1,"}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Dims> shapes, ParseExtents(same, graph));
    EXPECT_EQ(shapes, expected) << same;
  }
}

TEST(SpecialiseTest, BadShapesAreNamed) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, Parse("fir 1\n%a=input:f32[4]\n%b=input:f32[-1,8]\n"
                                                "output %a"));
  const std::pair<const char*, const char*> bad[] = {
      {"4,4x", "input 1: '' is no extent"},
      {"x4", "input 0: '' is no extent"},
      {"4x-1", "input 0: '-1' is no extent"},
      {"4y", "input 0: '4y' is no extent"},
      {"4,--", "input 1: '--' is no extent"},
      {"99999999999999999999", "'99999999999999999999' is no extent"},
      {"4", "input 1 is f32[-1,8]{8,1}: say its extents"},
      {"", "input 1 is f32[-1,8]{8,1}: say its extents"},
      {"4,-", "input 1 is f32[-1,8]{8,1}: say its extents"},
      {"4,4x8,8", "extents of 3 inputs given, the graph has 2"},
  };
  for (const auto& [text, words] : bad) {
    EXPECT_THAT(ParseExtents(text, graph),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
  }
}

TEST(SpecialiseTest, StaticGraphStaysAsItIs) {
  ASSERT_OK_AND_ASSIGN(
      const std::string text,
      Special("%a=input:f32[4,8]\n%s=input:f64\n%b=mul %a, %s\noutput %b alias %a", "4x8,"));
  EXPECT_EQ(text,
            "fir 1\n%0 = input : f32[4,8]{8,1}\n%1 = input : f64\n"
            "%2 = mul %0, %1 : f32[4,8]{8,1}\noutput %2 alias %0\n");
}

TEST(SpecialiseTest, ExtentOf1BecomesABroadcastDimOfTheInput) {
  ASSERT_OK_AND_ASSIGN(
      const std::string text,
      Special("%a=input {contiguity=[f,t], stride_order=[0,1]}:f32[-1,8]\noutput %a", "1x8"));
  EXPECT_EQ(
      text,
      "fir 1\n%0 = input {contiguity=[f,b], stride_order=[0,1]} : f32[1,8]{1,?}\noutput %0\n");
}

TEST(SpecialiseTest, ExpandedSymbolicDimStaysExpanded) {
  ASSERT_OK_AND_ASSIGN(const std::string text,
                       Special("%a=input {contiguity=[b,t]}:f32[-1,8]\noutput %a", "4x8"));
  EXPECT_EQ(text, "fir 1\n%0 = input {contiguity=[b,t]} : f32[4,8]{0,1}\noutput %0\n");
}

TEST(SpecialiseTest, ShapeArithmeticIsFolded) {
  const std::string graph = R"(
%a = input : f32[-1,-1]
%n = size %a {dims=[0]}
%m = size %a {dims=[1]}
%nm = mul %n, %m
%two = constant {value=2}
%q = div %nm, %two
%r = mod %nm, %two
%qr = add %q, %r
%x = maximum %qr, %two
%y = minimum %x, %nm
%z = neg %y
%w = sub %two, %z
%u = cast %w {dtype=i64}
%v = set %u
%f = full %two, %v {dtype=f32, shape=[-1]}
output %f)";
  ASSERT_OK_AND_ASSIGN(const std::string text, Special(graph, "3x5"));
  EXPECT_THAT(text, HasSubstr(": f32[10]{1}"));
}

struct Bad {
  const char* graph;
  const char* extents;
  absl::StatusCode code;
  const char* words;
};

TEST(SpecialiseTest, ContradictionsAreRefused) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const Bad kCases[] = {
      {"%a=input:f32[-1,8]\noutput %a", "4x8,4", kInvalid,
       "extents of 2 inputs given, the graph has 1"},
      {"%a=input:f32[-1,8]\noutput %a", "4", kInvalid,
       "node %a: input 0: 1 extent given, the rank is 2"},
      {"%a=input:f32[-1,8]\noutput %a", "4x9", kInvalid,
       "input 0: extent 1 is declared 8, 9 given"},
      {"%a=input:f32[1]\noutput %a", "2", kInvalid, "input 0: extent 0 is declared 1, 2 given"},
      {"%a=input:f32[-1]\n%b=input:f32[-1]\n%c=add %a, %b\noutput %c", "4,5", kInvalid,
       "node %c: IR-18: add: operand 1 has extent 5 at dim 0 of the result, an earlier "
       "operand has 4"},
      {"%a=input:f32[-1]\n%b=input:f32[-1]\n%c=add %a, %b\noutput %c", "4,1", kInvalid,
       "node %c: IR-18: add: symbolic extent 0 of operand 1 is 1 and meets extent 4"},
      {"%a=input:f32[-1]\n%b=expand %a {shape=[4]}\noutput %b", "1", kInvalid,
       "node %b: IR-18: expand: symbolic extent 0 of operand 0 is 1 and meets extent 4"},
      {"%a=input:f32[-1]\n%b=broadcast_in_dim %a {shape=[2,4], broadcast_dims=[1]}\noutput %b", "1",
       kInvalid,
       "node %b: IR-18: broadcast_in_dim: symbolic extent 0 of operand 0 is 1 and meets extent 4"},
      {"%a=input:f32[-1]\n%s=input:i64\n%b=broadcast_in_dim %a, %s {shape=[-1,4], "
       "broadcast_dims=[1]}\noutput %b",
       "4,", absl::StatusCode::kUnimplemented,
       "node %b: broadcast_in_dim: operand 1 (%s), an extent, is neither a constant nor made of "
       "sizes"},
      {"%a=input:f32[-1]\n%n=size %a {dims=[0]}\n%m=neg %n\n%f=full %n, %m {dtype=f32, "
       "shape=[-1]}\noutput %f",
       "4", kInvalid, "node %f: IR-10: full: operand 1 (%m), an extent, is -4, must be 0 or more"},
      {"%a=input:f32[-1]\n%n=size %a {dims=[0]}\n%z=constant {value=0}\n%m=div %n, %z\n%f=full "
       "%n, %m {dtype=f32, shape=[-1]}\noutput %f",
       "4", absl::StatusCode::kUnimplemented, "operand 1 (%m), an extent, is neither a constant"},
  };
  for (const Bad& bad : kCases) {
    EXPECT_THAT(Special(bad.graph, bad.extents), StatusIs(bad.code, HasSubstr(bad.words)))
        << bad.graph;
  }
}

TEST(SpecialiseTest, NegativeExtentsAreRefused) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, Parse("fir 1\n%a=input:f32[-1]\noutput %a"));
  EXPECT_THAT(Specialise(graph, {Dims{-1}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("declared -1, -1 given")));
}

}  // namespace
}  // namespace fusiond::ir
