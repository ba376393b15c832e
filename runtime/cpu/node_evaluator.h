// One node on concrete tensors; the body of Evaluate().
#ifndef FUSIOND_RUNTIME_CPU_NODE_EVALUATOR_H_
#define FUSIOND_RUNTIME_CPU_NODE_EVALUATOR_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"
#include "runtime/cpu/evaluate.h"
#include "runtime/cpu/host_tensor.h"

namespace fusiond::cpu {

// Whether a kernel may find another integer of type `to` in an element that has an error bound.
bool IntegerMayDiffer(const HostTensor& tensor, int64_t at, ir::DType to);

class NodeEvaluator {
 public:
  NodeEvaluator(const ir::Node& node, absl::Span<const HostTensor* const> operands,
                const EvaluateOptions& options)
      : node_(node), operands_(operands), options_(options) {}

  // results: one a result, `type` set, elements empty. CANCELLED: within the node.
  absl::Status Run(absl::Span<HostTensor> results);

 private:
  absl::Status Compute(absl::Span<HostTensor> results) const;
  void Constant(HostTensor& result) const;
  absl::Status Fill(const HostTensor& value, HostTensor& result) const;  // one scalar everywhere
  absl::Status Iota(HostTensor& result) const;
  absl::Status Cast(HostTensor& result) const;
  absl::Status Pointwise(HostTensor& result) const;
  absl::Status Reduce(absl::Span<HostTensor> results) const;
  absl::Status Moments(absl::Span<HostTensor> results) const;
  absl::Status Move(HostTensor& result) const;  // shape ops
  absl::Status Map(HostTensor& result) const;   // maps
  absl::Status Triu(HostTensor& result) const;
  absl::Status Pad(HostTensor& result) const;
  absl::Status Cat(HostTensor& result) const;
  absl::Status TakeByIndex(HostTensor& result) const;  // index_select, gather, take_along_axis
  double Rounded(ir::DType dtype, double value) const {
    return options_.double_precision ? value : RoundTo(dtype, value);
  }

  const ir::Node& node_;
  const absl::Span<const HostTensor* const> operands_;
  const EvaluateOptions& options_;
};

}  // namespace fusiond::cpu

#endif  // FUSIOND_RUNTIME_CPU_NODE_EVALUATOR_H_
