#include "compiler/passes/implicit_broadcasts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/passes/axes.h"
#include "compiler/passes/builder.h"
#include "compiler/passes/rebuild.h"
#include "runtime/base/status_macros.h"

namespace fusiond::passes {
namespace {

using ir::AttributeKey;
using ir::NodeId;
using ir::Op;
using ir::OpClass;
using ir::ValueId;
using AxisList = absl::InlinedVector<int, 4>;

std::vector<int64_t> AsAttribute(const ir::Dims& dims) { return {dims.begin(), dims.end()}; }

AxisList RightAligned(int rank) {
  AxisList axes;
  for (int d = rank; d-- > 0;) axes.push_back(d);
  return axes;
}

// A value of the new graph and where its dims stand, counted from the right; kNone for those of
// extent 1.
struct Placed {
  ValueId value;
  AxisList axes;
};
constexpr int kNone = Axes::kNone;
constexpr int kMaxRuns = 4;

class Sinker {
 public:
  Sinker(const ir::Graph& from, const PassContext& context)
      : from_(from),
        context_(context),
        axes_(from),
        builder_(from, Sharing::kNone),
        renamed_(from.value_count(), kUnmapped) {}

  absl::StatusOr<ir::Graph> Run() {
    for (size_t i = 0; i < from_.inputs().size(); ++i) {
      const ValueId input = from_.inputs()[i];
      const AxisList axes = axes_.Of(input);
      FUSIOND_ASSIGN_OR_RETURN(renamed_[input], Place({to().inputs()[i], axes}, std::nullopt));
    }
    for (const NodeId id : from_.TopologicalOrder()) {
      if (from_.node(id).op == Op::kInput) continue;
      context_.Visit();
      FUSIOND_RETURN_IF_ERROR(Visit(id));
    }
    std::vector<ValueId> results = renamed_;
    for (const ir::Output& output : from_.outputs()) {
      FUSIOND_ASSIGN_OR_RETURN(results[output.value], AsDeclared(output.value));
    }
    return std::move(builder_).Finish(from_, results);
  }

 private:
  const ir::Graph& to() const { return builder_.graph(); }

  absl::Status Visit(NodeId id) {
    const ir::Node& node = from_.node(id);
    switch (ir::Info(node.op).op_class) {
      case OpClass::kPointwise:
        return Pointwise(node);
      case OpClass::kReduction:
        return Reduction(id);
      case OpClass::kShape:
        return View(id);
      case OpClass::kMap:
        return Map(node);
      case OpClass::kFactory: {
        if (node.op == Op::kIota) {
          FUSIOND_RETURN_IF_ERROR(Copy(node, Renamed(node)));
          return PlaceResult(node, renamed_[node.results[0]], axes_.Of(node.results[0]));
        }
        // One element stands for all.
        ir::Attributes attributes = node.attributes;
        attributes.Set(AttributeKey::kShape, std::vector<int64_t>());
        const ValueId value = renamed_[node.operands[0]];
        FUSIOND_ASSIGN_OR_RETURN(renamed_[node.results[0]],
                                 builder_.Add(node.op, {value}, attributes));
        return absl::OkStatus();
      }
      case OpClass::kLeaf:
      case OpClass::kMetadata:
        return Copy(node, {});
    }
    return absl::OkStatus();
  }

  Operands Renamed(const ir::Node& node) const {
    Operands operands;
    for (const ValueId operand : node.operands) operands.push_back(renamed_[operand]);
    return operands;
  }

  absl::Status Copy(const ir::Node& node, absl::Span<const ValueId> operands) {
    FUSIOND_ASSIGN_OR_RETURN(const NodeId made,
                             builder_.AddNode(node.op, operands, node.attributes));
    for (size_t i = 0; i < node.results.size(); ++i) {
      renamed_[node.results[i]] = to().node(made).results[i];
    }
    return absl::OkStatus();
  }

  absl::Status Pointwise(const ir::Node& node) {
    if (node.op == Op::kSet || node.op == Op::kReal) {
      renamed_[node.results[0]] = renamed_[node.operands[0]];
      return absl::OkStatus();
    }
    Operands operands;
    // The condition of a where says nothing about its dtype.
    const size_t first_typed = ir::Info(node.op).promotion == ir::Promotion::kSelect ? 1 : 0;
    bool other_tensor = false;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      operands.push_back(renamed_[node.operands[i]]);
      other_tensor |= i >= first_typed && !to().type(operands[i]).scalar && !IsFilled(operands[i]);
    }
    // A filled tensor beside another one is its scalar.
    for (ValueId& operand : operands) {
      if (!other_tensor || !IsFilled(operand)) continue;
      const ValueId scalar = to().producer(operand).operands[0];
      if (to().type(scalar).dtype == to().type(operand).dtype) operand = scalar;
    }
    FUSIOND_ASSIGN_OR_RETURN(renamed_[node.results[0]],
                             builder_.Add(node.op, operands, node.attributes));
    return absl::OkStatus();
  }

  bool IsFilled(ValueId value) const { return to().producer(value).op == Op::kFull; }

  absl::Status View(NodeId id) {
    const ir::Node& node = from_.node(id);
    ValueId& result = renamed_[node.results[0]];
    result = renamed_[node.operands[0]];
    if (!axes_.IsBarrier(id)) return absl::OkStatus();
    FUSIOND_ASSIGN_OR_RETURN(result, Carry(node, result, axes_.Of(node.operands[0])));
    return absl::OkStatus();
  }

  // Moves a value whose dims stand on the operand's axes to the axes of the node's result.
  absl::StatusOr<ValueId> Carry(const ir::Node& node, ValueId value, const AxisList& operand_axes) {
    const AxisList result_axes = axes_.Of(node.results[0]);
    const std::vector<int> carried = CarriedDims(node, static_cast<int>(operand_axes.size()),
                                                 static_cast<int>(result_axes.size()));
    Placed placed{value, RightAligned(to().type(value).rank())};
    for (int& axis : placed.axes) {
      const auto at = std::find(operand_axes.begin(), operand_axes.end(), axis);
      const int dim = at == operand_axes.end() ? kNone : carried[at - operand_axes.begin()];
      axis = dim == kNone ? kNone : result_axes[dim];
    }
    return Place(placed, std::nullopt);
  }

  // A map keeps its operands' declared rank; what is the same along a dim stays so where it may.
  absl::Status Map(const ir::Node& node) {
    switch (node.op) {
      case Op::kPermute:
        return Permute(node);
      case Op::kReshape:
        return Reshape(node);
      case Op::kSlice:
        return Slice(node);
      default:
        return OtherMap(node);
    }
  }

  // `value`, whose dims stand on `axes`, is the node's result, but for a cast that was taken off.
  absl::Status PlaceResult(const ir::Node& node, ValueId value, const AxisList& axes) {
    const ValueId result = node.results[0];
    const ir::DType dtype = from_.type(result).dtype;
    FUSIOND_ASSIGN_OR_RETURN(value, Place({value, axes}, std::nullopt));
    if (to().type(value).dtype != dtype) {
      FUSIOND_ASSIGN_OR_RETURN(value,
                               builder_.Add(Op::kCast, {value}, {{AttributeKey::kDtype, dtype}}));
    }
    renamed_[result] = value;
    return absl::OkStatus();
  }

  // What a widening cast was made of: a map moves that, and is cast itself.
  ValueId WithoutCast(ValueId value) const {
    const ir::Node& node = to().producer(value);
    if (node.op != Op::kCast) return value;
    const ValueId narrow = node.operands[0];
    const bool widens =
        ir::ByteSize(to().type(narrow).dtype) <= ir::ByteSize(to().type(value).dtype);
    return widens ? narrow : value;
  }

  // The axes of the operand's `value` when a reshape only inserts and removes extents of 1.
  AxisList InOrder(ValueId value, const ir::Node& node) const {
    const ir::Dims& declared = from_.type(node.operands[0]).shape;
    AxisList counting;
    for (const int axis : axes_.Of(node.results[0]))
      if (axis != kNone) counting.push_back(axis);
    AxisList axes(to().type(value).shape.size(), kNone);
    size_t next = 0;
    for (size_t d = 0; d < axes.size(); ++d)
      if (declared[d] != 1) axes[d] = counting[next++];
    return axes;
  }

  // Where only extents of 1 move, nothing is permuted.
  absl::Status Permute(const ir::Node& node) {
    FUSIOND_ASSIGN_OR_RETURN(ValueId value, Ranked(node.operands[0]));
    value = WithoutCast(value);
    std::vector<int64_t> dims = node.attributes.Ints(AttributeKey::kDims);
    const ir::Node& producer = to().producer(value);
    if (producer.op == Op::kPermute) {
      const std::vector<int64_t> first = producer.attributes.Ints(AttributeKey::kDims);
      for (int64_t& d : dims) d = first[d];
      value = producer.operands[0];
    }
    const AxisList result_axes = axes_.Of(node.results[0]);
    const ir::Dims shape = to().type(value).shape;
    std::vector<int64_t> moved;  // dims that count, in the result's order
    AxisList axes(shape.size(), kNone);
    for (size_t i = 0; i < dims.size(); ++i) {
      axes[dims[i]] = result_axes[i];
      if (shape[dims[i]] != 1) moved.push_back(dims[i]);
    }
    if (!std::is_sorted(moved.begin(), moved.end())) {
      FUSIOND_ASSIGN_OR_RETURN(value,
                               builder_.Add(Op::kPermute, {value}, {{AttributeKey::kDims, dims}}));
      axes = result_axes;
    }
    return PlaceResult(node, value, axes);
  }

  absl::Status Reshape(const ir::Node& node) {
    const ValueId operand = node.operands[0];
    const ir::Dims& from = from_.type(operand).shape;
    const ir::Dims& result = from_.type(node.results[0]).shape;
    const auto counting = [](ir::Dims dims) {
      dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
      return dims;
    };
    if (ir::ElementCount(to().type(renamed_[operand])) == 1) {
      renamed_[node.results[0]] = renamed_[operand];
      return absl::OkStatus();
    }
    FUSIOND_ASSIGN_OR_RETURN(ValueId value, Ranked(operand));
    if (counting(from) == counting(result)) return PlaceResult(node, value, InOrder(value, node));
    value = WithoutCast(value);
    FUSIOND_ASSIGN_OR_RETURN(value, Expand(value, from));
    const ir::Node& producer = to().producer(value);
    if (producer.op == Op::kReshape) value = producer.operands[0];
    if (to().type(value).shape != result) {
      FUSIOND_ASSIGN_OR_RETURN(value, builder_.Add(Op::kReshape, {value},
                                                   {{AttributeKey::kShape, AsAttribute(result)}}));
    }
    return PlaceResult(node, value, axes_.Of(node.results[0]));
  }

  absl::Status Slice(const ir::Node& node) {
    FUSIOND_ASSIGN_OR_RETURN(ValueId value, Ranked(node.operands[0]));
    value = WithoutCast(value);
    std::vector<int64_t> starts = node.attributes.Ints(AttributeKey::kStartIndices);
    std::vector<int64_t> ends = node.attributes.Ints(AttributeKey::kEndIndices);
    const ir::Dims& declared = from_.type(node.operands[0]).shape;
    const ir::Dims shape = to().type(value).shape;
    bool cuts = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != declared[d]) starts[d] = 0, ends[d] = 1;
      ends[d] = std::min(ends[d], shape[d]);
      starts[d] = std::min(starts[d], ends[d]);
      cuts |= ends[d] - starts[d] != shape[d];
    }
    const ir::Node& producer = to().producer(value);
    if (cuts && producer.op == Op::kSlice) {
      const std::vector<int64_t> first = producer.attributes.Ints(AttributeKey::kStartIndices);
      for (size_t d = 0; d < shape.size(); ++d) starts[d] += first[d], ends[d] += first[d];
      value = producer.operands[0];
    }
    if (cuts) {
      FUSIOND_ASSIGN_OR_RETURN(value, builder_.Add(Op::kSlice, {value},
                                                   {{AttributeKey::kStartIndices, starts},
                                                    {AttributeKey::kEndIndices, ends}}));
    }
    return PlaceResult(node, value, axes_.Of(node.results[0]));
  }

  absl::Status OtherMap(const ir::Node& node) {
    const std::vector<int64_t>& widths = node.attributes.Ints(AttributeKey::kPadWidths);
    const bool nothing = (node.op == Op::kPad && std::all_of(widths.begin(), widths.end(),
                                                             [](auto w) { return w == 0; })) ||
                         (node.op == Op::kCat && node.operands.size() == 1);
    if (nothing) {
      FUSIOND_ASSIGN_OR_RETURN(const ValueId value, Ranked(node.operands[0]));
      return PlaceResult(node, value, axes_.Of(node.results[0]));
    }
    const bool indexing = node.op != Op::kPad && node.op != Op::kCat;
    Operands operands = Renamed(node);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (to().type(operands[i]).scalar) continue;
      FUSIOND_ASSIGN_OR_RETURN(operands[i], Ranked(node.operands[i]));
      if (indexing && i == 0) operands[i] = WithoutCast(operands[i]);
      FUSIOND_ASSIGN_OR_RETURN(operands[i],
                               Expand(operands[i], from_.type(node.operands[i]).shape));
    }
    FUSIOND_ASSIGN_OR_RETURN(const ValueId value, builder_.Add(node.op, operands, node.attributes));
    return PlaceResult(node, value, axes_.Of(node.results[0]));
  }

  absl::Status Reduction(NodeId id) {
    const ir::Node& node = from_.node(id);
    const ValueId operand = node.operands[0];
    if (node.results.size() > 1 || node.op == Op::kVar) {
      // lower_variance was left out: the node reads the operand as it was declared.
      FUSIOND_ASSIGN_OR_RETURN(const ValueId declared, AsDeclared(operand));
      FUSIOND_RETURN_IF_ERROR(Copy(node, {declared}));
      for (const ValueId result : node.results) {
        const AxisList axes = axes_.Of(result);
        FUSIOND_ASSIGN_OR_RETURN(renamed_[result], Place({renamed_[result], axes}, std::nullopt));
      }
      return absl::OkStatus();
    }
    const AxisList operand_axes = axes_.Of(operand);
    std::vector<int64_t> dims;  // without extents of 1
    for (const int64_t d : node.attributes.Ints(AttributeKey::kDims)) {
      if (operand_axes[d] != kNone) dims.push_back(d);
    }
    if (dims.empty()) return KeepElement(id);
    FUSIOND_ASSIGN_OR_RETURN(const ValueId repeated, Repeat(operand, dims, operand_axes));
    const int rank = to().type(repeated).rank();
    std::vector<int64_t> reduced;
    for (const int64_t d : dims) reduced.push_back(rank - 1 - operand_axes[d]);
    ir::Attributes attributes = node.attributes;
    attributes.Set(AttributeKey::kDims, std::move(reduced));
    attributes.Set(AttributeKey::kKeepdim, true);
    ValueId& result = renamed_[node.results[0]];
    FUSIOND_ASSIGN_OR_RETURN(result, builder_.Add(node.op, {repeated}, attributes));
    if (!axes_.IsBarrier(id)) return absl::OkStatus();
    FUSIOND_ASSIGN_OR_RETURN(result, Carry(node, result, operand_axes));
    return absl::OkStatus();
  }

  // A reduction over extents of 1.
  absl::Status KeepElement(NodeId id) {
    const ir::Node& node = from_.node(id);
    const ir::DType dtype = from_.type(node.results[0]).dtype;
    ValueId& result = renamed_[node.results[0]];
    result = renamed_[node.operands[0]];
    if (to().type(result).dtype != dtype) {
      FUSIOND_ASSIGN_OR_RETURN(result,
                               builder_.Add(Op::kCast, {result}, {{AttributeKey::kDtype, dtype}}));
    }
    if (!axes_.IsBarrier(id)) return absl::OkStatus();
    FUSIOND_ASSIGN_OR_RETURN(result, Carry(node, result, axes_.Of(node.operands[0])));
    return absl::OkStatus();
  }

  // What stands for `operand`, with the extents of the dims named as declared.
  absl::StatusOr<ValueId> Repeat(ValueId operand, const std::vector<int64_t>& dims,
                                 const AxisList& operand_axes) {
    ValueId value = renamed_[operand];
    const ir::Dims& declared = from_.type(operand).shape;
    int rank = to().type(value).rank();
    for (const int64_t d : dims) rank = std::max(rank, operand_axes[d] + 1);
    ir::Dims shape(rank, 1);
    const ir::Dims& small = to().type(value).shape;
    std::copy(small.begin(), small.end(), shape.end() - small.size());
    for (const int64_t d : dims) shape[rank - 1 - operand_axes[d]] = declared[d];
    FUSIOND_ASSIGN_OR_RETURN(value, WithRank(value, rank));
    return Expand(value, shape);
  }

  // Inserts extents of 1 on the left.
  absl::StatusOr<ValueId> WithRank(ValueId value, int rank) {
    const int missing = rank - to().type(value).rank();
    if (missing <= 0) return value;
    std::vector<bool> inserted(rank, false);
    std::fill_n(inserted.begin(), missing, true);
    return builder_.Add(Op::kBroadcast, {value}, {{AttributeKey::kIsBroadcastDim, inserted}});
  }

  absl::StatusOr<ValueId> Expand(ValueId value, const ir::Dims& shape) {
    if (to().type(value).shape == shape) return value;
    return builder_.Add(Op::kExpand, {value}, {{AttributeKey::kShape, AsAttribute(shape)}});
  }

  // Puts the dims of extent other than 1 where their axes stand, counted from the right, by a
  // squeeze and a broadcast at most. `rank`: of the result; nullopt leaves extents of 1 on the left
  // alone.
  absl::StatusOr<ValueId> Place(Placed placed, std::optional<int> rank) {
    Peel(placed);
    const ir::Dims shape = to().type(placed.value).shape;
    // Between two dims that count, and at both ends, extents of 1 are taken away or put in.
    std::vector<int64_t> taken;
    std::vector<bool> inserted;
    std::optional<int> left;  // axis of the dim before the gap
    size_t gap = 0;           // where it begins
    for (size_t d = 0; d <= shape.size(); ++d) {
      if (d < shape.size() && shape[d] == 1) continue;
      const int right = d < shape.size() ? placed.axes[d] : -1;
      const auto have = static_cast<int>(d - gap);
      int want = std::min(have, ir::kMaxRank - 1 - right);
      if (left || rank) want = left.value_or(rank.value_or(0)) - right - 1;
      for (int i = want; i < have; ++i) taken.push_back(static_cast<int64_t>(gap) + i - want);
      for (int i = 0; i < want; ++i) inserted.push_back(i < want - have);
      if (d < shape.size()) inserted.push_back(false);
      left = right;
      gap = d + 1;
    }
    ValueId value = placed.value;
    if (!taken.empty()) {
      FUSIOND_ASSIGN_OR_RETURN(value,
                               builder_.Add(Op::kSqueeze, {value}, {{AttributeKey::kDims, taken}}));
    }
    if (std::find(inserted.begin(), inserted.end(), true) == inserted.end()) return value;
    return builder_.Add(Op::kBroadcast, {value}, {{AttributeKey::kIsBroadcastDim, inserted}});
  }

  // Looks through views that were made to place the value.
  void Peel(Placed& placed) const {
    for (;;) {
      const ir::Node& node = to().producer(placed.value);
      if (node.op != Op::kBroadcast && node.op != Op::kSqueeze) return;
      const int rank = to().type(node.operands[0]).rank();
      const std::vector<int> carried =
          CarriedDims(node, rank, static_cast<int>(placed.axes.size()));
      AxisList axes;
      for (const int dim : carried) axes.push_back(dim < 0 ? kNone : placed.axes[dim]);
      placed = {node.operands[0], axes};
    }
  }

  // A value of the declared rank, with extents of 1 where it does not vary.
  absl::StatusOr<ValueId> Ranked(ValueId id) {
    const ValueId small = renamed_[id];
    const int rank = from_.type(id).rank();
    // Where the declared dims stand in the declared value.
    Placed placed{small, RightAligned(to().type(small).rank())};
    const AxisList axes = axes_.Of(id);
    for (int& axis : placed.axes) {
      const auto at = std::find(axes.begin(), axes.end(), axis);
      axis = at == axes.end() ? kNone : rank - 1 - static_cast<int>(at - axes.begin());
    }
    return Place(placed, rank);
  }

  // A value of the declared rank, shape and strides.
  absl::StatusOr<ValueId> AsDeclared(ValueId id) {
    const ir::Type& declared = from_.type(id);
    const ValueId small = renamed_[id];
    if (declared.scalar) return small;
    if (IsFilled(small) && declared.strides == ir::ContiguousStrides(declared.shape)) {
      ir::Attributes attributes = to().producer(small).attributes;
      attributes.Set(AttributeKey::kShape, AsAttribute(declared.shape));
      return builder_.Add(Op::kFull, {to().producer(small).operands[0]}, attributes);
    }
    FUSIOND_ASSIGN_OR_RETURN(ValueId value, Ranked(id));
    // Dims that repeat elements in memory as well (stride 0) come last.
    ir::Dims stored = declared.shape;
    const ir::Dims shape = to().type(value).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != declared.shape[d] && declared.strides[d] == 0) stored[d] = 1;
    }
    if (stored != shape) {
      FUSIOND_ASSIGN_OR_RETURN(value, Expand(value, stored));
      FUSIOND_ASSIGN_OR_RETURN(value, builder_.Add(Op::kSet, {value}));
    }
    return Expand(value, declared.shape);
  }

  const ir::Graph& from_;
  const PassContext& context_;
  const Axes axes_;
  Builder builder_;
  std::vector<ValueId> renamed_;
};

}  // namespace

absl::StatusOr<bool> ImplicitBroadcasts(ir::Graph& graph, const PassContext& context) {
  // Once is enough unless barriers were needed: they may fall away with the views around them.
  bool changed = false;
  for (int i = 0; i < kMaxRuns; ++i) {
    FUSIOND_ASSIGN_OR_RETURN(ir::Graph made, Sinker(graph, context).Run());
    graph.Compact();
    if (SameGraph(graph, made)) break;
    graph = std::move(made);
    changed = true;
  }
  return changed;
}

}  // namespace fusiond::passes
