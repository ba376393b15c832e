// Storage: which buffer holds each value that crosses segments or leaves the graph.
//
// A value that is an output lives in the output's buffer, and others read it there. An output that
// aliases an input is written straight into the input's buffer when nothing can see the difference:
// no later segment reads that input, and its own segment reads it, if at all, at the very elements
// that it then writes. Otherwise it goes to workspace and is copied when all segments are done. So
// are outputs of one value past the first 32, many by one kernel.
//
// Thread-safety: pure function. Cost: linear in nodes.
#ifndef FUSIOND_COMPILER_SCHEDULE_STORAGE_H_
#define FUSIOND_COMPILER_SCHEDULE_STORAGE_H_

#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/graph.h"
#include "compiler/schedule/region.h"
#include "compiler/schedule/segment.h"

namespace fusiond::schedule {

struct BufferLayout {
  ir::Dims strides;        // elements
  int64_t alignment = 16;  // bytes
};

struct WorkspaceTensor {
  int64_t bytes = 0;
  size_t first_segment = 0;  // that writes it
  size_t last_segment = 0;   // that reads it; segments.size() + i for copy i
};

// One kernel.
struct Copy {
  uint32_t from = 0;  // tensors of Memory
  std::vector<uint32_t> to;
};

struct Storage {
  Memory memory;
  std::vector<WorkspaceTensor> workspace;
  std::vector<Copy> copies;  // after all segments, in order
};

// `inputs`, `outputs`: layouts by index. `exclusive`: guards will exclude that an output shares
// bytes with an input that it does not alias.
Storage PlanStorage(const ir::Graph& graph, absl::Span<const Segment> segments,
                    absl::Span<const BufferLayout> inputs, absl::Span<const BufferLayout> outputs,
                    bool exclusive);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_STORAGE_H_
