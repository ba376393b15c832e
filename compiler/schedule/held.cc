#include "compiler/schedule/held.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/schedule/finalise.h"
#include "compiler/schedule/row_column.h"
#include "compiler/schedule/row_persistent.h"
#include "compiler/schedule/stages.h"
#include "compiler/schedule/transpose.h"

namespace fusiond::schedule {
namespace {

class Holder {
 public:
  Holder(const Region& region, const KernelSchedule& schedule)
      : region_(region), s_(schedule), columns_(int64_t{schedule.unroll} * schedule.vector) {}

  std::vector<HeldBuffer> Run() && {
    switch (s_.scheduler) {
      case SchedulerId::kPointwise:
      case SchedulerId::kRowStream:
        break;
      case SchedulerId::kTranspose:
        Transpose();
        break;
      case SchedulerId::kRowPersistent:
        RowPersistent();
        break;
      case SchedulerId::kRowColumn:
        RowColumn();
        break;
      case SchedulerId::kColumn:
        for (uint32_t i : LateReductions(region_)) ColumnSum(i, s_.vector);
        break;
    }
    return std::move(buffers_);
  }

 private:
  const Tensor& TensorOf(uint32_t load) const {
    return region_.tensors[region_.instrs[load].access.tensor];
  }

  void Add(std::string what, bool shared, int64_t bytes) {
    buffers_.push_back({std::move(what), shared, bytes});
  }

  // Loaded elements stay as they are in memory, unless they are kept converted.
  void Load(uint32_t load) {
    const Tensor& tensor = TensorOf(load);
    const ir::DType dtype = s_.unpacked ? region_.instrs[load].dtype : tensor.dtype;
    Add(NameOf(tensor.place), false, columns_ * ir::ByteSize(dtype));
  }

  std::string Value(uint32_t i) const {
    const ir::ValueId origin = region_.instrs[i].origin;
    return origin == Instr::kNoOrigin ? absl::StrCat("instr ", i) : absl::StrCat("%", origin);
  }

  void Computed(uint32_t i) {
    Add(Value(i), false, columns_ * std::max<int64_t>(4, ir::ByteSize(region_.instrs[i].dtype)));
  }

  void ColumnSum(uint32_t i, int64_t columns) {
    Add(absl::StrCat("column sum ", Value(i)), false,
        columns * std::max<int64_t>(4, ir::ByteSize(region_.instrs[i].dtype)));
  }

  void Transpose() {
    const TransposeTile tile = LayOutTranspose(region_, s_);
    const auto add = [&](const TransposeTile::Part& part, const Tensor& tensor) {
      Add(absl::StrCat("tile of ", NameOf(tensor.place)), true,
          tile.a_extent * part.pitch * ir::ByteSize(tensor.dtype));
    };
    for (const TransposeTile::Part& part : tile.loads) add(part, TensorOf(part.index));
    for (const TransposeTile::Part& part : tile.stores)
      add(part, region_.tensors[region_.stores[part.index].access.tensor]);
  }

  void RowPersistent() {
    for (uint32_t i = 0; i < region_.instrs.size(); ++i)
      if (region_.instrs[i].kind == Instr::Kind::kLoad && IsElement(region_, i)) Load(i);
    for (uint32_t i : PlanStages(region_, kRowPersistentMaxAgain).held) Computed(i);
  }

  void RowColumn() {
    const Stages stages =
        PlanStages(region_, s_.cluster > 1 ? kRowColumnMaxAgainInCluster : kRowColumnMaxAgain);
    const RowColumnLayout layout = LayOutRowColumn(region_, stages, s_);
    const auto tensor_of = [&](std::string* out, const RowColumnLayout::Part& part) {
      absl::StrAppend(out, NameOf(TensorOf(part.instr).place));
    };
    if (!layout.ring.empty()) {
      Add(absl::StrCat("ring of ", s_.stages, " stages for ",
                       absl::StrJoin(layout.ring, ", ", tensor_of)),
          true, int64_t{s_.rows_per_cta} * s_.stages * layout.stage_bytes);
    }
    for (const RowColumnLayout::Part& part : layout.shared_columns) {
      Add(NameOf(TensorOf(part.instr).place), true,
          layout.columns_of_cta * ir::ByteSize(TensorOf(part.instr).dtype));
    }
    for (const RowColumnLayout::Part& part : layout.ring) Load(part.instr);
    for (uint32_t i : layout.direct) Load(i);
    for (uint32_t i : layout.columns) Load(i);
    for (uint32_t i : stages.held) Computed(i);
    for (uint32_t i : LateReductions(region_)) ColumnSum(i, columns_);
  }

  const Region& region_;
  const KernelSchedule& s_;
  const int64_t columns_;  // of a thread
  std::vector<HeldBuffer> buffers_;
};

}  // namespace

std::vector<HeldBuffer> HeldBuffers(const Region& region, const KernelSchedule& schedule) {
  return Holder(region, schedule).Run();
}

std::string NameOf(const Place& place) {
  switch (place.kind) {
    case Place::Kind::kInput:
      return absl::StrCat("input ", place.index);
    case Place::Kind::kOutput:
      return absl::StrCat("output ", place.index);
    case Place::Kind::kWorkspace:
      return absl::StrCat("workspace ", place.index);
  }
  return "";
}

}  // namespace fusiond::schedule
