// Workspace: offsets of buffers that live for part of a launch, so that those which never live at
// the same time share bytes.
//
// Buffers of known size are packed first-fit, largest first; those whose size depends on the device
// lie behind them, each formula's in as many slots as are needed at once. A kernel that may start
// before the one ahead of it has ended touches memory only after it has waited for it, so lifetimes
// count in whole steps.
//
// Thread-safety: pure function. Cost: O(buffers²) in the worst case, buffers being few.
#ifndef FUSIOND_COMPILER_SCHEDULE_WORKSPACE_H_
#define FUSIOND_COMPILER_SCHEDULE_WORKSPACE_H_

#include <vector>

#include "absl/types/span.h"
#include "runtime/executable/formula.h"

namespace fusiond::schedule {

inline constexpr int64_t kWorkspaceAlignment = 256;

struct WorkspaceBuffer {
  executable::Formula bytes;
  size_t first_step = 0;  // steps that need it, both included
  size_t last_step = 0;
};

struct WorkspacePlan {
  std::vector<executable::Formula> offsets;  // by buffer, multiples of kWorkspaceAlignment
  executable::Formula bytes;
};

WorkspacePlan PlanWorkspace(absl::Span<const WorkspaceBuffer> buffers);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_WORKSPACE_H_
