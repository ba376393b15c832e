// Rows cut over the CTAs of a thread-block cluster: what schedulers that do so agree on.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_COMPILER_SCHEDULE_CLUSTER_H_
#define FUSIOND_COMPILER_SCHEDULE_CLUSTER_H_

#include <cstdint>

#include "compiler/schedule/region.h"

namespace fusiond::schedule {

// Larger clusters need not be schedulable. Source: CUDA C++ Programming Guide, "Thread Block
// Clusters".
inline constexpr int kMaxCluster = 8;

// Columns of every CTA but the last, which has what is left, at least one: a multiple of every
// vector and of what bulk copies need.
int64_t ColumnsOfCta(int64_t columns, int cluster);

// Whether CTAs can send each other their parts of every row reduction: values of 4 or 8 bytes.
bool ClusterCombines(const Region& region);

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_CLUSTER_H_
