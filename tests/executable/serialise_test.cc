#include "runtime/executable/serialise.h"

#include <random>

#include "proto/fusiond/v1/executable.pb.h"
#include "tests/executable/sample_executable.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace fusiond::executable {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

TEST(SerialiseTest, RoundTripKeepsEveryField) {
  const Executable sample = SampleExecutable();
  ASSERT_THAT(Validate(sample), IsOk());
  const std::string bytes = Serialise(sample);
  ASSERT_OK_AND_ASSIGN(Executable back, Deserialise(bytes));
  EXPECT_EQ(back, sample);
  EXPECT_EQ(Serialise(back), bytes);
}

TEST(SerialiseTest, GuardsAloneRoundTrip) {
  const std::vector<Guard> guards = SampleExecutable().guards;
  ASSERT_OK_AND_ASSIGN(std::vector<Guard> back, DeserialiseGuards(SerialiseGuards(guards)));
  EXPECT_EQ(back, guards);
  EXPECT_THAT(DeserialiseGuards("\xff\xff"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SerialiseTest, GuardsThatCannotBeAskedAreRefused) {
  Guard overlap{.kind = Guard::Kind::kNoOverlap, .input = 0, .dim = 0, .output = {}, .value = 0};
  EXPECT_THAT(DeserialiseGuards(SerialiseGuards({overlap})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("names no output")));
  // 257 is no EXTENT_EQUALS whose upper bits got lost.
  for (const int kind : {0, 8, 257}) {
    v1::Guards guards;
    guards.add_guards()->set_kind(static_cast<v1::Guard::Kind>(kind));
    EXPECT_THAT(DeserialiseGuards(guards.SerializeAsString()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("unknown kind")))
        << kind;
  }
}

TEST(SerialiseTest, NumbersBeyondAByteAreNotCut) {
  const auto refused = [](auto change, const std::string& what) {
    v1::Executable e;
    ASSERT_TRUE(e.ParseFromString(Serialise(SampleExecutable())));
    change(e);
    EXPECT_THAT(Deserialise(e.SerializeAsString()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  const auto cut = [](int number) { return number + 256; };
  refused([&](v1::Executable& e) { e.mutable_inputs(0)->set_dtype(cut(5)); }, "dtype");
  refused([&](v1::Executable& e) { e.mutable_outputs(0)->set_dtype(cut(6)); }, "dtype");
  refused(
      [&](v1::Executable& e) {
        v1::KernelStep& kernel = *e.mutable_steps(1)->mutable_kernel();
        kernel.mutable_arguments(0)->set_kind(static_cast<v1::KernelArgument::Kind>(cut(1)));
      },
      "argument of unknown kind");
  refused(
      [&](v1::Executable& e) {
        v1::FormulaTerm& term = *e.mutable_workspace_bytes()->mutable_terms(0);
        term.set_kind(static_cast<v1::FormulaTerm::Kind>(cut(1)));
      },
      "unknown term kind");
}

TEST(SerialiseTest, OtherVersionIsNamed) {
  Executable sample = SampleExecutable();
  sample.version = 7;
  EXPECT_THAT(Deserialise(Serialise(sample)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version 1 expected, is 7")));
}

TEST(SerialiseTest, BrokenRulesAreNamed) {
  auto refused = [](auto change, const std::string& what) {
    Executable e = SampleExecutable();
    change(e);
    EXPECT_THAT(Deserialise(Serialise(e)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  auto kernel = [](Executable& e) -> KernelStep& { return std::get<KernelStep>(e.steps[1]); };
  refused([&](Executable& e) { kernel(e).image = 3; }, "step's image");
  refused([&](Executable& e) { kernel(e).entry.clear(); }, "entry name");
  refused([&](Executable& e) { kernel(e).arguments[0].index = 9; }, "tensor argument's input");
  refused([&](Executable& e) { kernel(e).arguments[0].index = 1; }, "tensor argument's input");
  refused([&](Executable& e) { kernel(e).arguments[3].index = 0; }, "scalar argument's input");
  for (DType dtype : {DType::kHalf, DType::kInt, DType::kBool, static_cast<DType>(99)}) {
    refused([&](Executable& e) { kernel(e).arguments[3].dtype = dtype; }, "scalar argument");
  }
  refused([&](Executable& e) { kernel(e).arguments[1].index = 5; }, "argument's output");
  refused([&](Executable& e) { kernel(e).grid[0] = Formula::Extent(0, 5); }, "no dim 5");
  refused([](Executable& e) { e.guards[0].dim = 4; }, "guard's dim");
  refused([](Executable& e) { e.guards[0].input = 4; }, "guard's input");
  refused([](Executable& e) { e.outputs[0].strides.pop_back(); }, "output rank");
  for (uint32_t input : {1, 12}) {  // a scalar, none
    refused([&](Executable& e) { e.outputs[1].alias_input = input; }, "alias");
  }
  refused([](Executable& e) { e.guards[4].output.reset(); }, "names no output");
  refused([](Executable& e) { e.workspace_alignment = 3; }, "workspace alignment");
  refused([](Executable& e) { e.inputs[0].shape.resize(9), e.inputs[0].strides.resize(9); },
          "input rank");
  refused([](Executable& e) { e.inputs[0].strides.pop_back(); }, "input strides");
  refused([](Executable& e) { e.inputs[0].shape[1] = -2; }, "extent (at least)");
  refused([](Executable& e) { e.inputs[0].dtype = static_cast<DType>(99); }, "dtype");
}

TEST(SerialiseTest, DamagedBytesNeverCrash) {
  std::mt19937 random(::fusiond::testing::TestSeed());
  const std::string bytes = Serialise(SampleExecutable());
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = bytes;
    for (int hits = 0; hits < 4; ++hits)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    absl::StatusOr<Executable> result = Deserialise(damaged);
    if (result.ok()) {
      EXPECT_THAT(Validate(*result), IsOk());
    }
  }
}

}  // namespace
}  // namespace fusiond::executable
