// LocalContext: a GPU's primary context for a process that has no CUDA code of its own: a stream,
// memory, and a timed launch. Frameworks bring their own of all these and need only
// LocalExecutable.
//
// Thread-safety: single-thread (the context is current on the thread that opened it). Ownership:
// frees what was allocated, then releases the context; destroy executables loaded in it before.
// Errors: as cuda::Driver::ToStatus.
#ifndef FUSIOND_CLIENT_CC_LOCAL_CONTEXT_H_
#define FUSIOND_CLIENT_CC_LOCAL_CONTEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cc/local_executable.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/probe.h"
#include "runtime/executable/binding.h"

namespace fusiond::client {

class LocalContext {
 public:
  // The first GPU of `arch` that this process sees. FAILED_PRECONDITION when there is none.
  static absl::StatusOr<std::unique_ptr<LocalContext>> Open(const cuda::Driver& driver,
                                                            const std::string& arch);
  ~LocalContext();
  LocalContext(const LocalContext&) = delete;
  LocalContext& operator=(const LocalContext&) = delete;

  const cuda::ProbedDevice& device() const { return device_; }

  absl::StatusOr<cuda::CUdeviceptr> Allocate(uint64_t bytes);
  // Allocates and copies in.
  absl::StatusOr<cuda::CUdeviceptr> Upload(absl::string_view data);
  // Waits for what is on the stream and copies out.
  absl::Status Download(cuda::CUdeviceptr from, uint64_t bytes, char* to);

  // Launches, waits, and says how long the GPU took.
  absl::StatusOr<absl::Duration> Launch(const LocalExecutable& loaded,
                                        absl::Span<const executable::TensorArg> inputs,
                                        absl::Span<const executable::TensorArg> outputs,
                                        cuda::CUdeviceptr workspace);

 private:
  LocalContext(const cuda::Driver& driver, cuda::ProbedDevice device)
      : driver_(driver), device_(std::move(device)) {}
  absl::Status Retain();

  const cuda::Driver& driver_;
  const cuda::ProbedDevice device_;
  bool retained_ = false;
  cuda::CUstream stream_ = nullptr;
  cuda::CUevent events_[2] = {};
  std::vector<cuda::CUdeviceptr> allocated_;
};

}  // namespace fusiond::client

#endif  // FUSIOND_CLIENT_CC_LOCAL_CONTEXT_H_
