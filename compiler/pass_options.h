// What the options of a request mean to the canonicalisation passes.
#ifndef FUSIOND_COMPILER_PASS_OPTIONS_H_
#define FUSIOND_COMPILER_PASS_OPTIONS_H_

#include "compiler/options.h"
#include "compiler/passes/pass.h"

namespace fusiond::compiler {

inline passes::PassOptions PassOptions(const Options& options) {
  passes::PassOptions result;
  switch (options.math) {
    case Math::kStrict:
      result.math = passes::Math::kStrict;
      break;
    case Math::kDefault:
      result.math = passes::Math::kDefault;
      break;
    case Math::kFast:
      result.math = passes::Math::kFast;
      break;
  }
  result.excess_precision = options.ExcessPrecision();
  return result;
}

}  // namespace fusiond::compiler

#endif  // FUSIOND_COMPILER_PASS_OPTIONS_H_
