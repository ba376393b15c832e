#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "client/cli/summary.h"
#include "runtime/base/element.h"

namespace fusiond::cli {
namespace {

using base::DType;

// Row-major, with `gap` elements between rows.
HostArray Array(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values,
                int64_t gap = 0) {
  HostArray array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  array.strides = {array.shape[1] + gap, 1};
  array.data.assign(Footprint(array), '\x7b');
  size_t next = 0;
  ForEachElement(array, [&](size_t at) {
    char* element = array.data.data() + at;
    if (base::IsFloatingPoint(dtype)) {
      base::StoreFloat(dtype, values[next++], element);
    } else {
      base::StoreInteger(dtype, static_cast<int64_t>(values[next++]), element);
    }
  });
  return array;
}

TEST(CliSummaryTest, FirstElementsExtremesAndMean) {
  const Summary summary =
      Summarise(Array(DType::kFloat, {2, 4}, {1, -2.5, 0.125, 1e-5, 8, 0, 0, 1.37499}));
  EXPECT_EQ(ToText(summary), "f32[2,4] = 1 -2.5 0.125 1e-05 8 ...; min -2.5, max 8, mean 1");
}

TEST(CliSummaryTest, ElementsBetweenRowsDoNotCount) {
  EXPECT_EQ(ToText(Summarise(Array(DType::kBFloat16, {2, 3}, {1, 2, 3, 4, 5, 9}, 7))),
            "bf16[2,3] = 1 2 3 4 5 ...; min 1, max 9, mean 4");
}

TEST(CliSummaryTest, FewElementsSpeakForThemselves) {
  EXPECT_EQ(ToText(Summarise(Array(DType::kHalf, {1, 2}, {0.5, NAN}))), "f16[1,2] = 0.5 nan");
  EXPECT_EQ(ToText(Summarise(Array(DType::kFloat, {0, 4}, {}))), "f32[0,4] is empty");
  EXPECT_EQ(ToText(Summarise(Array(DType::kBool, {1, 3}, {1, 0, 1}))), "bool[1,3] = 1 0 1");
}

TEST(CliSummaryTest, WhatIsNotFiniteIsCounted) {
  EXPECT_EQ(ToText(Summarise(Array(DType::kFloat, {2, 3}, {NAN, INFINITY, -INFINITY, 2, 4, NAN}))),
            "f32[2,3] = nan inf -inf 2 4 ...; min 2, max 4, mean 3; 4 not finite");
  EXPECT_EQ(ToText(Summarise(Array(DType::kDouble, {2, 3}, {NAN, NAN, NAN, NAN, NAN, NAN}))),
            "f64[2,3] = nan nan nan nan nan ...; 6 not finite");
}

TEST(CliSummaryTest, IntegersKeepAllDigits) {
  HostArray array = Array(DType::kInt, {1, 1}, {0});
  base::StoreInteger(DType::kInt, (int64_t{1} << 62) + 1, array.data.data());
  EXPECT_EQ(ToText(Summarise(array)), "i64[1,1] = 4611686018427387905");
}

TEST(CliSummaryTest, JsonHoldsWhatTextDoes) {
  EXPECT_EQ(ToJsonMembers(Summarise(Array(DType::kFloat, {1, 2}, {0.5, NAN}))),
            "\"dtype\": \"f32\", \"shape\": [1, 2], \"first\": [0.5, null], \"min\": 0.5, "
            "\"max\": 0.5, \"mean\": 0.5, \"not_finite\": 1");
}

}  // namespace
}  // namespace fusiond::cli
