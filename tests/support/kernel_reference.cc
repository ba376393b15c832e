#include "tests/support/kernel_reference.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/evaluate.h"

namespace fusiond::testing {

using cpu::HostTensor;

absl::StatusOr<std::vector<HostTensor>> EvaluateForms(const ir::Graph& graph,
                                                      const ir::Graph& canonical,
                                                      const std::vector<HostTensor>& inputs,
                                                      ir::Math math) {
  const bool rearranged = math != ir::Math::kStrict;
  const cpu::EvaluateOptions exact = {
      .double_precision = true, .track_error = true, .rearranged = rearranged, .math = math};
  FUSIOND_ASSIGN_OR_RETURN(std::vector<HostTensor> values, cpu::Evaluate(graph, inputs, exact));
  if (!rearranged) return values;
  FUSIOND_ASSIGN_OR_RETURN(const std::vector<HostTensor> form,
                           cpu::Evaluate(canonical, inputs, exact));
  for (size_t o = 0; o < values.size(); ++o) {
    for (size_t i = 0; i < values[o].error.size(); ++i) values[o].error[i] += form[o].error[i];
  }
  return values;
}

absl::StatusOr<KernelReference> KernelReference::Make(const ir::Graph& graph,
                                                      const ir::Graph& canonical,
                                                      const std::vector<HostTensor>& inputs,
                                                      ir::Math math) {
  FUSIOND_ASSIGN_OR_RETURN(std::vector<HostTensor> values,
                           EvaluateForms(graph, canonical, inputs, math));
  FUSIOND_ASSIGN_OR_RETURN(
      std::vector<HostTensor> form,
      cpu::Evaluate(canonical, inputs,
                    {.double_precision = true, .track_error = true, .math = math}));
  return KernelReference(std::move(values), std::move(form));
}

absl::Status KernelReference::Check(size_t output, const HostTensor& got,
                                    const BoundsOptions& options, BoundsReport& report) const {
  const absl::Status by_form = CompareWithinBounds(got, canonical_[output], options, report);
  if (!by_form.ok()) {
    return absl::Status(by_form.code(),
                        absl::StrCat(by_form.message(), ", of the canonical graph"));
  }
  BoundsReport ignored;
  return CompareWithinBounds(got, graph_[output], options, ignored);
}

}  // namespace fusiond::testing
