// Parts of type inference that graph.h does not publish.
#ifndef FUSIOND_COMPILER_IR_INFER_INTERNAL_H_
#define FUSIOND_COMPILER_IR_INFER_INTERNAL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/ir/attributes.h"
#include "compiler/ir/op_table.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/types.h"

namespace fusiond::ir {

using Operands = absl::Span<const Type* const>;

// RuleError with the op's name before the detail.
absl::Status OpError(Rule rule, Op op, absl::string_view detail);

// kOperandKind: operand 0 of an op that takes no scalar.
absl::Status CheckTensor(Op op, const Type& operand);
// kArity.
absl::Status CheckOperandCount(Op op, size_t operands);
absl::Status UnknownAttribute(Op op, absl::string_view name);
// kArity and kAttributes: operand count; unknown, missing and wrongly typed attributes.
absl::Status CheckForm(Op op, size_t operands, const Attributes& attributes);
// Drops attributes that equal their default, so that equal nodes have equal attributes.
void DropDefaults(Op op, Attributes& attributes);
// kExtents, kRankLimit, and kElementLimit against 2^62, the most that strides can count.
absl::Status CheckShape(Op op, const Dims& shape);

// dtype of the op's first result.
absl::StatusOr<DType> ResultDType(Op op, Operands operands, const Attributes& attributes);

// The type of an input declared with `declared`'s dtype, scalar and shape: strides follow from the
// attributes. `attributes` must have passed CheckForm.
absl::StatusOr<Type> InputType(const Type& declared, const Attributes& attributes);
// Drops contiguity and stride order that say what is the default for the shape.
void DropInputDefaults(const Type& type, Attributes& attributes);

// kShapeOperands: one integer scalar operand, from `first` on, for each -1 of attribute shape.
absl::Status CheckShapeOperands(Op op, Operands operands, size_t first,
                                const std::vector<int64_t>& shape);
// Results of shape, factory and metadata ops.
absl::StatusOr<Type> InferShapeOp(Op op, Operands operands, const Attributes& attributes);
// Results of maps.
absl::StatusOr<Type> InferMap(Op op, Operands operands, const Attributes& attributes);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_INFER_INTERNAL_H_
