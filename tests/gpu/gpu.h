// Gpu: the first usable GPU of the host, a context on it, a stream, and memory, for tests and
// benchmarks.
//
// Thread-safety: single-thread; the context is current on the thread that opened it. Ownership:
// memory must go before the Gpu.
#ifndef FUSIOND_TESTS_GPU_GPU_H_
#define FUSIOND_TESTS_GPU_GPU_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/probe.h"

namespace fusiond::testing {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const cuda::Driver* driver, cuda::CUdeviceptr address)
      : driver_(driver), address_(address) {}
  DeviceMemory(DeviceMemory&& other) noexcept
      : driver_(other.driver_), address_(std::exchange(other.address_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(address_, other.address_);
    return *this;
  }
  ~DeviceMemory() {
    if (address_ != 0) driver_->MemFree(address_);
  }

  cuda::CUdeviceptr address() const { return address_; }  // 256-byte aligned

 private:
  const cuda::Driver* driver_ = nullptr;
  cuda::CUdeviceptr address_ = 0;
};

class Gpu {
 public:
  // NOT_FOUND or FAILED_PRECONDITION without driver or usable GPU: a reason to skip.
  static absl::StatusOr<std::unique_ptr<Gpu>> Open();
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const cuda::Driver& driver() const { return *driver_; }
  const cuda::ProbedDevice& device() const { return device_; }
  cuda::CUstream stream() const { return stream_; }

  absl::StatusOr<DeviceMemory> Allocate(uint64_t bytes);
  // Each is done when it returns.
  absl::Status Write(cuda::CUdeviceptr to, absl::string_view bytes);
  absl::Status Read(cuda::CUdeviceptr from, char* to, uint64_t bytes);
  absl::Status Fill(cuda::CUdeviceptr to, uint8_t value, uint64_t bytes);
  absl::Status Synchronize();
  absl::Status ToStatus(cuda::CUresult result, absl::string_view what) const {
    return driver_->ToStatus(result, what);
  }

 private:
  Gpu() = default;

  const cuda::Driver* driver_ = nullptr;
  cuda::ProbedDevice device_;
  bool has_context_ = false;
  cuda::CUstream stream_ = nullptr;
};

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_GPU_GPU_H_
