#include "compiler/schedule/cluster.h"

#include <algorithm>

namespace fusiond::schedule {
namespace {

constexpr int64_t kUnit = 64;

}  // namespace

int64_t ColumnsOfCta(int64_t columns, int cluster) {
  if (cluster <= 1) return columns;
  return ((columns + cluster - 1) / cluster + kUnit - 1) / kUnit * kUnit;
}

bool ClusterCombines(const Region& region) {
  return std::all_of(region.instrs.begin(), region.instrs.end(), [](const Instr& instr) {
    return instr.kind != Instr::Kind::kReduce || instr.late || ir::ByteSize(instr.dtype) >= 4;
  });
}

}  // namespace fusiond::schedule
