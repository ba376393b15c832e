#include "runtime/executable/signature.h"

#include <set>

#include "tests/support/status_matchers.h"

namespace fusiond::executable {
namespace {

using ::fusiond::testing::StatusIs;

Signature Sample() {
  Signature signature;
  signature.inputs.push_back({DType::kBFloat16, false, MemorySpace::kDevice, {2048, std::nullopt}});
  signature.inputs.push_back({DType::kDouble, true, MemorySpace::kDevice, {}});
  signature.inputs.push_back({DType::kFloat, false, MemorySpace::kHost, {}});
  return signature;
}

TEST(SignatureTest, EncodeAndDecodeAreInverse) {
  ASSERT_OK_AND_ASSIGN(Signature back, Signature::Decode(Sample().Encode()));
  EXPECT_EQ(back, Sample());
  EXPECT_EQ(back.ToString(), "bf16[2048,.], f64, f32[]@host");
}

TEST(SignatureTest, EveryTruncationIsRefused) {
  const std::string bytes = Sample().Encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(Signature::Decode(bytes.substr(0, size)),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << size;
  }
  EXPECT_THAT(Signature::Decode(bytes + "x"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SignatureTest, F15_EveryFieldChangesTheBytes) {
  std::set<std::string> seen{Sample().Encode()};
  auto expect_new = [&](auto change) {
    Signature signature = Sample();
    change(signature);
    EXPECT_TRUE(seen.insert(signature.Encode()).second);
  };
  expect_new([](Signature& s) { s.inputs[0].dtype = DType::kHalf; });
  expect_new([](Signature& s) { s.inputs[0].extents[0] = 2047; });
  expect_new([](Signature& s) { s.inputs[0].extents[1] = 0; });
  expect_new([](Signature& s) { s.inputs[0].extents[0] = std::nullopt; });
  expect_new([](Signature& s) { s.inputs[0].space = MemorySpace::kHost; });
  expect_new([](Signature& s) { s.inputs[1].scalar = false; });
  expect_new([](Signature& s) { s.inputs.pop_back(); });
  expect_new([](Signature& s) { std::swap(s.inputs[0], s.inputs[1]); });
}

}  // namespace
}  // namespace fusiond::executable
