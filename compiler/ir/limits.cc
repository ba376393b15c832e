#include "compiler/ir/limits.h"

#include <limits>

#include "absl/strings/str_format.h"
#include "compiler/ir/infer_internal.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/text.h"

namespace fusiond::ir {
namespace {

absl::Status Check(Rule rule, size_t actual, int64_t limit, absl::string_view what) {
  if (actual <= static_cast<uint64_t>(limit)) return absl::OkStatus();
  return RuleError(rule, absl::StrFormat("%d %s, limit %d", actual, what, limit));
}

}  // namespace

absl::Status CheckNodeCount(size_t nodes, const Limits& limits) {
  return Check(Rule::kNodeLimit, nodes, limits.max_nodes, "nodes");
}

absl::Status CheckInterface(size_t inputs_and_outputs, const Limits& limits) {
  return Check(Rule::kInterfaceLimit, inputs_and_outputs, limits.max_inputs_and_outputs,
               "inputs and outputs");
}

absl::Status CheckByteSize(size_t bytes, const Limits& limits) {
  return Check(Rule::kByteLimit, bytes, limits.max_bytes, "bytes");
}

absl::Status CheckElements(Op op, const Type& type, const Limits& limits) {
  int64_t elements = 1;
  for (const int64_t extent : type.shape) {
    if (extent > 1 && __builtin_mul_overflow(elements, extent, &elements)) {
      elements = std::numeric_limits<int64_t>::max();
    }
  }
  if (elements <= limits.max_elements) return absl::OkStatus();
  return OpError(
      Rule::kElementLimit, op,
      absl::StrFormat("%s has %d elements, limit %d", Print(type), elements, limits.max_elements));
}

}  // namespace fusiond::ir
