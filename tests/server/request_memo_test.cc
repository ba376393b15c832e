#include "server/engine/request_memo.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compiler/import/graph_proto.h"
#include "compiler/ir/text.h"
#include "tests/support/status_matchers.h"

namespace fusiond::server {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

using Prepared = std::shared_ptr<const PreparedRequest>;

std::string GraphBytes(const std::string& op, const std::string& type = "f32[-1,-1]") {
  absl::StatusOr<ir::Graph> graph = ir::Parse("fir 1\n%a=input:" + type + "\n%b=input:" + type +
                                              "\n%c=" + op + " %a, %b\noutput %c");
  EXPECT_THAT(graph, IsOk());
  return graph_proto::ToBytes(*graph);
}

v1::CompileRequest Request(int64_t rows = 64) {
  v1::CompileRequest request;
  request.set_graph(GraphBytes("add"));
  for (int i = 0; i < 2; ++i) {
    v1::InputLayout* layout = request.add_inputs();
    for (const int64_t extent : {rows, int64_t{32}}) layout->add_shape(extent);
    for (const int64_t stride : {32, 1}) layout->add_strides(stride);
  }
  return request;
}

absl::StatusOr<Prepared> Prepare(RequestMemo& memo, const v1::CompileRequest& request,
                                 const std::string& target = "sm_90a",
                                 const KeyContext& context = {"compiler", "nvrtc"}) {
  absl::StatusOr<executable::DeviceInfo> device = executable::ProfileByName(target);
  EXPECT_THAT(device, IsOk());
  return memo.Prepare(request, *device, context);
}

TEST(RequestMemoTest, SameRequestIsCheckedOnce) {
  RequestMemo memo;
  ASSERT_OK_AND_ASSIGN(const Prepared first, Prepare(memo, Request()));
  v1::CompileRequest again = Request();
  // What neither a check nor a key reads.
  again.set_include_executable(true);
  again.set_target("resolved by now");
  ASSERT_OK_AND_ASSIGN(const Prepared second, Prepare(memo, again));
  EXPECT_EQ(second, first);
  EXPECT_EQ(memo.GetStats().hits, 1u);
  EXPECT_EQ(memo.GetStats().entries, 1u);
}

TEST(RequestMemoTest, AnswersAsTheCheckDoes) {
  RequestMemo memo;
  ASSERT_OK_AND_ASSIGN(const executable::DeviceInfo device, executable::ProfileByName("sm_90a"));
  const KeyContext context = {"compiler", "nvrtc"};
  ASSERT_OK_AND_ASSIGN(const PreparedRequest checked, PrepareRequest(Request(), device, context));
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(const Prepared kept, memo.Prepare(Request(), device, context));
    EXPECT_EQ(kept->graph, checked.graph);
    EXPECT_EQ(kept->material, checked.material);
    EXPECT_EQ(kept->encoded.key, cache::RequestKeyOf(checked.material));
    EXPECT_EQ(kept->encoded.material, cache::EncodeRequestMaterial(checked.material));
    EXPECT_EQ(kept->device, device);
  }
}

TEST(RequestMemoTest, RequestsThatDifferInOneFieldDoNotShareF09) {
  using Change = std::function<void(v1::CompileRequest&)>;
  const std::vector<Change> changes = {
      [](v1::CompileRequest&) {},
      [](v1::CompileRequest& r) { r.set_graph(GraphBytes("mul")); },
      [](v1::CompileRequest& r) { r.set_graph(GraphBytes("add", "f32[64,32]")); },
      [](v1::CompileRequest& r) {
        r.set_graph(GraphBytes("add", "f32[64,32]"));
        r.clear_inputs();  // extents as the graph states them
      },
      [](v1::CompileRequest& r) { (*r.mutable_options())["math"] = "strict"; },
      [](v1::CompileRequest& r) { (*r.mutable_options())["math"] = "fast"; },
      [](v1::CompileRequest& r) { (*r.mutable_options())["excess_precision"] = "true"; },
      [](v1::CompileRequest& r) {
        for (v1::InputLayout& layout : *r.mutable_inputs()) layout.set_shape(0, 65);
      },
      [](v1::CompileRequest& r) { r.mutable_inputs(0)->set_strides(0, 40); },
      [](v1::CompileRequest& r) { r.mutable_inputs(1)->set_strides(0, 40); },
      [](v1::CompileRequest& r) { r.mutable_inputs(0)->clear_strides(); },
      [](v1::CompileRequest& r) { r.mutable_inputs(0)->set_alignment(4); },
      [](v1::CompileRequest& r) { r.mutable_inputs(1)->set_alignment(4); },
  };
  RequestMemo memo;
  std::vector<Prepared> all;
  for (const Change& change : changes) {
    v1::CompileRequest request = Request();
    change(request);
    ASSERT_OK_AND_ASSIGN(Prepared prepared, Prepare(memo, request));
    all.push_back(std::move(prepared));
  }
  for (const auto& [target, context] : std::vector<std::pair<std::string, KeyContext>>{
           {"sm_89", {"compiler", "nvrtc"}},
           {"h200", {"compiler", "nvrtc"}},  // the same arch
           {"sm_90a", {"another compiler", "nvrtc"}},
           {"sm_90a", {"compiler", "another nvrtc"}},
           {"sm_90a", {"compilern", "vrtc"}}}) {
    ASSERT_OK_AND_ASSIGN(Prepared prepared, Prepare(memo, Request(), target, context));
    all.push_back(std::move(prepared));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]) << i << " and " << j;
  }
  EXPECT_EQ(memo.GetStats().entries, all.size());
  EXPECT_EQ(memo.GetStats().hits, 0u);
}

TEST(RequestMemoTest, BadRequestIsRefusedEachTimeF16) {
  RequestMemo memo;
  v1::CompileRequest bad = Request();
  bad.mutable_inputs(0)->set_alignment(3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Prepare(memo, bad).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inputs[0]: alignment")));
  }
  EXPECT_EQ(memo.GetStats().entries, 0u);
  bad.mutable_inputs(0)->set_alignment(32);
  EXPECT_THAT(Prepare(memo, bad), IsOk());
}

// A good one that is known makes nothing of its kind good.
TEST(RequestMemoTest, KnownGraphWithBadLayoutsIsRefused) {
  RequestMemo memo;
  ASSERT_THAT(Prepare(memo, Request()), IsOk());
  v1::CompileRequest bad = Request();
  bad.mutable_inputs(1)->set_shape(0, 65);
  EXPECT_THAT(Prepare(memo, bad).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  bad = Request();
  bad.add_inputs();
  EXPECT_THAT(Prepare(memo, bad).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 layouts expected")));
  bad = Request();
  for (int i = 0; i < 100; ++i) (*bad.mutable_options())[std::to_string(i)] = "";
  EXPECT_THAT(Prepare(memo, bad).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  bad = Request();
  for (int i = 0; i < 100; ++i) bad.mutable_inputs(0)->add_shape(1);
  EXPECT_THAT(Prepare(memo, bad).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 2 expected")));
  EXPECT_THAT(Prepare(memo, Request(), "cpu"), IsOk());
  v1::CompileRequest exact = Request();
  (*exact.mutable_options())["precision"] = "double";
  EXPECT_THAT(Prepare(memo, exact, "cpu"), IsOk());
  EXPECT_THAT(Prepare(memo, exact).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is for target cpu")));
}

TEST(RequestMemoTest, LimitsComeFirst) {
  ir::Limits limits;
  limits.max_bytes = 10;
  RequestMemo memo(limits);
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(Prepare(memo, Request()).status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(memo.GetStats().entries, 0u);
}

TEST(RequestMemoTest, BudgetDropsWhatWasUsedLongestAgo) {
  RequestMemo one;
  ASSERT_THAT(Prepare(one, Request()), IsOk());
  const size_t bytes = one.GetStats().bytes;
  EXPECT_GT(bytes, Request().graph().size());

  const size_t budget = 3 * bytes + bytes / 2;  // entries differ by some bytes at most
  RequestMemo memo({}, budget);
  ASSERT_OK_AND_ASSIGN(const Prepared first, Prepare(memo, Request(1)));
  for (int64_t rows = 2; rows <= 100; ++rows) {
    ASSERT_THAT(Prepare(memo, Request(rows)), IsOk());
    EXPECT_LE(memo.GetStats().bytes, budget);
    ASSERT_OK_AND_ASSIGN(const Prepared again, Prepare(memo, Request(1)));
    EXPECT_EQ(again, first);  // used all the time
  }
  EXPECT_EQ(memo.GetStats().entries, 3u);
  EXPECT_EQ(memo.GetStats().hits, 99u);
  ASSERT_OK_AND_ASSIGN(const Prepared forgotten, Prepare(memo, Request(2)));
  EXPECT_EQ(memo.GetStats().hits, 99u);
}

TEST(RequestMemoTest, LargerThanTheBudgetIsNotKept) {
  RequestMemo memo({}, 100);
  ASSERT_THAT(Prepare(memo, Request()), IsOk());
  ASSERT_THAT(Prepare(memo, Request()), IsOk());
  EXPECT_EQ(memo.GetStats().entries, 0u);
  EXPECT_EQ(memo.GetStats().bytes, 0u);
  EXPECT_EQ(memo.GetStats().hits, 0u);
}

TEST(RequestMemoTest, ThreadsShareIt) {
  RequestMemo memo({}, 16 << 10);  // so that some are dropped meanwhile
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memo] {
      for (int64_t i = 0; i < 200; ++i) {
        const int64_t rows = 1 + i % 20;
        absl::StatusOr<Prepared> prepared = Prepare(memo, Request(rows));
        ASSERT_THAT(prepared, IsOk());
        ASSERT_EQ((*prepared)->arguments[0].shape[0], rows);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(memo.GetStats().bytes, size_t{16} << 10);
}

}  // namespace
}  // namespace fusiond::server
