#include "compiler/codegen/expression.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/names.h"
#include "compiler/ir/op_table.h"
#include "compiler/schedule/device_model.h"
#include "runtime/base/check.h"

namespace fusiond::codegen {

using schedule::Access;
using schedule::Instr;
using schedule::Region;
using schedule::Tensor;

namespace {

// An element's own index, as of what was drawn where no vector could be.
bool IsIndex(const Region& region, uint32_t i) {
  const Instr& instr = region.instrs[i];
  if (instr.kind == Instr::Kind::kCompute && instr.op == ir::Op::kCast)
    return IsIndex(region, instr.operands[0]);
  return instr.kind == Instr::Kind::kIndex;
}

std::string Compute(const Region& region, const Instr& instr, OperandText operand) {
  if (instr.op == ir::Op::kCast) {
    const std::string value = operand(instr.operands[0]);
    if (ir::ComputeType(instr.rounding) == instr.rounding)
      return absl::StrCat("fd_cast<", RegisterType(instr.dtype), ">(", value, ")");
    return absl::StrCat("fd_cast<f32>(fd_cast<", MemoryType(instr.rounding), ">(", value, "))");
  }
  std::string text = HelperOf(instr.op, instr.dtype, region.math).name;
  if (instr.op == ir::Op::kRandomBits && IsIndex(region, instr.operands[0]))
    text = "fd_random_word";
  text += '(';
  for (size_t i = 0; i < instr.operands.size(); ++i)
    absl::StrAppend(&text, i > 0 ? ", " : "", operand(instr.operands[i]));
  return absl::StrCat(text, ")");
}

}  // namespace

std::string ComputedText(const Region& region, const Instr& instr, OperandText operand,
                         CoordinateText coordinate, bool wide) {
  if (instr.kind == Instr::Kind::kCompute) return Compute(region, instr, operand);
  const char* type = RegisterType(instr.dtype);
  const std::string linear = OffsetText(instr.access.strides, coordinate, wide);
  if (instr.kind == Instr::Kind::kIndex) return absl::StrCat("(", type, ")(", linear, ")");
  const std::string further = operand(instr.operands[0]);
  const std::string offset = linear == "0" ? further : absl::StrCat(linear, " + ", further);
  const std::string value =
      absl::StrCat("fd_cast<", type, ">(", LoadText(region, instr.access, {}, 1, offset), "[0])");
  if (instr.operands.size() == 1) return value;
  return absl::StrCat("(", operand(instr.operands[1]), " ? ", value, " : (", type, ")0)");
}

const char* Reducer(ir::Op op) {
  switch (op) {
    case ir::Op::kSum:
      return "fd_sum";
    case ir::Op::kProd:
      return "fd_prod";
    case ir::Op::kMax:
      return "fd_max";
    case ir::Op::kMin:
      return "fd_min";
    default:
      break;
  }
  FUSIOND_CHECK(false);
  return "";
}

const char* OnlineState(ir::Op op) { return op == ir::Op::kVar ? "fd_welford" : "fd_exp_sum"; }

VectorAccess PlanAccess(const Region& region, const Access& access, int inner, int vector) {
  VectorAccess plan;
  const Tensor& tensor = region.tensors[access.tensor];
  const int64_t size = ir::ByteSize(tensor.dtype);
  plan.alignment = size;
  if (inner < 0 || access.strides[inner] == 0) return plan;
  plan.stride = access.strides[inner];
  plan.form = VectorAccess::Form::kApart;
  if (plan.stride != 1) return plan;
  plan.form = VectorAccess::Form::kContiguous;
  const auto fits = [&](int piece) {
    const int64_t bytes = std::min<int64_t>(16, piece * size);
    if (tensor.alignment % bytes != 0) return false;
    for (size_t d = 0; d < access.strides.size(); ++d) {
      if (static_cast<int>(d) != inner && access.strides[d] * size % bytes != 0) return false;
    }
    return true;
  };
  plan.piece = vector;
  while (plan.piece > 1 && !fits(plan.piece)) plan.piece /= 2;
  plan.alignment = std::min<int64_t>(16, plan.piece * size);
  return plan;
}

VectorAccess PlanDense(const Region& region, const Access& access, int vector) {
  VectorAccess plan;
  const Tensor& tensor = region.tensors[access.tensor];
  const int64_t size = ir::ByteSize(tensor.dtype);
  plan.form = VectorAccess::Form::kContiguous;
  plan.stride = 1;
  plan.piece = vector;
  while (plan.piece > 1 && tensor.alignment % std::min<int64_t>(16, plan.piece * size) != 0)
    plan.piece /= 2;
  plan.alignment = std::min<int64_t>(16, plan.piece * size);
  return plan;
}

namespace {

// A power of two that divides an integer value at every point. Looks no deeper than offsets have
// terms.
int64_t Divisor(const Region& region, uint32_t i, int depth = 6) {
  constexpr int64_t kMost = 16;  // elements of the widest vector
  if (depth == 0) return 1;
  const auto of = [](int64_t number) {
    int64_t divisor = 1;
    while (divisor < kMost && number % (2 * divisor) == 0) divisor *= 2;
    return divisor;
  };
  const Instr& instr = region.instrs[i];
  int64_t divisor = 1;
  if (instr.kind == Instr::Kind::kConstant) {
    const int64_t* number = std::get_if<int64_t>(&instr.number);
    divisor = number == nullptr ? 1 : of(*number);
  } else if (instr.kind == Instr::Kind::kIndex) {
    divisor = kMost;
    for (const int64_t stride : instr.access.strides) divisor = std::min(divisor, of(stride));
  } else if (instr.kind == Instr::Kind::kCompute &&
             (instr.op == ir::Op::kAdd || instr.op == ir::Op::kMul)) {
    const int64_t a = Divisor(region, instr.operands[0], depth - 1);
    const int64_t b = Divisor(region, instr.operands[1], depth - 1);
    divisor = instr.op == ir::Op::kAdd ? std::min(a, b) : std::min(a * b, kMost);
  }
  return divisor;
}

bool Varies(const Instr& instr, int inner) { return ((instr.dims >> inner) & 1) != 0; }

// Whether an index counts the elements of a step one by one, from a multiple of `vector` on.
bool CountsElements(const Region& region, uint32_t i, int inner, int vector) {
  const Instr& instr = region.instrs[i];
  if (instr.kind == Instr::Kind::kIndex) {
    bool counts = instr.access.strides[inner] == 1;
    for (size_t d = 0; d < instr.access.strides.size(); ++d)
      counts &= static_cast<int>(d) == inner || instr.access.strides[d] % vector == 0;
    return counts;
  }
  if (instr.kind != Instr::Kind::kCompute) return false;
  if (instr.op == ir::Op::kCast) {
    return ir::IsInteger(instr.dtype) && CountsElements(region, instr.operands[0], inner, vector);
  }
  return instr.op == ir::Op::kAdd && region.instrs[instr.operands[0]].kind == Instr::Kind::kIndex &&
         CountsElements(region, instr.operands[0], inner, vector) &&
         !Varies(region.instrs[instr.operands[1]], inner) &&
         Divisor(region, instr.operands[1]) % vector == 0;
}

// Whether a condition is the same for all elements of a step. No deeper than guards are.
bool IsUniform(const Region& region, uint32_t i, int inner, int vector, int depth = 6) {
  const Instr& instr = region.instrs[i];
  if (!Varies(instr, inner)) return true;
  if (depth == 0 || instr.kind != Instr::Kind::kCompute) return false;
  if (instr.op == ir::Op::kLogicalAnd) {
    return IsUniform(region, instr.operands[0], inner, vector, depth - 1) &&
           IsUniform(region, instr.operands[1], inner, vector, depth - 1);
  }
  return (instr.op == ir::Op::kGe || instr.op == ir::Op::kLt) &&
         CountsElements(region, instr.operands[0], inner, vector) &&
         !Varies(region.instrs[instr.operands[1]], inner) &&
         Divisor(region, instr.operands[1]) % vector == 0;
}

// What is the same for all elements of a step or counts them, at the first one.
std::string FirstText(const Region& region, uint32_t i, int inner, OperandText operand,
                      CoordinateText coordinate, bool wide) {
  const Instr& instr = region.instrs[i];
  if (!Varies(instr, inner)) return operand(i);
  return ComputedText(
      region, instr,
      [&](uint32_t o) { return FirstText(region, o, inner, operand, coordinate, wide); },
      coordinate, wide);
}

bool IsVectorFetch(const Region& region, const Instr& instr, int inner, int vector) {
  return instr.kind == Instr::Kind::kFetch && instr.access.strides[inner] == 1 &&
         !Varies(region.instrs[instr.operands[0]], inner) &&
         (instr.operands.size() == 1 || IsUniform(region, instr.operands[1], inner, vector));
}

bool IsVectorDraw(const Region& region, const Instr& instr, int inner, int vector) {
  return instr.kind == Instr::Kind::kCompute && instr.op == ir::Op::kRandomBits &&
         instr.dtype == ir::DType::kInt && vector % 4 == 0 &&
         CountsElements(region, instr.operands[0], inner, vector) &&
         !Varies(region.instrs[instr.operands[1]], inner) &&
         !Varies(region.instrs[instr.operands[2]], inner);
}

VectorAccess PlanFetch(const Region& region, const Instr& instr, int inner, int vector) {
  VectorAccess plan = PlanAccess(region, instr.access, inner, vector);
  const int64_t size = ir::ByteSize(region.tensors[instr.access.tensor].dtype);
  const int64_t further = Divisor(region, instr.operands[0]);
  while (plan.piece > 1 && further * size % std::min<int64_t>(16, plan.piece * size) != 0)
    plan.piece /= 2;
  plan.alignment = std::min<int64_t>(16, plan.piece * size);
  return plan;
}

}  // namespace

bool GivesVector(const Region& region, const Instr& instr, int inner, int vector) {
  return inner >= 0 && (IsVectorFetch(region, instr, inner, vector) ||
                        IsVectorDraw(region, instr, inner, vector));
}

std::vector<int64_t> NaturalAlignment(const Region& region) {
  std::vector<int64_t> alignment;
  for (const Tensor& tensor : region.tensors) alignment.push_back(ir::ByteSize(tensor.dtype));
  return alignment;
}

LoadPolicy PolicyOf(const Region& region, const Access& access) {
  LoadPolicy policy;
  policy.read_only = !region.tensors[access.tensor].shared;
  for (const schedule::Store& store : region.stores)
    policy.read_only &= store.access.tensor != access.tensor;
  const int64_t size = ir::ByteSize(region.tensors[access.tensor].dtype);
  policy.once = schedule::TouchedBytes(region, access) >= region.Elements() * size;
  return policy;
}

std::string LoadText(const Region& region, const Access& access, const VectorAccess& plan,
                     int vector, absl::string_view offset) {
  const char* type = MemoryType(region.tensors[access.tensor].dtype);
  const std::string address = offset == "0" ? absl::StrCat("p", access.tensor)
                                            : absl::StrCat("p", access.tensor, " + ", offset);
  const LoadPolicy policy = PolicyOf(region, access);
  const char* load = !policy.read_only ? "fd_load"
                     : policy.once && plan.form == VectorAccess::Form::kContiguous
                         ? "fd_load_nc_stream"
                         : "fd_load_nc";
  switch (plan.form) {
    case VectorAccess::Form::kOne:
      return absl::StrCat(load, "<", type, ", 1>(", address, ")");
    case VectorAccess::Form::kApart:
      return absl::StrCat("fd_load_apart<", type, ", ", vector, ">(", address, ", ", plan.stride,
                          ")");
    case VectorAccess::Form::kContiguous:
      break;
  }
  if (plan.piece == vector) return absl::StrCat(load, "<", type, ", ", vector, ">(", address, ")");
  return absl::StrCat(load, "_pieces<", type, ", ", vector, ", ", plan.piece, ">(", address, ")");
}

void WriteVector(const Region& region, uint32_t i, int inner, int vector, OperandText operand,
                 CoordinateText coordinate, bool wide, std::vector<int64_t>& alignment,
                 TextBuilder& out) {
  const Instr& instr = region.instrs[i];
  const char* type = RegisterType(instr.dtype);
  const std::string made = absl::StrCat("const fd_vec<", type, ", ", vector, "> x", i, " = ");
  if (instr.kind == Instr::Kind::kCompute) {
    const std::string first =
        FirstText(region, instr.operands[0], inner, operand, coordinate, wide);
    out.Line(made, "fd_random_vector<", vector, ">(", first, ", ", operand(instr.operands[1]), ", ",
             operand(instr.operands[2]), ");");
    return;
  }
  const VectorAccess plan = PlanFetch(region, instr, inner, vector);
  int64_t& needed = alignment[instr.access.tensor];
  needed = std::max(needed, plan.alignment);
  const std::string offset = absl::StrCat(OffsetText(instr.access.strides, coordinate, wide), " + ",
                                          operand(instr.operands[0]));
  const std::string vector_of = absl::StrCat(
      "fd_vec<", MemoryType(region.tensors[instr.access.tensor].dtype), ", ", vector, ">");
  out.Line(vector_of, " m", i, " = {};");
  std::string condition;
  if (instr.operands.size() == 2) {
    condition = absl::StrCat(
        "if (", FirstText(region, instr.operands[1], inner, operand, coordinate, wide), ") ");
  }
  out.Line(condition, "m", i, " = ", LoadText(region, instr.access, plan, vector, offset), ";");
  out.Line(made, "fd_cast<", type, ">(m", i, ");");
}

std::string StoreText(const Region& region, const Access& access, const VectorAccess& plan,
                      int vector, absl::string_view offset, absl::string_view value) {
  const char* type = MemoryType(region.tensors[access.tensor].dtype);
  const std::string address = offset == "0" ? absl::StrCat("p", access.tensor)
                                            : absl::StrCat("p", access.tensor, " + ", offset);
  const std::string cast = absl::StrCat("fd_cast<", type, ">(", value, ")");
  switch (plan.form) {
    case VectorAccess::Form::kOne:
      return absl::StrCat("p", access.tensor, "[", offset, "] = ", cast, ";");
    case VectorAccess::Form::kApart:
      return absl::StrCat("fd_store_apart(", address, ", ", cast, ", ", plan.stride, ");");
    case VectorAccess::Form::kContiguous:
      break;
  }
  if (plan.piece == vector) return absl::StrCat("fd_store(", address, ", ", cast, ");");
  return absl::StrCat("fd_store_pieces<", type, ", ", vector, ", ", plan.piece, ">(", address, ", ",
                      cast, ");");
}

std::string OffsetText(const schedule::Strides& strides, CoordinateText coordinate, bool wide) {
  std::string text;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : " + ", coordinate(d));
    if (strides[d] != 1) absl::StrAppend(&text, " * ", strides[d], wide ? "ull" : "u");
  }
  return text.empty() ? "0" : text;
}

}  // namespace fusiond::codegen
