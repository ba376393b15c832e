// KernelReference: what the outputs of a graph's kernels are held against.
//
// Twice. Kernels compute the canonical graph, op by op: they are within its bounds. And its values
// are those of the graph that was asked for: within what rearranging may change, if it may
// (EvaluateOptions::rearranged has the derivation); in strict within the graph's own bounds.
//
// Thread-safety: immutable.
#ifndef FUSIOND_TESTS_SUPPORT_KERNEL_REFERENCE_H_
#define FUSIOND_TESTS_SUPPORT_KERNEL_REFERENCE_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/math.h"
#include "runtime/cpu/host_tensor.h"
#include "tests/support/within_bounds.h"

namespace fusiond::testing {

// The values of `graph` in double, one tensor an output, with bounds for `canonical`, which the
// compiler made of it, or for a kernel of that.
absl::StatusOr<std::vector<cpu::HostTensor>> EvaluateForms(
    const ir::Graph& graph, const ir::Graph& canonical, const std::vector<cpu::HostTensor>& inputs,
    ir::Math math);

class KernelReference {
 public:
  static absl::StatusOr<KernelReference> Make(const ir::Graph& graph, const ir::Graph& canonical,
                                              const std::vector<cpu::HostTensor>& inputs,
                                              ir::Math math);

  const ir::Type& type(size_t output) const { return graph_[output].type; }
  // Adds to `report` what the canonical graph decides. ABORTED names the first wrong element, its
  // value, the reference, the bound, and which graph's they are.
  absl::Status Check(size_t output, const cpu::HostTensor& got, const BoundsOptions& options,
                     BoundsReport& report) const;

 private:
  KernelReference(std::vector<cpu::HostTensor> graph, std::vector<cpu::HostTensor> canonical)
      : graph_(std::move(graph)), canonical_(std::move(canonical)) {}

  std::vector<cpu::HostTensor> graph_;
  std::vector<cpu::HostTensor> canonical_;
};

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SUPPORT_KERNEL_REFERENCE_H_
