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

std::string Compute(const Instr& instr, OperandText operand) {
  if (instr.op == ir::Op::kCast) {
    const std::string value = operand(instr.operands[0]);
    if (ir::ComputeType(instr.rounding) == instr.rounding)
      return absl::StrCat("fd_cast<", RegisterType(instr.dtype), ">(", value, ")");
    return absl::StrCat("fd_cast<f32>(fd_cast<", MemoryType(instr.rounding), ">(", value, "))");
  }
  std::string text = absl::StrCat("fd_", ir::Info(instr.op).name, "(");
  for (size_t i = 0; i < instr.operands.size(); ++i)
    absl::StrAppend(&text, i > 0 ? ", " : "", operand(instr.operands[i]));
  return absl::StrCat(text, ")");
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

std::string OffsetText(const schedule::Strides& strides,
                       absl::FunctionRef<std::string(size_t dim)> coordinate, bool wide) {
  std::string text;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : " + ", coordinate(d));
    if (strides[d] != 1) absl::StrAppend(&text, " * ", strides[d], wide ? "ull" : "u");
  }
  return text.empty() ? "0" : text;
}

}  // namespace fusiond::codegen
