#include "compiler/ir/hash.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

// One change at a time to a graph that has every attribute: all hashes differ.
TEST(GraphHashTest, EveryPartCounts) {
  const std::string base = R"(fir 1
%a = input : f32[4,1,8]
%b = input {contiguity=[f,t], stride_order=[0,1]} : f32[4,8]
%h = input {host=false} : f32[]
%s = input : i64
%k = constant {value=1.0} : f64
%i = constant {value=1} : i64
%c = cast %a {dtype=f16}
%d = sum %a {dims=[0,1], keepdim=true}
%e = var %a {dims=[0,2], correction=2}
%f = full %k, %s {dtype=f32, shape=[-1,3]}
%g = broadcast %b {is_broadcast_dim=[true,false,false]}
%j = broadcast_in_dim %e {shape=[5,2,1], broadcast_dims=[1]}
%l = expand %a {shape=[4,6,8]}
%m = squeeze %a {dims=[1]}
%n = sub %a, %b
%z = size %a {dims=[0]}
%p = mul %h, %b
%o = mul %p, %z
output %c
output %d
output %f
output %g
output %j
output %l
output %m
output %n
output %o
)";
  const std::pair<const char*, const char*> kChanges[] = {
      {"f32[4,1,8]", "f64[4,1,8]"},
      {"f32[4,1,8]", "f32[-1,1,8]"},
      {"%h = input {host=false} : f32[]", "%h = input {host=true} : f32[]"},
      {"%h = input {host=false} : f32[]", "%h = input : f32"},
      {"contiguity=[f,t]", "contiguity=[t,t]"},
      {"contiguity=[f,t]", "contiguity=[t,f]"},
      {"stride_order=[0,1]", "stride_order=[1,0]"},
      {"%s = input : i64", "%s = input : i32"},
      {"{value=1.0} : f64", "{value=1.5} : f64"},
      {"{value=1.0} : f64", "{value=-1.0} : f64"},
      {"{value=1.0} : f64", "{value=1.0, dtype=f32} : f32"},
      {"{value=1.0} : f64", "{value=1} : i64"},
      {"{value=1.0} : f64", "{value=true} : bool"},
      {"{dtype=f16}", "{dtype=bf16}"},
      {"keepdim=true", "keepdim=true, dtype=f64"},
      {"sum %a {dims=[0,1]", "sum %a {dims=[0,2]"},
      {"sum %a {dims=[0,1]", "prod %a {dims=[0,1]"},
      {"keepdim=true", "keepdim=false"},
      {"correction=2", "correction=0"},
      {"correction=2", "correction=1"},
      {"{dtype=f32, shape=[-1,3]}", "{dtype=f16, shape=[-1,3]}"},
      {"{dtype=f32, shape=[-1,3]}", "{dtype=f32, shape=[3,-1]}"},
      {"[true,false,false]", "[false,true,false]"},
      {"shape=[5,2,1], broadcast_dims=[1]", "shape=[2,5,1], broadcast_dims=[2]"},
      {"shape=[5,2,1], broadcast_dims=[1]", "shape=[5,2,1], broadcast_dims=[2]"},
      {"expand %a {shape=[4,6,8]}", "expand %a {shape=[4,7,8]}"},
      {"squeeze %a {dims=[1]}", "squeeze %a {dims=[]}"},
      {"sub %a, %b", "sub %b, %a"},
      {"sub %a, %b", "sub %a, %a"},
      {"sub %a, %b", "sub %b, %b"},
      {"size %a {dims=[0]}", "size %a {dims=[2]}"},
      {"output %n", "output %n alias %b"},
      {"output %c\noutput %d", "output %d\noutput %c"},
      {"output %o\n", "output %o\noutput %o\n"},
      {"output %o\n", ""},
  };
  std::map<std::string, std::string> seen = {{HashOf(base), "base"}};
  for (const auto& [from, to] : kChanges) {
    std::string changed = base;
    ASSERT_THAT(changed, ::testing::HasSubstr(from));
    changed.replace(changed.find(from), strlen(from), to);
    // The alias needs an input of the output's shape.
    if (absl::StrContains(to, "alias")) {
      changed.replace(changed.find("sub %a, %b"), strlen("sub %a, %b"), "sub %b, %b");
    }
    const auto [it, is_new] = seen.emplace(HashOf(changed), to);
    EXPECT_TRUE(is_new) << to << " hashes as " << it->second;
  }
}

TEST(GraphHashTest, ZerosDifferBySignAndNansDoNot) {
  const auto with = [](absl::string_view value) {
    return HashOf(absl::StrCat("fir 1\n%a=input:f32[4]\n%k=constant {value=", value,
                               "}\n%b=mul %a, %k\noutput %b"));
  };
  EXPECT_NE(with("0.0"), with("-0.0"));
  EXPECT_EQ(with("nan"), with("-nan"));
  EXPECT_NE(with("inf"), with("-inf"));
}

TEST(GraphHashTest, GoldenValue) {
  EXPECT_EQ(kGraphHashVersion, 1);
  // A change of this value changes every key of every cache: raise kGraphHashVersion with it.
  EXPECT_EQ(HashOf(kBase), "5caa36f3a9f97887cc3aec5f0c79bb5308f5fe58fd1f489f625f4b5157c4fe04");
}

}  // namespace
}  // namespace fusiond::ir
