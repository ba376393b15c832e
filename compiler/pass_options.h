// What the options of a request mean to the canonicalisation passes.
#ifndef FUSIOND_COMPILER_PASS_OPTIONS_H_
#define FUSIOND_COMPILER_PASS_OPTIONS_H_

#include "compiler/options.h"
#include "compiler/passes/pass.h"

namespace fusiond::compiler {

inline passes::PassOptions PassOptions(const Options& options) {
  passes::PassOptions result;
  result.math = options.math;
  result.excess_precision = options.ExcessPrecision();
  return result;
}

}  // namespace fusiond::compiler

#endif  // FUSIOND_COMPILER_PASS_OPTIONS_H_
