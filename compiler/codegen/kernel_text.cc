#include "compiler/codegen/kernel_text.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/names.h"
#include "compiler/device/device_text.h"
#include "compiler/schedule/finalise.h"

namespace fusiond::codegen {

using executable::Formula;
using schedule::Region;

KernelText::KernelText(const Region& region, absl::string_view entry, int threads)
    : entry_(absl::StrCat("fd_", entry)), threads_(threads) {
  for (const schedule::Instr& instr : region.instrs) {
    if (instr.kind != schedule::Instr::Kind::kCompute) continue;
    const Helper helper = HelperOf(instr.op, instr.dtype, region.math);
    if (!helper.file.empty()) functions_.push_back(helper.file);
  }
}

void KernelText::Take(Parameter parameter, std::string text) {
  parameters_.push_back(std::move(parameter));
  parameter_texts_.push_back(std::move(text));
}

void KernelText::TakeTensor(const Region& region, uint32_t tensor) {
  bool written = false;
  for (const schedule::Store& store : region.stores) written |= store.access.tensor == tensor;
  Parameter parameter;
  parameter.kind = Parameter::Kind::kTensor;
  parameter.index = tensor;
  const schedule::Tensor& taken = region.tensors[tensor];
  Take(parameter, absl::StrCat(written ? "" : "const ", MemoryType(taken.dtype),
                               taken.shared ? "* p" : "* __restrict__ p", tensor));
  if (taken.offset != 0) absl::StrAppend(&offsets_, "  p", tensor, " += ", taken.offset, ";\n");
}

void KernelText::TakeTensors(const Region& region) {
  std::vector<bool> named(region.tensors.size(), false);
  for (const schedule::Instr& instr : region.instrs)
    if (schedule::ReadsMemory(instr)) named[instr.access.tensor] = true;
  for (const schedule::Store& store : region.stores) named[store.access.tensor] = true;
  for (uint32_t t = 0; t < named.size(); ++t)
    if (named[t]) TakeTensor(region, t);
}

void KernelText::TakeTensorsBefore(const Region& region) {
  const std::vector<bool> computed = schedule::ComputedBefore(region);
  std::vector<bool> named(region.tensors.size(), false);
  for (size_t i = 0; i < region.instrs.size(); ++i) {
    if (computed[i] && schedule::ReadsMemory(region.instrs[i]))
      named[region.instrs[i].access.tensor] = true;
  }
  for (const schedule::Store& store : region.stores)
    if (!region.instrs[store.value].late) named[store.access.tensor] = true;
  for (uint32_t t = 0; t < named.size(); ++t)
    if (named[t]) TakeTensor(region, t);
}

void KernelText::TakeScalars(const Region& region) {
  for (const schedule::Instr& instr : region.instrs) {
    if (instr.kind != schedule::Instr::Kind::kScalar) continue;
    Parameter parameter;
    parameter.kind = Parameter::Kind::kScalar;
    parameter.index = instr.index;
    Take(parameter, absl::StrCat(RegisterType(instr.dtype), " s", instr.index));
  }
}

void KernelText::TakeScratch(uint32_t index, absl::string_view type, bool written) {
  Parameter parameter;
  parameter.kind = Parameter::Kind::kScratch;
  parameter.index = index;
  Take(parameter, absl::StrCat(written ? "" : "const ", type, "* __restrict__ q", index));
}

void KernelText::TakeIndex(absl::string_view name, Formula formula, bool wide) {
  Parameter parameter;
  parameter.kind = wide ? Parameter::Kind::kInt64 : Parameter::Kind::kInt32;
  parameter.formula = std::move(formula);
  Take(parameter, absl::StrCat(wide ? "u64 " : "u32 ", name));
}

Kernel KernelText::Finish(absl::Span<const absl::string_view> given) && {
  std::vector<absl::string_view> files(given.begin(), given.end());
  files.insert(files.end(), functions_.begin(), functions_.end());
  Kernel kernel;
  kernel.entry = entry_;
  kernel.threads = threads_;
  kernel.parameters = std::move(parameters_);
  kernel.text =
      absl::StrCat(device::Prelude(files), "\nextern \"C\" __global__ void __launch_bounds__(",
                   threads_, ")\n", entry_, "(", absl::StrJoin(parameter_texts_, ", "), ") {\n",
                   offsets_, std::move(body_).Take(), "}\n");
  return kernel;
}

}  // namespace fusiond::codegen
