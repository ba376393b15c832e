#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <limits>

#include "client/cli/json.h"
#include "proto/fusiond/v1/service.pb.h"

namespace fusiond::cli {
namespace {

TEST(CliJsonTest, StringsAreEscaped) {
  EXPECT_EQ(JsonString("a \"b\" \\ \n\t\x01 é"), "\"a \\\"b\\\" \\\\ \\n\\t\\u0001 é\"");
  EXPECT_EQ(JsonString("\xff"), "\"?\"");
}

TEST(CliJsonTest, NumbersThatJsonLacksAreNull) {
  EXPECT_EQ(JsonNumber(0.5), "0.5");
  EXPECT_EQ(JsonNumber(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(JsonNumber(std::numeric_limits<double>::quiet_NaN()), "null");
}

TEST(CliJsonTest, AnswerIsMadeForScripts) {
  v1::CacheListResponse response;
  v1::CacheListResponse::Entry* entry = response.add_entries();
  entry->set_key("\x01\xab");
  entry->set_arch("sm_90a");
  entry->set_bytes(uint64_t{1} << 40);
  (*entry->mutable_options())["math"] = "strict";
  (*entry->mutable_options())["a"] = "b";
  EXPECT_EQ(ToJson(response), R"({
  "entries": [
    {
      "key": "01ab",
      "graph_hash": "",
      "arch": "sm_90a",
      "profile": "",
      "signature": "",
      "options": {
        "a": "b",
        "math": "strict"
      },
      "bytes": 1099511627776,
      "executables": 0,
      "revision": 0,
      "requests": 0
    }
  ],
  "next_page_token": ""
})");
}

TEST(CliJsonTest, OnlyTheFieldOfAOneofThatIsSetStands) {
  v1::WarmEvent event;
  event.mutable_summary()->set_draining(true);
  EXPECT_EQ(ToJson(event), R"({
  "summary": {
    "total": 0,
    "compiled": 0,
    "cached": 0,
    "failed": 0,
    "draining": true
  }
})");
}

TEST(CliJsonTest, ArtefactsAreText) {
  v1::GetArtifactsResponse response;
  response.add_artifacts()->set_contents("__global__ \"x\"\n");
  EXPECT_THAT(ToJson(response), ::testing::HasSubstr(R"("contents": "__global__ \"x\"\n")"));
}

// Protobuf's own reader takes it: the form is JSON.
TEST(CliJsonTest, ProtobufReadsItBack) {
  v1::StatusResponse response;
  response.set_state(v1::StatusResponse::SERVING);
  response.set_uptime_ns(123456789012345);
  response.add_degraded("no \"NVRTC\"\n");
  response.mutable_pool()->set_crashes(3);
  response.add_workers()->set_pid(-1);
  v1::StatusResponse back;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(ToJson(response), &back).ok());
  EXPECT_EQ(back.SerializeAsString(), response.SerializeAsString());
}

}  // namespace
}  // namespace fusiond::cli
