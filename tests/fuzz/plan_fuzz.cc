// Any bytes as .fir text, through the whole compiler as far as CUDA text: a graph that the parser
// accepts is planned or refused for a reason that names it, and what is planned is a valid
// executable.
#include <cstddef>
#include <cstdint>

#include "compiler/ir/text.h"
#include "runtime/base/check.h"
#include "runtime/executable/serialise.h"
#include "tests/fuzz/plan_text.h"

namespace fusiond::compiler {
namespace {

void CheckPlan(absl::string_view text) {
  const absl::StatusOr<PlanResult> plan = PlanText(text);
  if (!plan.ok()) {
    FUSIOND_CHECK(absl::IsInvalidArgument(plan.status()) || absl::IsUnimplemented(plan.status()) ||
                  absl::IsResourceExhausted(plan.status()));
    return;
  }
  FUSIOND_CHECK(executable::Deserialise(executable::Serialise(plan->skeleton)).ok());
  const absl::StatusOr<ir::Graph> canonical = ir::Parse(plan->canonical_ir);
  FUSIOND_CHECK(canonical.ok());
  FUSIOND_CHECK(ir::Print(*canonical) == plan->canonical_ir);
}

}  // namespace
}  // namespace fusiond::compiler

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fusiond::compiler::CheckPlan({reinterpret_cast<const char*>(data), size});
  return 0;
}
