// KernelText: one kernel's parameters and body, put together to the text that is compiled.
//
// Region tensors are p0, p1, …, runtime scalars s0, s1, …, scratch buffers q0, q1, …; a kernel
// takes only what it names. Everything else in the body is the emitter's.
//
// Thread-safety: thread-compatible.
#ifndef FUSIOND_COMPILER_CODEGEN_KERNEL_TEXT_H_
#define FUSIOND_COMPILER_CODEGEN_KERNEL_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/codegen/kernel.h"
#include "compiler/codegen/text_builder.h"
#include "compiler/schedule/region.h"

namespace fusiond::codegen {

class KernelText {
 public:
  // `entry` without its prefix "fd_".
  KernelText(const schedule::Region& region, absl::string_view entry, int threads);

  // Pointers are restrict unless the tensor is shared, const unless a store of the region names it.
  void TakeTensor(const schedule::Region& region, uint32_t tensor);
  void TakeTensors(const schedule::Region& region);  // all that it names
  // Those of what is computed before the grid ends (schedule/finalise.h).
  void TakeTensorsBefore(const schedule::Region& region);
  void TakeScalars(const schedule::Region& region);
  // `type` as in memory; `written` by this kernel, else only read.
  void TakeScratch(uint32_t index, absl::string_view type, bool written);
  // A u32 or, `wide`, a u64.
  void TakeIndex(absl::string_view name, executable::Formula formula, bool wide);

  TextBuilder& body() { return body_; }
  // `files` are device files (compiler/device) besides those of HelperOf; grid, cluster,
  // smem and PDL are left to the caller.
  Kernel Finish(absl::Span<const absl::string_view> files) &&;

 private:
  void Take(Parameter parameter, std::string text);

  std::vector<absl::string_view> functions_;  // device files of HelperOf
  std::string entry_;
  int threads_;
  std::vector<Parameter> parameters_;
  std::vector<std::string> parameter_texts_;
  std::string offsets_;  // from where buffers begin to where tensors do
  TextBuilder body_;
};

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_KERNEL_TEXT_H_
