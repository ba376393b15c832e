#include "runtime/cpu/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/specialise.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/status_numbers.h"
#include "runtime/cpu/node_evaluator.h"

namespace fusiond::cpu {
namespace {

using ir::Graph;
using ir::ValueId;

// Beyond any memory; its bytes still fit a 64-bit number.
constexpr int64_t kManyElements = int64_t{1} << 58;

// Binds the graph to the inputs' shapes and checks dtypes.
absl::StatusOr<Graph> Bind(const Graph& graph, absl::Span<const HostTensor> inputs) {
  if (inputs.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("inputs: expected ", graph.inputs().size(), ", given ", inputs.size()));
  }
  std::vector<ir::Dims> extents;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Type& expected = graph.type(graph.inputs()[i]);
    if (inputs[i].type.dtype != expected.dtype || inputs[i].type.scalar != expected.scalar) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", i, ": expected ", ir::DTypeName(expected.dtype),
          expected.scalar ? " scalar" : " tensor", ", given ", ir::DTypeName(inputs[i].type.dtype),
          inputs[i].type.scalar ? " scalar" : " tensor"));
    }
    extents.push_back(inputs[i].type.shape);
  }
  return ir::Specialise(graph, extents);
}

int64_t Bytes(const HostTensor& tensor) {
  return static_cast<int64_t>((tensor.size() + tensor.error.size()) * sizeof(double));
}

void MarkNotFinite(HostTensor& tensor) {
  for (size_t i = 0; i < tensor.floats.size(); ++i) {
    if (!std::isfinite(tensor.floats[i])) tensor.error[i] = std::numeric_limits<double>::infinity();
  }
}

// Beyond the range of its type a value is infinite for a kernel, unless it never rounds to that
// type: undecided.
void MarkOutOfRange(HostTensor& tensor) {
  double largest = 0;
  switch (tensor.type.dtype) {
    case ir::DType::kHalf:
      largest = 65504;
      break;
    case ir::DType::kBFloat16:
      largest = 0x1.FEp127;
      break;
    case ir::DType::kFloat:
      largest = std::numeric_limits<float>::max();
      break;
    default:
      return;
  }
  for (size_t i = 0; i < tensor.floats.size(); ++i) {
    const double size = std::fabs(tensor.floats[i]);
    if (size + tensor.error[i] > largest && std::isfinite(size))
      tensor.error[i] = std::numeric_limits<double>::infinity();
  }
}

class Evaluator {
 public:
  Evaluator(const Graph& graph, const EvaluateOptions& options)
      : graph_(graph), options_(options), values_(graph.value_count()), uses_(graph.UseCounts()) {}

  absl::StatusOr<std::vector<HostTensor>> Run(std::vector<HostTensor> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (options_.track_error) inputs[i].error.assign(inputs[i].size(), 0.0);
      if (options_.rearranged) MarkNotFinite(inputs[i]);
      FUSIOND_RETURN_IF_ERROR(Keep(graph_.inputs()[i], std::move(inputs[i])));
    }
    for (ir::NodeId id : graph_.TopologicalOrder()) {
      const ir::Node& node = graph_.node(id);
      if (node.op == ir::Op::kInput) continue;
      if (options_.cancelled && options_.cancelled())
        return absl::CancelledError("evaluation cancelled");
      FUSIOND_RETURN_IF_ERROR(EvaluateNode(node));
    }
    std::vector<HostTensor> outputs;
    for (const ir::Output& output : graph_.outputs()) outputs.push_back(values_[output.value]);
    return outputs;
  }

 private:
  absl::Status EvaluateNode(const ir::Node& node) {
    absl::InlinedVector<const HostTensor*, 4> operands;
    for (ValueId operand : node.operands) operands.push_back(&values_[operand]);
    absl::InlinedVector<HostTensor, 1> results;
    for (ValueId result : node.results) {
      results.emplace_back();
      results.back().type = graph_.type(result);
    }
    FUSIOND_RETURN_IF_ERROR(CheckBudget(results));
    FUSIOND_RETURN_IF_ERROR(NodeEvaluator(node, operands, options_).Run(absl::MakeSpan(results)));
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (options_.track_error) MarkOutOfRange(results[i]);
      if (options_.rearranged) MarkNotFinite(results[i]);
      FUSIOND_RETURN_IF_ERROR(Keep(node.results[i], std::move(results[i])));
    }
    for (ValueId operand : node.operands) Release(operand);
    return absl::OkStatus();
  }

  absl::Status CheckBudget(absl::Span<const HostTensor> results) const {
    for (const HostTensor& result : results) {
      const std::optional<int64_t> count = ir::ElementCount(result.type);
      const int64_t per_element = options_.track_error ? 16 : 8;
      const int64_t free = std::max<int64_t>(options_.max_bytes - live_bytes_, 0);
      if (count && *count <= free / per_element) continue;
      const auto elements =
          static_cast<uint64_t>(std::min(count.value_or(kManyElements), kManyElements));
      return base::WithMemoryNeed(
          absl::ResourceExhaustedError("evaluation: too many bytes of live values"),
          {elements * static_cast<uint64_t>(per_element), static_cast<uint64_t>(options_.max_bytes),
           static_cast<uint64_t>(free)});
    }
    return absl::OkStatus();
  }

  absl::Status Keep(ValueId id, HostTensor tensor) {
    if (uses_[id] == 0) return absl::OkStatus();
    live_bytes_ += Bytes(tensor);
    values_[id] = std::move(tensor);
    return absl::OkStatus();
  }

  void Release(ValueId id) {
    if (--uses_[id] != 0) return;  // outputs hold a use of their own
    live_bytes_ -= Bytes(values_[id]);
    values_[id] = HostTensor();
  }

  const Graph& graph_;
  const EvaluateOptions& options_;
  std::vector<HostTensor> values_;
  std::vector<uint32_t> uses_;
  int64_t live_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<HostTensor>> Evaluate(const Graph& graph, std::vector<HostTensor> inputs,
                                                 const EvaluateOptions& options) {
  if (options.track_error && !options.double_precision) {
    return absl::InvalidArgumentError("track_error needs double_precision");
  }
  if (options.rearranged && !options.track_error) {
    return absl::InvalidArgumentError("rearranged needs track_error");
  }
  FUSIOND_ASSIGN_OR_RETURN(Graph bound, Bind(graph, inputs));
  return Evaluator(bound, options).Run(std::move(inputs));
}

double UnitRoundoff(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kBFloat16:
      return 0x1p-8;
    case ir::DType::kHalf:
      return 0x1p-11;
    case ir::DType::kFloat:
      return 0x1p-24;
    case ir::DType::kDouble:
      return 0x1p-53;
    default:
      return 0;
  }
}

double RoundingError(ir::DType dtype, double value) {
  if (std::isnan(value)) return 0;
  const double smallest_normal = dtype == ir::DType::kHalf     ? 0x1p-14
                                 : dtype == ir::DType::kDouble ? 0x1p-1022
                                                               : 0x1p-126;
  return UnitRoundoff(dtype) * std::max(std::fabs(value), smallest_normal);
}

}  // namespace fusiond::cpu
