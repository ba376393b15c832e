// The table of ops: names, arity, classes, promotion, attributes, documentation. Rows stand in
// ops.def.
//
// Thread-safety: immutable.
#ifndef FUSIOND_COMPILER_IR_OP_TABLE_H_
#define FUSIOND_COMPILER_IR_OP_TABLE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/ir/attributes.h"

namespace fusiond::ir {

enum class Op : uint16_t {
#define FUSIOND_OP(enumerator, ...) enumerator,
#include "compiler/ir/ops.def"
#undef FUSIOND_OP
};

enum class OpClass : uint8_t {
  kLeaf,       // input, constant
  kFactory,    // makes a tensor from scalars
  kMetadata,   // reads extents, never elements
  kPointwise,  // element i of the result depends on element i of the (broadcast) operands
  kReduction,
  kShape,  // moves elements, computes nothing
  kMap,    // an element is one of an operand's, at an index computed from its own
};

// How the result's dtype follows from the operands' (torch style; table in README.md). "Common
// type" = promotion by category: tensor with dims > tensor of rank 0 > scalar; within one, bool <
// integer < float.
enum class Promotion : uint8_t {
  kNone,         // stated by attributes or by the op itself
  kArithmetic,   // common type; half and bf16 give f32
  kFloatResult,  // as kArithmetic; bool and integers give f32
  kFloatOnly,    // common type, f32 or f64 only
  kIntegral,     // common type, integers only
  kBitwise,      // common type, integers or bool only
  kComparison,   // computed in the common type, gives bool
  kLogical,      // each operand is compared with 0, gives bool
  kPredicate,    // one operand of any type, gives bool
  kSelect,       // operand 0 bool; common type of the others, half and bf16 kept
  kSameType,     // the operand's
  kCast,         // attribute dtype
  kReduceSum,    // attribute dtype if given; else the operand's, i64 for bool and integers
};

struct AttributeSpec {
  AttributeKey key;
  AttributeKind kind;
  bool required;
  // Meant when absent. nullopt: absence has a meaning of its own (a sum without dtype keeps the
  // operand's).
  std::optional<Attribute> default_value;
};

struct OpInfo {
  Op op;
  absl::string_view name;
  int min_operands;
  int max_operands;
  int results;
  OpClass op_class;
  Promotion promotion;
  absl::string_view doc;
  absl::Span<const AttributeSpec> attributes;
};

const OpInfo& Info(Op op);
absl::Span<const OpInfo> OpTable();
std::optional<Op> OpFromName(absl::string_view name);
// Whether the order of its two operands means nothing.
bool IsCommutative(Op op);
// UNIMPLEMENTED, rule IR-30: names the op asked for and those that exist.
absl::Status UnknownOpError(absl::string_view name);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_OP_TABLE_H_
