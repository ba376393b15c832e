// One graph for each row of the table of variants, small enough to emulate.
#ifndef FUSIOND_TESTS_CODEGEN_VARIANT_CASES_H_
#define FUSIOND_TESTS_CODEGEN_VARIANT_CASES_H_

#include <ostream>
#include <string>
#include <vector>

#include "compiler/schedule/kernel_schedule.h"

namespace fusiond::testing {

struct VariantCase {
  schedule::SchedulerId scheduler;
  std::string variant;
  std::string graph;  // .fir text, static extents
  std::vector<std::string> archs = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"};
};

inline void PrintTo(const VariantCase& c, std::ostream* out) {
  *out << schedule::Name(c.scheduler) << "_" << c.variant;
}

std::vector<VariantCase> VariantCases();

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_CODEGEN_VARIANT_CASES_H_
