#include "compiler/schedule/variants.h"

namespace fusiond::schedule {
namespace {

constexpr Variant kVariants[] = {
    {SchedulerId::kPointwise, "flat", "one dim; its extent is a multiple of the vector"},
    {SchedulerId::kPointwise, "flat_tail", "one dim; the last vector is cut"},
    {SchedulerId::kPointwise, "vector", "several dims; no vector leaves the innermost one"},
    {SchedulerId::kPointwise, "element",
     "several dims; vectors of dense tensors run over row ends"},
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

const Variant* FindVariant(const KernelSchedule& schedule) {
  for (const Variant& variant : kVariants) {
    if (variant.scheduler == schedule.scheduler && variant.name == schedule.variant)
      return &variant;
  }
  return nullptr;
}

}  // namespace fusiond::schedule
