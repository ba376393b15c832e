// A driver table whose functions record what they are asked and succeed, or fail as told.
#ifndef FUSIOND_TESTS_CUDA_FAKE_DRIVER_H_
#define FUSIOND_TESTS_CUDA_FAKE_DRIVER_H_

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/driver.h"

namespace fusiond::cuda {

struct RecordedLaunch {
  CUlaunchConfig config;
  std::vector<uint64_t> values;  // 8 bytes a parameter
  std::vector<int> attributes;
};

// One at a time: the table's functions are plain and find it through Current().
class FakeDriver {
 public:
  FakeDriver() {
    Current() = this;
    driver_.GetErrorName = [](CUresult, const char** name) {
      return *name = "CUDA_ERROR_FAKE", kSuccess;
    };
    driver_.GetErrorString = [](CUresult, const char** text) {
      return *text = "told to fail", kSuccess;
    };
    driver_.ModuleLoadData = [](CUmodule* module, const void*) {
      *module = reinterpret_cast<CUmodule>(++Current()->loaded);
      return Current()->load_result;
    };
    driver_.ModuleUnload = [](CUmodule) { return ++Current()->unloaded, kSuccess; };
    driver_.ModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
      *function = reinterpret_cast<CUfunction>(1);
      return kSuccess;
    };
    driver_.FuncGetAttribute = [](int* value, int, CUfunction) { return *value = 0, kSuccess; };
    driver_.FuncSetAttribute = [](CUfunction, int attribute, int value) {
      Current()->function_attributes.push_back({attribute, value});
      return kSuccess;
    };
    driver_.LaunchKernel = [](CUfunction, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned smem, CUstream stream,
                              void** parameters, void**) {
      return Current()->Record({gx, gy, gz, bx, by, bz, smem, stream, nullptr, 0}, parameters);
    };
    driver_.LaunchKernelEx = [](const CUlaunchConfig* config, CUfunction, void** parameters,
                                void**) { return Current()->Record(*config, parameters); };
    driver_.MemsetD8Async = [](CUdeviceptr to, unsigned char value, size_t bytes, CUstream) {
      Current()->memsets.push_back({to, value, bytes});
      return kSuccess;
    };
  }

  const Driver& driver() const { return driver_; }
  Driver& table() { return driver_; }

  size_t parameter_count = 0;  // of the kernel that will be launched
  CUresult launch_result = kSuccess;
  CUresult load_result = kSuccess;
  intptr_t loaded = 0;
  int unloaded = 0;
  std::vector<RecordedLaunch> launches;
  std::vector<std::pair<int, int>> function_attributes;
  struct Memset {
    CUdeviceptr to;
    int value;
    size_t bytes;
  };
  std::vector<Memset> memsets;

 private:
  static FakeDriver*& Current() {
    static FakeDriver* current = nullptr;
    return current;
  }
  CUresult Record(const CUlaunchConfig& config, void** parameters) {
    RecordedLaunch launch{config, {}, {}};
    for (unsigned i = 0; i < config.attribute_count; ++i)
      launch.attributes.push_back(config.attributes[i].id);
    for (size_t i = 0; i < parameter_count; ++i) {
      uint64_t value;
      std::memcpy(&value, parameters[i], sizeof(value));
      launch.values.push_back(value);
    }
    launches.push_back(std::move(launch));
    return launch_result;
  }

  Driver driver_;
};

}  // namespace fusiond::cuda

#endif  // FUSIOND_TESTS_CUDA_FAKE_DRIVER_H_
