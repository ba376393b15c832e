// What plan_fuzz starts from holds every form of kernel that there is.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/schedule/variants.h"
#include "runtime/base/file.h"
#include "tests/fuzz/plan_text.h"
#include "tests/support/status_matchers.h"

namespace fusiond::compiler {
namespace {

// Named after what they were when they were made; a cost rule that moves a seed to another variant
// of its scheduler does not spoil it. Where one is missing or spoilt: VariantCases() of
// tests/codegen has graphs, and a number in a comment behind one changes its checksum, and so
// device and options.
TEST(PlanCorpusTest, EveryVariantHasASeedThatItsSchedulerTakes) {
  for (const schedule::Variant& variant : schedule::Variants()) {
    const absl::string_view scheduler = schedule::Name(variant.scheduler);
    const std::string path =
        absl::StrCat("tests/fuzz/corpus/plan/", scheduler, "_", variant.name, ".fir");
    ASSERT_OK_AND_ASSIGN(const std::string text, base::ReadFile(path));
    ASSERT_OK_AND_ASSIGN(const PlanResult plan, PlanText(text));
    EXPECT_TRUE(absl::StrContains(plan.skeleton.provenance.schedule, absl::StrCat(scheduler, "/")))
        << path << ": " << plan.skeleton.provenance.schedule;
  }
}

}  // namespace
}  // namespace fusiond::compiler
