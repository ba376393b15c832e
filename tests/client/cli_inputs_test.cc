#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "client/cli/inputs.h"
#include "client/cli/support.h"
#include "compiler/ir/text.h"
#include "runtime/base/element.h"
#include "runtime/base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_seed.h"

namespace fusiond::cli {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<HostArray>> Inputs(const std::string& declarations,
                                              const std::vector<std::string>& settings,
                                              uint64_t seed = 1) {
  FUSIOND_ASSIGN_OR_RETURN(
      const ir::Graph graph,
      ir::Parse(absl::StrCat("fir 1\n", declarations, "\n%out = input : f32[]\noutput %out")));
  std::vector<client::Layout> layouts;
  for (const ir::ValueId input : graph.inputs()) {
    const ir::Type& type = graph.type(input);
    layouts.push_back(
        {{type.shape.begin(), type.shape.end()}, {type.strides.begin(), type.strides.end()}});
  }
  std::vector<InputSetting> parsed;
  for (const std::string& setting : settings) {
    FUSIOND_ASSIGN_OR_RETURN(parsed.emplace_back(), ParseInputSetting(setting));
  }
  return MakeInputs(graph, layouts, parsed, seed);
}

std::vector<double> Values(const HostArray& array) {
  std::vector<double> values;
  if (array.scalar) {
    double number;
    const uint64_t bits = array.ScalarBits();
    std::memcpy(&number, &bits, sizeof(number));
    return {base::IsFloatingPoint(array.dtype) ? number : static_cast<double>(bits)};
  }
  ForEachElement(array, [&](size_t at) {
    const char* element = array.data.data() + at;
    values.push_back(base::IsFloatingPoint(array.dtype)
                         ? base::LoadFloat(array.dtype, element)
                         : static_cast<double>(base::LoadInteger(array.dtype, element)));
  });
  return values;
}

std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// As numpy.save writes it.
std::string Npy(const std::string& dict, const std::string& data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  std::string header = dict;
  header.append(63 - (10 + header.size()) % 64, ' ').append("\n");
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  return file + header + data;
}

// A random epsilon far from 0 on the wrong side, or next to what it is added to, made
// `run --check` report what was no fault.
TEST(CliInputsTest, OneNumberAloneIsPositiveAndNear1) {
  const uint64_t first = ::fusiond::testing::TestSeed();
  for (uint64_t seed = first; seed < first + 500; ++seed) {
    ASSERT_OK_AND_ASSIGN(const std::vector<HostArray> inputs,
                         Inputs("%a=input:f32\n%b=input:bf16[]\n%c=input:f64[1,1]\n%d=input:i32\n"
                                "%e=input:i64[1]\n%f=input {host=true}:f16[]",
                                {}, seed));
    for (size_t i : {0, 1, 2, 5}) {
      for (double value : Values(inputs[i])) {
        EXPECT_GE(value, 0.5);
        EXPECT_LE(value, 1.5);
      }
    }
    for (size_t i : {3, 4}) {
      for (double value : Values(inputs[i])) {
        EXPECT_GE(value, 1);
        EXPECT_LE(value, 8);
      }
    }
  }
}

TEST(CliInputsTest, TensorsHaveBothSignsAndTheSeedDecides) {
  ASSERT_OK_AND_ASSIGN(const std::vector<HostArray> a, Inputs("%a=input:f32[1000]", {}, 7));
  ASSERT_OK_AND_ASSIGN(const std::vector<HostArray> b, Inputs("%a=input:f32[1000]", {}, 7));
  ASSERT_OK_AND_ASSIGN(const std::vector<HostArray> c, Inputs("%a=input:f32[1000]", {}, 8));
  EXPECT_EQ(a[0].data, b[0].data);
  EXPECT_NE(a[0].data, c[0].data);
  const std::vector<double> values = Values(a[0]);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 1.5);
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -1.5);
}

TEST(CliInputsTest, SettingFillsItsInputAndLeavesTheOthers) {
  const std::string graph =
      "%a=input:f32[4]\n%b=input:f32\n%c=input:bf16[2,2]\n%d=input:bool[2]\n"
      "%e=input:i32\n%f=input:f32[3]";
  ASSERT_OK_AND_ASSIGN(const std::vector<HostArray> plain, Inputs(graph, {}));
  ASSERT_OK_AND_ASSIGN(const std::vector<HostArray> set,
                       Inputs(graph, {"1=1e-5", "2=-0.5", "3=true", "4=-7", "5=inf"}));
  EXPECT_EQ(set[0].data, plain[0].data);
  EXPECT_THAT(Values(set[1]), ElementsAre(1e-5));
  EXPECT_THAT(Values(set[2]), ElementsAre(-0.5, -0.5, -0.5, -0.5));
  EXPECT_THAT(Values(set[3]), ElementsAre(1, 1));
  EXPECT_EQ(static_cast<int64_t>(set[4].ScalarBits()), -7);
  EXPECT_THAT(Values(set[5]), ElementsAre(INFINITY, INFINITY, INFINITY));
}

TEST(CliInputsTest, FileIsReadRowMajorWhateverTheStrides) {
  testing::TempFolder folder;
  const std::string raw = folder.path() + "/x.bin", npy = folder.path() + "/x.npy",
                    scalar = folder.path() + "/s.npy", half = folder.path() + "/b.npy";
  const std::string data = Floats({1, 2, 3, 4, 5, 6});
  ASSERT_THAT(base::WriteFileAtomically(raw, data), IsOk());
  ASSERT_THAT(base::WriteFileAtomically(
                  npy, Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data)),
              IsOk());
  ASSERT_THAT(
      base::WriteFileAtomically(
          scalar, Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", Floats({0.25}))),
      IsOk());
  ASSERT_THAT(base::WriteFileAtomically(
                  half, Npy("{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }",
                            std::string("\x80\x3f\x00\x40", 4))),
              IsOk());
  const std::string graph =
      "%a=input:f32[2,3]\n%b=input{stride_order=[0,1]}:f32[2,3]\n%c=input:f32\n%d=input:bf16[2]";
  ASSERT_OK_AND_ASSIGN(const std::vector<HostArray> inputs,
                       Inputs(graph, {"0=@" + npy, "1=@" + raw, "2=@" + scalar, "3=@" + half}));
  EXPECT_THAT(Values(inputs[0]), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Values(inputs[1]), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(inputs[1].data, Floats({1, 4, 2, 5, 3, 6}));
  EXPECT_THAT(Values(inputs[2]), ElementsAre(0.25));
  EXPECT_THAT(Values(inputs[3]), ElementsAre(1, 2));
}

TEST(CliInputsTest, ExpandedDimTakesOneValue) {
  testing::TempFolder folder;
  const std::string path = folder.path() + "/x.bin";
  const std::string graph = "%a=input{contiguity=[b,t]}:f32[2,2]";
  ASSERT_THAT(base::WriteFileAtomically(path, Floats({1, 2, 1, 2})), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::vector<HostArray> inputs, Inputs(graph, {"0=@" + path}));
  EXPECT_EQ(inputs[0].data, Floats({1, 2}));
  ASSERT_THAT(base::WriteFileAtomically(path, Floats({1, 2, 3, 4})), IsOk());
  EXPECT_THAT(Inputs(graph, {"0=@" + path}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expanded dim")));
}

TEST(CliInputsTest, WhatDoesNotFitIsWrongUsageAndNamed) {
  testing::TempFolder folder;
  const auto file = [&](const std::string& name, const std::string& data) {
    const std::string path = folder.path() + "/" + name;
    EXPECT_THAT(base::WriteFileAtomically(path, data), IsOk());
    return "0=@" + path;
  };
  const std::string numbers = Floats({1, 2, 3, 4, 5, 6});
  const std::pair<std::string, const char*> cases[] = {
      {"9=1", "there is no input 9, the graph has 5"},
      {"0=one", "input 0 is f32[2,3]: 'one' is no f32"},
      {"0=1e39", "'1e39' is no f32"},
      {"0=1e999", "'1e999' is no f32"},
      {"1=70000", "input 1 is f16: '70000' is no f16"},
      {"2=2147483648", "'2147483648' is no i32"},
      {"2=1.5", "'1.5' is no i32"},
      {"3=2", "'2' is no bool"},
      {"0=@/nowhere.npy", "open /nowhere.npy"},
      {file("short", "1234"), "takes 24 bytes of elements, the file has 4"},
      {file("shape", Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", numbers)),
       "the file has f32[3,2]"},
      {file("dtype", Npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", numbers)),
       "the file has i32[2,3]"},
      {file("int16", Npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", numbers)),
       "is none of"},
      {file("order", Npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", numbers)),
       "C order"},
      {file("cut", Npy("{'descr': '<f4', ", "").substr(0, 20)), "the file ends in it"},
      {file("stub", "\x93NUMPY"), "the file ends in it"},
      {file("no_shape", Npy("{'descr': '<f4', 'fortran_order': False, }", numbers)), "no shape"},
  };
  for (const auto& [setting, words] : cases) {
    const absl::Status status = Inputs(
                                    "%a=input:f32[2,3]\n%b=input:f16\n%c=input:i32\n"
                                    "%d=input:bool",
                                    {setting})
                                    .status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_EQ(Fail(Common(), status), kExitUsage) << status;
  }
  for (const char* bad : {"", "3", "=1", "x=1", "1=", "1=@", "-1=2"}) {
    EXPECT_THAT(ParseInputSetting(bad), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

}  // namespace
}  // namespace fusiond::cli
