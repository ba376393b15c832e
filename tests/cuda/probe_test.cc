#include "runtime/cuda/probe.h"

#include "tests/cuda/fake_driver.h"
#include "tests/support/status_matchers.h"

namespace fusiond::cuda {
namespace {

class ProbeTest : public ::testing::Test {
 protected:
  ProbeTest() {
    Driver& table = fake_.table();
    table.DeviceGetCount = [](int* count) { return *count = 2, kSuccess; };
    table.DeviceGet = [](CUdevice* device, int ordinal) { return *device = ordinal, kSuccess; };
    table.DeviceGetUuid = [](CUuuid* uuid, CUdevice device) {
      for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(16 * device + i);
      return kSuccess;
    };
    table.DeviceGetName = [](char* name, int, CUdevice device) {
      std::strcpy(name, device == 0 ? "NVIDIA H200" : "Tesla V100");
      return kSuccess;
    };
    table.DeviceTotalMem = [](size_t* bytes, CUdevice) {
      return *bytes = size_t{141} << 30, kSuccess;
    };
    table.DeviceGetAttribute = [](int* value, int attribute, CUdevice device) {
      *value = attribute == kAttributeCcMajor   ? (device == 0 ? 9 : 7)
               : attribute == kAttributeCcMinor ? 0
               : attribute == kAttributeSmCount ? 66
                                                : 1;
      return kSuccess;
    };
  }
  FakeDriver fake_;
};

TEST_F(ProbeTest, CardsGetProfileUuidAndTheirOwnSmCount) {
  ASSERT_OK_AND_ASSIGN(std::vector<ProbedDevice> devices, Probe(fake_.driver()));
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_EQ(devices[0].info.profile, "h200");
  EXPECT_EQ(devices[0].info.sm_count, 66);
  EXPECT_EQ(devices[0].problem, "");
}

TEST_F(ProbeTest, UncoveredCardIsListedWithItsProblem) {
  ASSERT_OK_AND_ASSIGN(std::vector<ProbedDevice> devices, Probe(fake_.driver()));
  EXPECT_THAT(devices[1].problem, ::testing::HasSubstr("7.0"));
}

}  // namespace
}  // namespace fusiond::cuda
