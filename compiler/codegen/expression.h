// Expressions and memory accesses in generated text.
//
// Thread-safety: pure functions.
#ifndef FUSIOND_COMPILER_CODEGEN_EXPRESSION_H_
#define FUSIOND_COMPILER_CODEGEN_EXPRESSION_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "compiler/codegen/text_builder.h"
#include "compiler/schedule/region.h"

namespace fusiond::codegen {

using OperandText = absl::FunctionRef<std::string(uint32_t instr)>;
using CoordinateText = absl::FunctionRef<std::string(size_t dim)>;

// Of an instr that IsComputed: "fd_mul(v1, x2[e])"; `coordinate` gives the place along a dim where
// that varies.
std::string ComputedText(const schedule::Region& region, const schedule::Instr& instr,
                         OperandText operand, CoordinateText coordinate, bool wide);
// The operator of a reduction in compiler/device/reduce.cuh: "fd_sum".
const char* Reducer(ir::Op op);
// The state of an online reduction in compiler/device/online.cuh: "fd_welford".
const char* OnlineState(ir::Op op);

// How the `vector` elements of a step along the innermost dim lie in memory.
struct VectorAccess {
  enum class Form : uint8_t {
    kOne,         // the same element for all of them
    kContiguous,  // side by side, readable in pieces of `piece`
    kApart,       // `stride` elements apart
  };
  Form form = Form::kOne;
  int piece = 1;
  int64_t stride = 0;
  int64_t alignment = 1;  // bytes, of the tensor's address, that this form relies on
};

// Requires: steps begin at multiples of `vector` along dim `inner` (an index into region.dims).
VectorAccess PlanAccess(const schedule::Region& region, const schedule::Access& access, int inner,
                        int vector);
// For a step that begins at a multiple of `vector` of the flattened space, when the access is
// dense.
VectorAccess PlanDense(const schedule::Region& region, const schedule::Access& access, int vector);

// Whether an instr gives the elements of a step along dim `inner` at once: a fetch of what lies
// side by side, at one offset, under a guard that is one for all of them; or random bits of whole
// blocks. Requires: as PlanAccess.
bool GivesVector(const schedule::Region& region, const schedule::Instr& instr, int inner,
                 int vector);

// By tensor: the size of its elements.
std::vector<int64_t> NaturalAlignment(const schedule::Region& region);

// Whether a load may use the read-only path, and whether its bytes are read once.
struct LoadPolicy {
  bool read_only = true;
  bool once = true;
};
LoadPolicy PolicyOf(const schedule::Region& region, const schedule::Access& access);

// "fd_load_nc_stream<bf16, 8>(p0 + i)", for any form but kOne a vector of `vector` elements.
std::string LoadText(const schedule::Region& region, const schedule::Access& access,
                     const VectorAccess& plan, int vector, absl::string_view offset);
// "fd_store(p1 + i, fd_cast<bf16>(o0));"
std::string StoreText(const schedule::Region& region, const schedule::Access& access,
                      const VectorAccess& plan, int vector, absl::string_view offset,
                      absl::string_view value);

// Of an instr that GivesVector: writes "x<instr>", its vector in registers, and raises the
// alignment that a tensor's address needs. `coordinate`: of the step's first element.
void WriteVector(const schedule::Region& region, uint32_t instr, int inner, int vector,
                 OperandText operand, CoordinateText coordinate, bool wide,
                 std::vector<int64_t>& alignment, TextBuilder& out);

// "c0 * 8192 + c1", from the names of coordinates; "0" when nothing varies. `wide`: 64-bit.
std::string OffsetText(const schedule::Strides& strides, CoordinateText coordinate, bool wide);

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_EXPRESSION_H_
