#include "compiler/ir/rules.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fusiond::ir {
namespace {

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kLimit = absl::StatusCode::kResourceExhausted;
constexpr absl::StatusCode kUnsupported = absl::StatusCode::kUnimplemented;

constexpr RuleInfo kRules[] = {
    {Rule::kNodeLimit, kLimit, "the graph has no more nodes than the limit"},
    {Rule::kInterfaceLimit, kLimit, "inputs and outputs together are no more than the limit"},
    {Rule::kByteLimit, kLimit, "the text or message has no more bytes than the limit"},
    {Rule::kElementLimit, kLimit, "no tensor has more elements than the limit"},
    {Rule::kRankLimit, kLimit, "no tensor has a rank above 8"},
    {Rule::kDefinedBeforeUse, kInvalid,
     "every value is defined once, before its uses; there is no cycle"},
    {Rule::kHasOutput, kInvalid, "the graph has an output"},
    {Rule::kArity, kInvalid, "a node has as many operands and results as its op takes and gives"},
    {Rule::kAttributes, kInvalid,
     "a node has all required attributes, no unknown ones, each of the op's kind"},
    {Rule::kExtents, kInvalid, "an extent is 0 or more, or -1 (symbolic)"},
    {Rule::kContiguity, kInvalid,
     "contiguity has one entry a dim; extents of 1 are broadcast dims (b)"},
    {Rule::kStrideOrder, kInvalid, "stride_order is a permutation of 0 … rank-1"},
    {Rule::kHost, kInvalid, "a host tensor has rank 0"},
    {Rule::kScalarInput, kInvalid, "a scalar input has no shape and no attributes"},
    {Rule::kConstant, kInvalid,
     "a constant's value is of its dtype's kind and range; a float is rounded to the nearest"},
    {Rule::kOperandKind, kInvalid, "an operand is a tensor or a scalar, as its slot asks"},
    {Rule::kDType, kUnsupported, "the op takes the operands' dtypes"},
    {Rule::kExtentsMeet, kInvalid,
     "extents of a pointwise op's operands, aligned on the right, are equal, 1 or symbolic"},
    {Rule::kReductionDims, kInvalid,
     "reduction dims are in range and strictly increasing; none only at rank 0"},
    {Rule::kCorrection, kInvalid, "a variance's correction is 0 or more"},
    {Rule::kBroadcast, kInvalid, "is_broadcast_dim has one false an operand dim"},
    {Rule::kBroadcastInDim, kInvalid,
     "broadcast_dims has one entry an operand dim, strictly increasing, in range, and the extents "
     "meet"},
    {Rule::kShapeOperands, kInvalid, "shape has one -1 for each integer scalar operand"},
    {Rule::kExpand, kInvalid,
     "expand's shape has the operand's rank and changes extents of 1 only"},
    {Rule::kSqueeze, kInvalid,
     "squeeze's dims are in range, strictly increasing, and have extent 1"},
    {Rule::kSizeDim, kInvalid, "size names one dim of its operand"},
    {Rule::kOutputIsTensor, kInvalid, "an output is a tensor"},
    {Rule::kAlias, kInvalid,
     "an alias names a device tensor input of the output's dtype and shape, without expanded dims, "
     "and no other output's alias"},
    {Rule::kStoredType, kInvalid, "a value's type is the one that its node gives"},
    {Rule::kOpKnown, kUnsupported, "the op is one of the op table"},
    {Rule::kPermute, kInvalid, "permute's dims are a permutation of 0 … rank-1"},
    {Rule::kSlice, kInvalid,
     "slice has a start and an end index a dim, 0 or more, no start behind its end"},
    {Rule::kReshape, kInvalid, "reshape keeps the number of elements"},
    {Rule::kPad, kInvalid,
     "pad_widths has two entries a dim, for the rank's last dims, and leaves no extent below 0"},
    {Rule::kCat, kInvalid,
     "cat names one dim; its operands have one rank and dtype, and equal extents elsewhere"},
    {Rule::kIndexing, kInvalid,
     "index_select, gather and take_along_axis name one dim; indices are integers of fitting "
     "shape"},
    {Rule::kTriu, kInvalid, "triu's operand has two dims or more"},
    {Rule::kStatic, kInvalid, "specialised: no extent is symbolic"},
    {Rule::kNoSize, kInvalid, "specialised: no size op is left, and random ops are written out"},
    {Rule::kComputeType, kInvalid, "canonical: a pointwise op's operands have its compute type"},
    {Rule::kNarrow, kInvalid, "canonical: f16 and bf16 are moved and cast, computed in f32"},
    {Rule::kReduction, kInvalid,
     "canonical: reductions are sum, prod, max and min, have keepdim, and no dim of extent 1"},
    {Rule::kViews, kInvalid,
     "canonical: no broadcast_in_dim, no triu; expand and set before outputs only, or expand "
     "before a "
     "reduction or a map"},
};

}  // namespace

absl::Span<const RuleInfo> RuleTable() { return kRules; }

std::string RuleName(Rule rule) { return absl::StrFormat("IR-%02d", static_cast<int>(rule)); }

absl::Status RuleError(Rule rule, absl::string_view detail) {
  absl::StatusCode code = kInvalid;
  for (const RuleInfo& info : kRules) {
    if (info.rule == rule) code = info.code;
  }
  return absl::Status(code, absl::StrCat(RuleName(rule), ": ", detail));
}

}  // namespace fusiond::ir
