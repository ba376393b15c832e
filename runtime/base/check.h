// FUSIOND_CHECK(condition): ends the process when one of our own invariants is broken.
//
// Never reachable from request, disk or shared-memory bytes: those get an absl::Status. Prints
// file, line and the condition to stderr, then aborts. Active in every build type.
#ifndef FUSIOND_RUNTIME_BASE_CHECK_H_
#define FUSIOND_RUNTIME_BASE_CHECK_H_

namespace fusiond::base {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace fusiond::base

#define FUSIOND_CHECK(condition)      \
  ((condition) ? static_cast<void>(0) \
               : ::fusiond::base::CheckFailed(__FILE__, __LINE__, #condition))

#endif  // FUSIOND_RUNTIME_BASE_CHECK_H_
