// From a LAUNCH entry to the arguments of an executable.
//
// A LAUNCH brings, in this order: one (buffer, offset) a tensor input, then one a fresh output (an
// output that aliases an input has none of its own); one extent a symbolic dim of the inputs, in
// order of inputs and dims, then the 8 bytes of each scalar input (i64, f64 bits, or 0/1). Strides
// are those the executable was compiled for, row-major where it does not say. Every access is
// checked against its buffer here, since only the executable knows how far it reaches.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_RUNTIME_WORKER_LAUNCH_BINDING_H_
#define FUSIOND_RUNTIME_WORKER_LAUNCH_BINDING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/channel/completion.h"
#include "runtime/executable/binding.h"
#include "runtime/executable/executable.h"

namespace fusiond::worker {

struct LaunchShape {
  uint32_t tensors = 0;
  uint32_t extents = 0;
};
// What a LAUNCH of this executable must bring.
LaunchShape ShapeOfLaunch(const executable::Executable& executable);

struct TensorMemory {
  uint64_t address = 0;          // of the buffer's first byte, in the worker
  uint64_t bytes = 0;            // of the buffer
  uint64_t offset = 0;           // of element 0 in the buffer, ≤ bytes
  const void* buffer = nullptr;  // identity, to tell overlaps
};

struct BoundLaunch {
  std::vector<executable::TensorArg> inputs;
  std::vector<executable::TensorArg> outputs;  // aliased ones included
};

// OK outcome and `bound` filled, or the outcome that names tensor or extent, limit and actual
// value. Requires: counts as ShapeOfLaunch says.
channel::Outcome BindLaunch(const executable::Executable& executable, int sm_count,
                            absl::Span<const TensorMemory> tensors,
                            absl::Span<const int64_t> extents, BoundLaunch& bound);

// The outcome for a status of a device call or of the evaluator.
channel::Outcome OutcomeFromStatus(const absl::Status& status);

}  // namespace fusiond::worker

#endif  // FUSIOND_RUNTIME_WORKER_LAUNCH_BINDING_H_
