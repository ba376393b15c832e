#include "tests/support/bad_graphs.h"

namespace fusiond::testing {
namespace {

using ir::Rule;

const BadGraph kBad[] = {
    // Limits.
    {"TooManyNodes", Rule::kNodeLimit, "7 nodes, limit 6",
     "%a=input:f32[4]\n%b=neg %a\n%c=neg %a\n%d=neg %a\n%e=neg %a\n%f=neg %a\n%g=neg %a\noutput %a",
     "inputs{dtype:FLOAT} nodes{op:'neg' operands:0} nodes{op:'neg' operands:0} nodes{op:'neg' "
     "operands:0} nodes{op:'neg' operands:0} nodes{op:'neg' operands:0} nodes{op:'neg' "
     "operands:0}"},
    {"TooManyInputs", Rule::kInterfaceLimit, "5 inputs and outputs, limit 4",
     "%a=input:f32\n%b=input:f32\n%c=input:f32\n%d=input:f32\n%e=input:f32",
     "inputs{dtype:FLOAT} inputs{dtype:FLOAT} inputs{dtype:FLOAT} inputs{dtype:FLOAT} "
     "inputs{dtype:FLOAT}"},
    {"TooManyOutputs", Rule::kInterfaceLimit, "5 inputs and outputs, limit 4",
     "%a=input:f32[4]\noutput %a\noutput %a\noutput %a\noutput %a",
     "inputs{dtype:FLOAT} outputs{} outputs{} outputs{} outputs{}"},
    {"TooManyElements", Rule::kElementLimit,
     "input: f32[1024,1025]{1025,1} has 1049600 elements, limit 1048576",
     "%a=input:f32[1024,1025]\noutput %a", "inputs{dtype:FLOAT shape:[1024,1025]} outputs{}"},
    {"TooManyElementsInANode", Rule::kElementLimit, "has 2000000 elements, limit 1048576",
     "%a=input:f32[1]\n%b=expand %a {shape=[2000000]}\noutput %b",
     "inputs{dtype:FLOAT shape:1} nodes{op:'expand' operands:0 attributes{key:SHAPE "
     "ints{values:2000000}}} outputs{value:1}"},
    {"TooManyElementsBehindAnExtentOf0", Rule::kElementLimit, "has 2000000 elements, limit 1048576",
     "%a=input:f32[2000000,0]\noutput %a", "inputs{dtype:FLOAT shape:[2000000,0]} outputs{}"},
    {"ElementsOverflow", Rule::kElementLimit,
     "input: shape [4611686018427387904,4] has about 1.84e+19 elements, limit 1099511627776",
     "%a=input:f32[4611686018427387904,4]\noutput %a",
     "inputs{dtype:FLOAT shape:[4611686018427387904,4]} outputs{}"},
    {"RankOfAnInput", Rule::kRankLimit, "rank is 9, limit 8",
     "%a=input:f32[1,1,1,1,1,1,1,1,1]\noutput %a",
     "inputs{dtype:FLOAT shape:[1,1,1,1,1,1,1,1,1]} outputs{}"},
    {"RankOfABroadcast", Rule::kRankLimit, "rank is 9, limit 8",
     "%a=input:f32[1,1,1,1,1,1,1,1]\n%b=broadcast %a "
     "{is_broadcast_dim=[false,false,false,false,false,false,false,false,true]}\noutput %b",
     "inputs{dtype:FLOAT shape:[1,1,1,1,1,1,1,1]} nodes{op:'broadcast' operands:0 "
     "attributes{key:IS_BROADCAST_DIM "
     "bools{values:[false,false,false,false,false,false,false,false,true]}}} outputs{value:1}"},
    {"RankOfABroadcastInDim", Rule::kRankLimit, "rank is 9, limit 8",
     "%a=input:f32[]\n%b=broadcast_in_dim %a {shape=[1,1,1,1,1,1,1,1,1], broadcast_dims=[]}",
     "inputs{dtype:FLOAT} nodes{op:'broadcast_in_dim' operands:0 attributes{key:SHAPE "
     "ints{values:[1,1,1,1,1,1,1,1,1]}} attributes{key:BROADCAST_DIMS ints{}}}"},

    // Names and ids.
    {"UndefinedOperand", Rule::kDefinedBeforeUse, "not defined above", "%a=input:f32[4]\n%b=neg %c",
     nullptr},
    {"OperandOutOfRange", Rule::kDefinedBeforeUse,
     "neg: operand 0 is value 4294967295, values defined before it: 1", nullptr,
     "inputs{dtype:FLOAT} nodes{op:'neg' operands:4294967295} outputs{value:1}"},
    {"ForwardReference", Rule::kDefinedBeforeUse, "defined",
     "%a=input:f32[4]\n%b=neg %c\n%c=neg %a\noutput %c",
     "inputs{dtype:FLOAT} nodes{op:'neg' operands:2} nodes{op:'neg' operands:0} outputs{value:2}"},
    {"NodeUsesItself", Rule::kDefinedBeforeUse, "defined",
     "%a=input:f32[4]\n%b=add %a, %b\noutput %b",
     "inputs{dtype:FLOAT} nodes{op:'add' operands:[0,1]} outputs{value:1}"},
    {"Cycle", Rule::kDefinedBeforeUse, "defined",
     "%a=input:f32[4]\n%b=add %a, %c\n%c=neg %b\noutput %c",
     "inputs{dtype:FLOAT} nodes{op:'add' operands:[0,2]} nodes{op:'neg' operands:1} "
     "outputs{value:2}"},
    {"DefinedTwice", Rule::kDefinedBeforeUse, "%a is defined twice",
     "%a=input:f32[4]\n%a=neg %a\noutput %a", nullptr},
    {"OutputOfNothing", Rule::kDefinedBeforeUse, "defined", "%a=input:f32[4]\noutput %b",
     "inputs{dtype:FLOAT} outputs{value:1}"},
    {"NoOutput", Rule::kHasOutput, "no output", "%a=input:f32[4]", "inputs{dtype:FLOAT}"},
    {"NothingAtAll", Rule::kHasOutput, "no output", "", ""},

    // Ops, operands, results.
    {"UnknownOp", Rule::kOpKnown, "op 'frobnicate' is not supported; supported: input, constant",
     "%a=input:f32[4]\n%b=frobnicate %a", "inputs{dtype:FLOAT} nodes{op:'frobnicate' operands:0}"},
    {"EmptyOp", Rule::kOpKnown, "op '' is not supported", nullptr, "nodes{}"},
    {"InputAsNode", Rule::kOpKnown, "an input's type is declared", nullptr, "nodes{op:'input'}"},
    {"TooFewOperands", Rule::kArity, "add: takes 2 operands, not 1",
     "%a=input:f32[4]\n%b=add %a\noutput %b",
     "inputs{dtype:FLOAT} nodes{op:'add' operands:0} outputs{value:1}"},
    {"TooManyOperands", Rule::kArity, "neg: takes 1 operand, not 2",
     "%a=input:f32[4]\n%b=neg %a, %a\noutput %b",
     "inputs{dtype:FLOAT} nodes{op:'neg' operands:[0,0]} outputs{value:1}"},
    {"TooManyShapeOperands", Rule::kArity, "full: takes 1 to 9 operands, not 10",
     "%a=input:i64\n%b=full %a,%a,%a,%a,%a,%a,%a,%a,%a,%a {dtype=f32, shape=[]}",
     "inputs{dtype:INT scalar:true} nodes{op:'full' operands:[0,0,0,0,0,0,0,0,0,0]}"},
    {"InputWithOperands", Rule::kArity, "input: takes 0 operands, not 1",
     "%a=input:f32[4]\n%b=input %a : f32[4]\noutput %b", nullptr},
    {"WrongNumberOfNames", Rule::kArity, "gives 2 results; written are 1 name and 0 types",
     "%a=input:f32[4]\n%b=var_mean %a {dims=[0]}\noutput %b", nullptr},
    {"WrongNumberOfTypes", Rule::kArity, "gives 1 result; written are 1 name and 2 types",
     "%a=input:f32[4]\n%b=neg %a : f32[4], f32[4]\noutput %b", nullptr},
    {"WrittenTypeDiffers", Rule::kStoredType, "is written as f32[5]{1}, the node gives f32[4]{1}",
     "%a=input:f32[4]\n%b=neg %a : f32[5]\noutput %b", nullptr},
    {"WrittenStridesDiffer", Rule::kStoredType, "f32[4,8]{1,4}, the node gives f32[4,8]{8,1}",
     "%a=input:f32[4,8]{1,4}\noutput %a", nullptr},

    // Attributes.
    {"UnknownAttribute", Rule::kAttributes, "neg: has no attribute 'dims'; it has none",
     "%a=input:f32[4]\n%b=neg %a {dims=[0]}\noutput %b",
     "inputs{dtype:FLOAT} nodes{op:'neg' operands:0 attributes{key:DIMS ints{values:0}}}"},
    {"MissingAttribute", Rule::kAttributes, "sum: needs attribute 'dims', a list of integers",
     "%a=input:f32[4]\n%b=sum %a\noutput %b", "inputs{dtype:FLOAT} nodes{op:'sum' operands:0}"},
    {"AttributeTwice", Rule::kAttributes, "sum: attribute 'dims' is given twice",
     "%a=input:f32[4]\n%b=sum %a {dims=[0], dims=[0]}\noutput %b",
     "inputs{dtype:FLOAT shape:4} nodes{op:'sum' operands:0 attributes{key:DIMS ints{values:0}} "
     "attributes{key:DIMS ints{values:0}}}"},
    {"AttributeKeyUnknown", Rule::kAttributes, "sum: attribute key 99 is unknown, known: 1 to 15",
     nullptr, "inputs{dtype:FLOAT} nodes{op:'sum' operands:0 attributes{key:99 ints{values:0}}}"},
    {"AttributeKey0", Rule::kAttributes, "attribute key 0 is unknown, known: 1 to 15", nullptr,
     "inputs{dtype:FLOAT} nodes{op:'sum' operands:0 attributes{ints{values:0}}}"},
    {"AttributeKeyNegative", Rule::kAttributes, "attribute key -1 is unknown, known: 1 to 15",
     nullptr, "inputs{dtype:FLOAT} nodes{op:'sum' operands:0 attributes{key:-1 ints{values:0}}}"},
    {"AttributeWithoutValue", Rule::kAttributes, "sum: attribute 'dims' has no value", nullptr,
     "inputs{dtype:FLOAT} nodes{op:'sum' operands:0 attributes{key:DIMS}}"},
    {"AttributeOfWrongKind", Rule::kAttributes,
     "attribute 'dims' must be a list of integers, not an integer", nullptr,
     "inputs{dtype:FLOAT} nodes{op:'sum' operands:0 attributes{key:DIMS int_value:0}}"},

    // Inputs.
    {"NegativeExtent", Rule::kExtents, "extent of dim 1 is -2, must be -1, 0 or more",
     "%a=input:f32[4,-2]\noutput %a", "inputs{dtype:FLOAT shape:[4,-2]} outputs{}"},
    {"ContiguityTooShort", Rule::kContiguity, "contiguity has 1 entry, the rank is 2",
     "%a=input {contiguity=[t]}:f32[4,8]\noutput %a",
     "inputs{dtype:FLOAT shape:[4,8] attributes{key:CONTIGUITY ints{values:1}}} outputs{}"},
    {"ContiguityOfExtent1", Rule::kContiguity, "entry 1 (dim 1) must be b, since the extent is 1",
     "%a=input {contiguity=[t,t]}:f32[4,1]\noutput %a",
     "inputs{dtype:FLOAT shape:[4,1] attributes{key:CONTIGUITY ints{values:[1,1]}}} outputs{}"},
    {"ContiguityNumber", Rule::kContiguity, "contiguity entry 0 is 3, must be 0, 1 or 2", nullptr,
     "inputs{dtype:FLOAT shape:4 attributes{key:CONTIGUITY ints{values:3}}} outputs{}"},
    {"StrideOrderTwice", Rule::kStrideOrder,
     "stride_order=[0,0] is no permutation of 0 … rank-1 at rank 2",
     "%a=input {stride_order=[0,0]}:f32[4,8]\noutput %a",
     "inputs{dtype:FLOAT shape:[4,8] attributes{key:STRIDE_ORDER ints{values:[0,0]}}} outputs{}"},
    {"StrideOrderOutOfRange", Rule::kStrideOrder,
     "stride_order=[2,0] is no permutation of 0 … rank-1 at rank 2",
     "%a=input {stride_order=[2,0]}:f32[4,8]\noutput %a",
     "inputs{dtype:FLOAT shape:[4,8] attributes{key:STRIDE_ORDER ints{values:[2,0]}}} outputs{}"},
    {"StrideOrderNegative", Rule::kStrideOrder,
     "stride_order=[-1,0] is no permutation of 0 … rank-1 at rank 2",
     "%a=input {stride_order=[-1,0]}:f32[4,8]\noutput %a",
     "inputs{dtype:FLOAT shape:[4,8] attributes{key:STRIDE_ORDER ints{values:[-1,0]}}} outputs{}"},
    {"HostTensorWithDims", Rule::kHost, "a host tensor has rank 0, this one 1",
     "%a=input {host=true}:f32[4]\noutput %a",
     "inputs{dtype:FLOAT shape:4 attributes{key:HOST bool_value:true}} outputs{}"},
    {"ScalarWithAttributes", Rule::kScalarInput,
     "input: a scalar has no attributes, this one has 'host'", "%a=input {host=true}:f32",
     "inputs{dtype:FLOAT scalar:true attributes{key:HOST bool_value:true}}"},
    {"ScalarWithShape", Rule::kScalarInput, "input: a scalar has no shape, this one has [4]",
     nullptr, "inputs{dtype:FLOAT scalar:true shape:4}"},
    {"DTypeOfAnInput", Rule::kDType, "dtype 8 is not supported; supported: 1 to 7", nullptr,
     "inputs{dtype:8} outputs{}"},
    {"DTypeMissing", Rule::kDType, "dtype 0 is not supported; supported: 1 to 7", nullptr,
     "inputs{} outputs{}"},

    // Constants.
    {"ConstantOfAnotherKind", Rule::kConstant,
     "constant: the value is an integer, f32 takes a float", "%a=constant {value=1, dtype=f32}",
     "nodes{op:'constant' attributes{key:VALUE int_value:1} attributes{key:DTYPE dtype:FLOAT}}"},
    {"ConstantOutOfF16", Rule::kConstant, "constant: 1e+30 is out of f16's range, at most 65504",
     "%a=constant {value=1e30, dtype=f16}",
     "nodes{op:'constant' attributes{key:VALUE number:1e30} attributes{key:DTYPE dtype:HALF}}"},
    {"ConstantOutOfBF16", Rule::kConstant,
     "constant: 3.4e+38 is out of bf16's range, at most 3.38953e+38",
     "%a=constant {value=3.4e38, dtype=bf16}",
     "nodes{op:'constant' attributes{key:VALUE number:3.4e38} attributes{key:DTYPE "
     "dtype:BFLOAT16}}"},
    {"ConstantOutOfF32", Rule::kConstant,
     "constant: 1e+39 is out of f32's range, at most 3.40282e+38",
     "%a=constant {value=1e39, dtype=f32}",
     "nodes{op:'constant' attributes{key:VALUE number:1e39} attributes{key:DTYPE dtype:FLOAT}}"},
    {"NegativeConstantOutOfF16", Rule::kConstant,
     "constant: -65520 is out of f16's range, at most 65504",
     "%a=constant {value=-65520.0, dtype=f16}",
     "nodes{op:'constant' attributes{key:VALUE number:-65520} attributes{key:DTYPE dtype:HALF}}"},
    {"ConstantOfBool", Rule::kConstant, "constant: the value is a bool, i64 takes an integer",
     "%a=constant {value=true, dtype=i64}",
     "nodes{op:'constant' attributes{key:VALUE bool_value:true} attributes{key:DTYPE dtype:INT}}"},
    {"ConstantForBool", Rule::kConstant, "constant: the value is a float, bool takes a bool",
     "%a=constant {value=1.0, dtype=bool}",
     "nodes{op:'constant' attributes{key:VALUE number:1} attributes{key:DTYPE dtype:BOOL}}"},
    {"ConstantOutOfRange", Rule::kConstant,
     "constant: 2147483648 is out of i32's range, -2147483648 to 2147483647",
     "%a=constant {value=2147483648, dtype=i32}",
     "nodes{op:'constant' attributes{key:VALUE int_value:2147483648} attributes{key:DTYPE "
     "dtype:INT32}}"},

    // Dtypes and shapes of nodes.
    {"BitsOfFloat", Rule::kDType, "bitwise_not: takes bool, i32 and i64, not f32",
     "%a=input:f32[4]\n%b=bitwise_not %a",
     "inputs{dtype:FLOAT shape:4} nodes{op:'bitwise_not' operands:0}"},
    {"ConditionOfFloat", Rule::kDType, "where: takes bool as its condition, not f32",
     "%a=input:f32[4]\n%b=where %a, %a, %a",
     "inputs{dtype:FLOAT shape:4} nodes{op:'where' operands:[0,0,0]}"},
    {"ExtentsDiffer", Rule::kExtentsMeet,
     "add: operand 1 has extent 3 at dim 0 of the result, an earlier operand has 4",
     "%a=input:f32[4,8]\n%b=input:f32[3,8]\n%c=add %a, %b",
     "inputs{dtype:FLOAT shape:[4,8]} inputs{dtype:FLOAT shape:[3,8]} nodes{op:'add' "
     "operands:[0,1]}"},
    {"ReductionDimOutOfRange", Rule::kReductionDims, "dim 2 is out of range: dims=[2] at rank 2",
     "%a=input:f32[4,8]\n%b=sum %a {dims=[2]}",
     "inputs{dtype:FLOAT shape:[4,8]} nodes{op:'sum' operands:0 attributes{key:DIMS "
     "ints{values:2}}}"},
    {"ReductionDimNegative", Rule::kReductionDims, "dim -1 is out of range: dims=[-1] at rank 2",
     "%a=input:f32[4,8]\n%b=sum %a {dims=[-1]}",
     "inputs{dtype:FLOAT shape:[4,8]} nodes{op:'sum' operands:0 attributes{key:DIMS "
     "ints{values:-1}}}"},
    {"ReductionDimTwice", Rule::kReductionDims, "dims do not strictly increase: dims=[1,1]",
     "%a=input:f32[4,8]\n%b=max %a {dims=[1,1]}",
     "inputs{dtype:FLOAT shape:[4,8]} nodes{op:'max' operands:0 attributes{key:DIMS "
     "ints{values:[1,1]}}}"},
    {"ReductionOfNothing", Rule::kReductionDims, "no dim is named: dims=[] at rank 1",
     "%a=input:f32[4]\n%b=sum %a {dims=[]}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'sum' operands:0 attributes{key:DIMS ints{}}}"},
    {"ReductionOfAScalar", Rule::kOperandKind,
     "sum: operand 0 must be a tensor, not a scalar of f32", "%a=input:f32\n%b=sum %a {dims=[]}",
     "inputs{dtype:FLOAT scalar:true} nodes{op:'sum' operands:0 attributes{key:DIMS ints{}}}"},
    {"NegativeCorrection", Rule::kCorrection, "correction is -1, must be 0 or more",
     "%a=input:f32[4]\n%b=var %a {dims=[0], correction=-1}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'var' operands:0 attributes{key:DIMS ints{values:0}} "
     "attributes{key:CORRECTION int_value:-1}}"},
    {"BroadcastFlags", Rule::kBroadcast,
     "is_broadcast_dim has 2 false entries, the operand's rank is 1",
     "%a=input:f32[4]\n%b=broadcast %a {is_broadcast_dim=[false,false]}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'broadcast' operands:0 attributes{key:IS_BROADCAST_DIM "
     "bools{values:[false,false]}}}"},
    {"BroadcastDimsOutOfRange", Rule::kBroadcastInDim,
     "broadcast_dims=[2] must strictly increase within rank 2",
     "%a=input:f32[4]\n%b=broadcast_in_dim %a {shape=[4,8], broadcast_dims=[2]}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'broadcast_in_dim' operands:0 attributes{key:SHAPE "
     "ints{values:[4,8]}} attributes{key:BROADCAST_DIMS ints{values:2}}}"},
    {"BroadcastExtentsDiffer", Rule::kBroadcastInDim,
     "operand dim 0 has extent 4, result dim 1 has 8",
     "%a=input:f32[4]\n%b=broadcast_in_dim %a {shape=[4,8], broadcast_dims=[1]}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'broadcast_in_dim' operands:0 attributes{key:SHAPE "
     "ints{values:[4,8]}} attributes{key:BROADCAST_DIMS ints{values:1}}}"},
    {"ShapeOperandMissing", Rule::kShapeOperands, "has 1 symbolic extent, the node has 0 operands",
     "%a=input:f32[4]\n%b=broadcast_in_dim %a {shape=[4,-1], broadcast_dims=[0]}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'broadcast_in_dim' operands:0 attributes{key:SHAPE "
     "ints{values:[4,-1]}} attributes{key:BROADCAST_DIMS ints{values:0}}}"},
    {"ExpandOfOtherExtents", Rule::kExpand, "dim 0 has extent 4 and cannot become 8",
     "%a=input:f32[4]\n%b=expand %a {shape=[8]}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'expand' operands:0 attributes{key:SHAPE "
     "ints{values:8}}}"},
    {"SqueezeOfOtherExtents", Rule::kSqueeze, "dim 0 has extent 4, must be 1",
     "%a=input:f32[4]\n%b=squeeze %a {dims=[0]}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'squeeze' operands:0 attributes{key:DIMS "
     "ints{values:0}}}"},
    {"SizeOutOfRange", Rule::kSizeDim, "dims=[1] must name one dim of rank 1",
     "%a=input:f32[4]\n%b=size %a {dims=[1]}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'size' operands:0 attributes{key:DIMS "
     "ints{values:1}}}"},

    // Maps.
    {"PermuteOfADimTwice", Rule::kPermute, "dims=[0,0] is no permutation of 0 … rank-1 at rank 2",
     "%a=input:f32[4,8]\n%b=permute %a {dims=[0,0]}",
     "inputs{dtype:FLOAT shape:[4,8]} nodes{op:'permute' operands:0 attributes{key:DIMS "
     "ints{values:[0,0]}}}"},
    {"PermuteOfTooFewDims", Rule::kPermute, "dims=[0] is no permutation of 0 … rank-1 at rank 2",
     "%a=input:f32[4,8]\n%b=permute %a {dims=[0]}",
     "inputs{dtype:FLOAT shape:[4,8]} nodes{op:'permute' operands:0 attributes{key:DIMS "
     "ints{values:0}}}"},
    {"PermuteOfAScalar", Rule::kOperandKind, "operand 0 must be a tensor, not a scalar of f32",
     "%a=input:f32\n%b=permute %a {dims=[]}",
     "inputs{dtype:FLOAT scalar:true} nodes{op:'permute' operands:0 attributes{key:DIMS ints{}}}"},
    {"SliceOfTooFewDims", Rule::kSlice, "end_indices=[2] has 1 entry, the operand's rank is 2",
     "%a=input:f32[4,8]\n%b=slice %a {start_indices=[0,0], end_indices=[2]}",
     "inputs{dtype:FLOAT shape:[4,8]} nodes{op:'slice' operands:0 attributes{key:START_INDICES "
     "ints{values:[0,0]}} attributes{key:END_INDICES ints{values:2}}}"},
    {"SliceBackwards", Rule::kSlice,
     "dim 0 begins at 3 and ends before 2, must be 0 or more and not behind its end",
     "%a=input:f32[4]\n%b=slice %a {start_indices=[3], end_indices=[2]}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'slice' operands:0 attributes{key:START_INDICES "
     "ints{values:3}} attributes{key:END_INDICES ints{values:2}}}"},
    {"SliceFromANegativeIndex", Rule::kSlice, "dim 0 begins at -1 and ends before 2",
     "%a=input:f32[4]\n%b=slice %a {start_indices=[-1], end_indices=[2]}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'slice' operands:0 attributes{key:START_INDICES "
     "ints{values:-1}} attributes{key:END_INDICES ints{values:2}}}"},

    {"ReshapeOfOtherElements", Rule::kReshape,
     "the operand has 12 elements, shape=[5,2] has 10 elements",
     "%a=input:f32[3,4]\n%b=reshape %a {shape=[5,2]}",
     "inputs{dtype:FLOAT shape:[3,4]} nodes{op:'reshape' operands:0 attributes{key:SHAPE "
     "ints{values:[5,2]}}}"},
    {"TriuOfAVector", Rule::kTriu, "the operand has 1 dim, must have 2 or more",
     "%a=input:f32[4]\n%b=triu %a", "inputs{dtype:FLOAT shape:4} nodes{op:'triu' operands:0}"},
    {"PadOfTooManyDims", Rule::kPad, "pad_widths=[1,1,1,1] has 4 entries, the operand's rank is 1",
     "%a=input:f32[4]\n%v=input:f32\n%b=pad %a, %v {pad_widths=[1,1,1,1]}",
     "inputs{dtype:FLOAT shape:4} inputs{dtype:FLOAT scalar:true} nodes{op:'pad' operands:[0,1] "
     "attributes{key:PAD_WIDTHS ints{values:[1,1,1,1]}}}"},
    {"PadBelowNothing", Rule::kPad, "dim 0 has extent 4 and cannot be widened by -3 and -2",
     "%a=input:f32[4]\n%v=input:f32\n%b=pad %a, %v {pad_widths=[-3,-2]}",
     "inputs{dtype:FLOAT shape:4} inputs{dtype:FLOAT scalar:true} nodes{op:'pad' operands:[0,1] "
     "attributes{key:PAD_WIDTHS ints{values:[-3,-2]}}}"},
    {"PadWithATensor", Rule::kOperandKind, "operand 1, the fill, must be a scalar",
     "%a=input:f32[4]\n%b=pad %a, %a {pad_widths=[1,1]}",
     "inputs{dtype:FLOAT shape:4} nodes{op:'pad' operands:[0,0] attributes{key:PAD_WIDTHS "
     "ints{values:[1,1]}}}"},
    {"CatOfOtherExtents", Rule::kCat, "operand 1 has extent 5 at dim 1, an earlier operand 4",
     "%a=input:f32[3,4]\n%b=input:f32[3,5]\n%c=cat %a, %b {dims=[0]}",
     "inputs{dtype:FLOAT shape:[3,4]} inputs{dtype:FLOAT shape:[3,5]} nodes{op:'cat' "
     "operands:[0,1] attributes{key:DIMS ints{values:0}}}"},
    {"CatOfDTypes", Rule::kCat, "operand 1 is bf16[3]{1}, operand 0 f32[3]{1}",
     "%a=input:f32[3]\n%b=input:bf16[3]\n%c=cat %a, %b {dims=[0]}",
     "inputs{dtype:FLOAT shape:3} inputs{dtype:BFLOAT16 shape:3} nodes{op:'cat' operands:[0,1] "
     "attributes{key:DIMS ints{values:0}}}"},
    {"IndicesOfFloats", Rule::kIndexing,
     "operand 1, the indices, must be a tensor of i32 or i64, not f32[3]{1}",
     "%a=input:f32[3]\n%b=index_select %a, %a {dims=[0]}",
     "inputs{dtype:FLOAT shape:3} nodes{op:'index_select' operands:[0,0] attributes{key:DIMS "
     "ints{values:0}}}"},
    {"IndicesOfAnotherRank", Rule::kIndexing, "operand 1, the indices, has rank 1, must have 2",
     "%a=input:f32[3,4]\n%i=input:i64[3]\n%b=gather %a, %i {dims=[0]}",
     "inputs{dtype:FLOAT shape:[3,4]} inputs{dtype:INT shape:3} nodes{op:'gather' operands:[0,1] "
     "attributes{key:DIMS ints{values:0}}}"},
    {"GatherOfMoreThanThereIs", Rule::kIndexing,
     "the indices have extent 5 at dim 1, operand 0 has 4",
     "%a=input:f32[3,4]\n%i=input:i64[2,5]\n%b=gather %a, %i {dims=[0]}",
     "inputs{dtype:FLOAT shape:[3,4]} inputs{dtype:INT shape:[2,5]} nodes{op:'gather' "
     "operands:[0,1] attributes{key:DIMS ints{values:0}}}"},
    {"TakeAlongAnUnknownAxis", Rule::kIndexing, "dims=[2] must name one dim of rank 2",
     "%a=input:f32[3,4]\n%i=input:i64[3,4]\n%b=take_along_axis %a, %i {dims=[2]}",
     "inputs{dtype:FLOAT shape:[3,4]} inputs{dtype:INT shape:[3,4]} nodes{op:'take_along_axis' "
     "operands:[0,1] attributes{key:DIMS ints{values:2}}}"},
    {"IotaOfBools", Rule::kDType,
     "takes i32, i64, f16, bf16, f32 and f64 as attribute dtype, not bool",
     "%s=input:i64\n%b=iota %s, %s {dtype=bool, shape=[4]}",
     "inputs{dtype:INT scalar:true} nodes{op:'iota' operands:[0,0] attributes{key:DTYPE "
     "dtype:BOOL} attributes{key:SHAPE ints{values:4}}}"},
    {"IotaOfTwoDims", Rule::kShapeOperands, "shape=[4,4] has 2 entries, must have 1",
     "%s=input:i64\n%b=iota %s, %s {shape=[4,4]}",
     "inputs{dtype:INT scalar:true} nodes{op:'iota' operands:[0,0] attributes{key:SHAPE "
     "ints{values:[4,4]}}}"},
    {"DrawsOfIntegers", Rule::kDType, "draws f16, bf16, f32 and f64, not i64",
     "%a=input:i64[4]\n%s=input:i64\n%b=rand_like %a, %s, %s",
     "inputs{dtype:INT shape:4} inputs{dtype:INT scalar:true} nodes{op:'rand_like' "
     "operands:[0,1,1]}"},
    {"SeedIsAFloat", Rule::kDType, "operand 1, the seed, must be i64, not f32",
     "%a=input:f32[4]\n%s=input:f32\n%i=input:i64\n%b=randn_like %a, %s, %i",
     "inputs{dtype:FLOAT shape:4} inputs{dtype:FLOAT scalar:true} inputs{dtype:INT scalar:true} "
     "nodes{op:'randn_like' operands:[0,1,2]}"},
    {"OffsetOfTwoElements", Rule::kOperandKind,
     "operand 3, the offset, must be a scalar or a tensor of one element, not i64[2]{1}",
     "%a=input:f32\n%s=input:i64\n%o=input:i64[2]\n%b=uniform %a, %a, %s, %o {shape=[4]}",
     "inputs{dtype:FLOAT scalar:true} inputs{dtype:INT scalar:true} inputs{dtype:INT shape:2} "
     "nodes{op:'uniform' operands:[0,0,1,2] attributes{key:SHAPE ints{values:4}}}"},
    {"MeanIsATensor", Rule::kOperandKind, "operand 0 must be a scalar, not f32[1]{1}",
     "%a=input:f32[1]\n%s=input:i64\n%b=normal %a, %a, %s, %s {shape=[4]}",
     "inputs{dtype:FLOAT shape:1} inputs{dtype:INT scalar:true} nodes{op:'normal' "
     "operands:[0,0,1,1] attributes{key:SHAPE ints{values:4}}}"},
    {"SeedOfHigherRank", Rule::kOperandKind, "operand 2 has rank 1, the result 0",
     "%a=input:f32\n%s=input:i64[1]\n%b=uniform %a, %a, %s, %s {shape=[]}",
     "inputs{dtype:FLOAT scalar:true} inputs{dtype:INT shape:1} nodes{op:'uniform' "
     "operands:[0,0,1,1] attributes{key:SHAPE ints{}}}"},

    // Outputs.
    {"ScalarOutput", Rule::kOutputIsTensor, " is a scalar of f32", "%a=input:f32\noutput %a",
     "inputs{dtype:FLOAT scalar:true} outputs{}", "an output must be a tensor"},
    {"AliasOfANode", Rule::kAlias, "the alias %b is not an input",
     "%a=input:f32[4]\n%b=neg %a\noutput %b alias %b", nullptr},
    {"AliasOutOfRange", Rule::kAlias, "alias of input 1, the graph has 1 input", nullptr,
     "inputs{dtype:FLOAT} outputs{alias_input:1}"},
    {"AliasOfAnotherShape", Rule::kAlias, " of type f32[4]{1}",
     "%a=input:f32[4]\n%b=input:f32[8]\noutput %b alias %a",
     "inputs{dtype:FLOAT shape:4} inputs{dtype:FLOAT shape:8} outputs{value:1 alias_input:0}",
     " of type f32[8]{1} cannot be written into input 0 ("},
    {"AliasOfAnotherDType", Rule::kAlias, ") of type bf16[4]{1}",
     "%a=input:bf16[4]\n%b=neg %a\noutput %b alias %a",
     "inputs{dtype:BFLOAT16 shape:4} nodes{op:'neg' operands:0} outputs{value:1 alias_input:0}",
     " of type f32[4]{1} cannot be written into input 0 ("},
    {"AliasTwice", Rule::kAlias, ") is the alias of an earlier output",
     "%a=input:f32[4]\n%b=neg %a\noutput %b alias %a\noutput %b alias %a",
     "inputs{dtype:FLOAT} nodes{op:'neg' operands:0} outputs{value:1 alias_input:0} "
     "outputs{value:1 alias_input:0}"},
    {"AliasOfAnExpandedInput", Rule::kAlias, ") of type f32[4]{0} has an expanded dim",
     "%a=input {contiguity=[b]}:f32[4]\n%b=neg %a\noutput %b alias %a",
     "inputs{dtype:FLOAT shape:4 attributes{key:CONTIGUITY ints{values:2}}} nodes{op:'neg' "
     "operands:0} outputs{value:1 alias_input:0}"},
    {"AliasOfAHostTensor", Rule::kAlias, ") lies in host memory",
     "%a=input {host=true}:f32[]\n%b=neg %a\noutput %b alias %a",
     "inputs{dtype:FLOAT attributes{key:HOST bool_value:true}} nodes{op:'neg' operands:0} "
     "outputs{value:1 alias_input:0}"},
};

}  // namespace

absl::Span<const BadGraph> BadGraphs() { return kBad; }

absl::StatusCode CodeOf(ir::Rule rule) {
  for (const ir::RuleInfo& info : ir::RuleTable()) {
    if (info.rule == rule) return info.code;
  }
  return absl::StatusCode::kUnknown;
}

}  // namespace fusiond::testing
