// Requests put together again from what the cache keeps.
#include "server/service/known_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "compiler/import/graph_proto.h"
#include "compiler/ir/text.h"
#include "runtime/executable/serialise.h"
#include "server/engine/plan_job.h"
#include "server/engine/request.h"
#include "tests/cache/fake_store.h"
#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kOpen[] =
    "fir 1\n%a=input {contiguity=[f,t]} : f32[-1,32]\n%s=input:f64\n%t=cast %s {dtype=f32}\n"
    "%c=mul %a, %t\noutput %c";

class KnownRequestTest : public ::testing::Test {
 protected:
  KnownRequestTest() : cache_(cache::CacheOptions(), std::make_unique<cache::FakeStore>(&disk_)) {}

  // As a compile for rows of 40 elements at 32-byte addresses leaves it; its request.
  PreparedRequest Commit(const std::string& target) {
    v1::CompileRequest request;
    request.set_graph(graph_proto::ToBytes(*ir::Parse(kOpen)));
    v1::InputLayout* layout = request.add_inputs();
    for (int64_t extent : {64, 32}) layout->add_shape(extent);
    for (int64_t stride : {40, 1}) layout->add_strides(stride);
    layout->set_alignment(32);
    request.add_inputs();
    (*request.mutable_options())["math"] = "strict";
    const absl::StatusOr<PreparedRequest> prepared =
        PrepareRequest(request, *executable::ProfileByName(target), {"compiler", "nvrtc"});
    EXPECT_THAT(prepared, IsOk());
    const internal::v1::CompileJob job = MakePlanJob(*prepared, 0);
    const absl::StatusOr<internal::v1::PlanResult> plan = RunPlanJob(job.plan());
    EXPECT_THAT(plan, IsOk());
    const absl::StatusOr<executable::Executable> made = executable::Deserialise(plan->skeleton());
    EXPECT_THAT(made, IsOk());
    cache::NewExecutable compiled;
    compiled.canonical = prepared->material;
    compiled.canonical.graph = base::Sha256("canonical");
    compiled.bytes = plan->skeleton();
    executable_ = cache_
                      .Commit({prepared->material, prepared->graph,
                               executable::SerialiseGuards(made->guards)},
                              compiled)
                      .executable;
    return *prepared;
  }

  absl::StatusOr<KnownRequest> Find(const std::string& prefix, const Identity& identity) {
    return FindKnownRequest(cache_, grants_, identity, prefix);
  }

  const Identity administrator_{"domain", 0, true}, user_{"domain", 1000, false},
      other_{"domain", 1001, false};
  cache::FakeDisk disk_;
  cache::Cache cache_;
  Grants grants_;
  base::Digest executable_;
};

TEST_F(KnownRequestTest, AsksForTheSameAgain) {
  const PreparedRequest asked = Commit("h200");
  ASSERT_OK_AND_ASSIGN(const KnownRequest known,
                       Find(asked.encoded.key.Hex().substr(0, 8), administrator_));
  EXPECT_EQ(known.key, asked.encoded.key);
  EXPECT_EQ(known.material, asked.material);
  EXPECT_EQ(known.request.target(), "h200");
  EXPECT_EQ(known.request.graph(), asked.graph);
  EXPECT_THAT(known.request.options(), ElementsAre(::testing::Pair("math", "strict")));
  ASSERT_EQ(known.request.inputs_size(), 2);
  EXPECT_THAT(known.request.inputs(0).shape(), ElementsAre(64, 32));
  EXPECT_THAT(known.request.inputs(0).strides(), ElementsAre(40, 1));
  EXPECT_EQ(known.request.inputs(0).alignment(), 16);  // what the kernels made use of
  EXPECT_EQ(known.request.inputs(1).shape_size(), 0);
  ASSERT_OK_AND_ASSIGN(const PreparedRequest again,
                       PrepareRequest(known.request, asked.device, {"compiler", "nvrtc"}));
  EXPECT_EQ(again.encoded.key, asked.encoded.key);
}

TEST_F(KnownRequestTest, CpuTakesAnyStrides) {
  const PreparedRequest asked = Commit("cpu");
  ASSERT_OK_AND_ASSIGN(const KnownRequest known, Find(asked.encoded.key.Hex(), administrator_));
  EXPECT_THAT(known.request.inputs(0).shape(), ElementsAre(64, 32));
  EXPECT_EQ(known.request.inputs(0).strides_size(), 0);
}

TEST_F(KnownRequestTest, IsTheAdministratorsAndOfWhomAnAnswerNamedIt) {
  const std::string key = Commit("h200").encoded.key.Hex();
  EXPECT_THAT(Find(key, user_), StatusIs(absl::StatusCode::kNotFound));
  grants_.Add(user_, executable_);
  EXPECT_THAT(Find(key, user_), IsOk());
  // As if there were none.
  const absl::Status others = Find(key, other_).status();
  const std::string unknown(64, '0');
  EXPECT_THAT(others, StatusIs(absl::StatusCode::kNotFound, HasSubstr("no entry of yours")));
  EXPECT_EQ(Find(unknown, other_).status().code(), others.code());
  EXPECT_EQ(std::string(Find(unknown, other_).status().message()),
            "no entry of yours has a key that begins with " + unknown);
  EXPECT_THAT(Find("xyz", administrator_), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(KnownRequestTest, GraphThatIsGoneIsSaid) {
  const std::string key = Commit("h200").encoded.key.Hex();
  disk_.LoseAll();
  EXPECT_THAT(Find(key, administrator_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("was not kept")));
}

}  // namespace
}  // namespace fusiond::server
