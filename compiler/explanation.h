// Explanation: what a plan decided, and why, for people (proto/fusiond/v1/explanation.proto).
//
// Thread-safety: pure function. Cost: the plan's text over again, so only for whoever asks.
#ifndef FUSIOND_COMPILER_EXPLANATION_H_
#define FUSIOND_COMPILER_EXPLANATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/compiler.h"
#include "compiler/ir/graph.h"
#include "compiler/schedule/segment.h"
#include "compiler/skeleton.h"
#include "proto/fusiond/v1/explanation.pb.h"

namespace fusiond::compiler {

// `graph`: from Prepare(), which the segments cut; `regions`: one a segment, then one a copy;
// `plan`: complete but for its explanation. No segments for arch cpu. INVALID_ARGUMENT: a launch
// formula cannot be evaluated, which those of a plan can.
absl::StatusOr<v1::Explanation> Explain(const PlanRequest& request, const ir::Graph& graph,
                                        absl::Span<const schedule::Segment> segments,
                                        absl::Span<const ScheduledRegion> regions,
                                        absl::Span<const std::string> cuts, const PlanResult& plan);

}  // namespace fusiond::compiler

#endif  // FUSIOND_COMPILER_EXPLANATION_H_
