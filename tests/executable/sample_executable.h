// A small executable that uses every kind of step, argument, guard and formula.
#ifndef FUSIOND_TESTS_EXECUTABLE_SAMPLE_EXECUTABLE_H_
#define FUSIOND_TESTS_EXECUTABLE_SAMPLE_EXECUTABLE_H_

#include "runtime/executable/executable.h"

namespace fusiond::executable {

inline Executable SampleExecutable() {
  using Term = FormulaTerm::Kind;
  Executable e;
  e.arch = "sm_90a";
  e.profile = "h200";
  e.inputs = {{DType::kBFloat16, false, MemorySpace::kDevice, {-1, -1}, {-1, 1}},
              {DType::kDouble, true, MemorySpace::kDevice, {}, {}}};
  OutputSpec fresh;
  fresh.dtype = DType::kFloat;
  fresh.shape = {Formula::Extent(0, 0), Formula::Extent(0, 1)};
  fresh.strides = {Formula::Extent(0, 1), Formula::Constant(1)};
  OutputSpec in_place = fresh;
  in_place.dtype = DType::kBFloat16;
  in_place.alias_input = 0;
  e.outputs = {fresh, in_place};
  e.guards = {
      {.kind = Guard::Kind::kExtentDivisible, .input = 0, .dim = 1, .output = {}, .value = 8},
      {.kind = Guard::Kind::kStrideEquals, .input = 0, .dim = 1, .output = {}, .value = 1},
      {.kind = Guard::Kind::kAligned, .input = 0, .dim = 0, .output = {}, .value = 16},
      {.kind = Guard::Kind::kAligned, .input = 0, .dim = 0, .output = 0, .value = 16},
      {.kind = Guard::Kind::kNoOverlap, .input = 0, .dim = 0, .output = 0, .value = 0}};
  e.images = {{base::Sha256("key"), "not a cubin"}};
  MemsetStep memset;
  memset.offset = Formula::Constant(0);
  memset.bytes = Formula::Constant(1024);
  KernelStep kernel;
  kernel.entry = "fd_k0_pointwise";
  kernel.grid[0] = Formula::Combine(Term::kMin, Formula::SmCount(), Formula::Extent(0, 0));
  kernel.grid[1] = kernel.grid[2] = Formula::Constant(1);
  kernel.block[0] = Formula::Constant(256);
  kernel.block[1] = kernel.block[2] = Formula::Constant(1);
  for (Formula& extent : kernel.cluster) extent = Formula::Constant(1);
  kernel.pdl = true;
  kernel.arguments = {
      {.kind = KernelArgument::Kind::kInput, .index = 0, .dtype = DType::kBFloat16, .formula = {}},
      {.kind = KernelArgument::Kind::kOutput, .index = 0, .dtype = DType::kFloat, .formula = {}},
      {.kind = KernelArgument::Kind::kWorkspace,
       .index = 0,
       .dtype = DType::kFloat,
       .formula = Formula::Constant(256)},
      {.kind = KernelArgument::Kind::kScalar, .index = 1, .dtype = DType::kFloat, .formula = {}},
      {.kind = KernelArgument::Kind::kInt32,
       .index = 0,
       .dtype = DType::kInt32,
       .formula = Formula::Extent(0, 0)}};
  HostEvaluateStep host;
  host.graph = "bytes";
  e.steps = {memset, kernel, host};
  e.workspace_bytes = Formula::Constant(4096);
  e.provenance = {"0123", "13.0", "row_column{}"};
  return e;
}

}  // namespace fusiond::executable

#endif  // FUSIOND_TESTS_EXECUTABLE_SAMPLE_EXECUTABLE_H_
