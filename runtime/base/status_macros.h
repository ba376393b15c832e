// Early return on a non-OK absl::Status or absl::StatusOr.
//
//   FUSIOND_RETURN_IF_ERROR(Check(graph));
//   FUSIOND_ASSIGN_OR_RETURN(Graph graph, Parse(text));
//
// Both evaluate their expression once. The packaged Abseil (20220623) has no such macros; these
// keep the shape of the later Abseil ones so that they can be dropped one day.
#ifndef FUSIOND_RUNTIME_BASE_STATUS_MACROS_H_
#define FUSIOND_RUNTIME_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define FUSIOND_RETURN_IF_ERROR(expr)                                                      \
  do {                                                                                     \
    if (absl::Status fusiond_status = (expr); !fusiond_status.ok()) return fusiond_status; \
  } while (false)

#define FUSIOND_CONCAT_INNER(a, b) a##b
#define FUSIOND_CONCAT(a, b) FUSIOND_CONCAT_INNER(a, b)
#define FUSIOND_ASSIGN_OR_RETURN(lhs, expr) \
  FUSIOND_ASSIGN_OR_RETURN_INNER(FUSIOND_CONCAT(fusiond_statusor_, __LINE__), lhs, expr)
#define FUSIOND_ASSIGN_OR_RETURN_INNER(var, lhs, expr) \
  auto var = (expr);                                   \
  if (!var.ok()) return std::move(var).status();       \
  lhs = *std::move(var)

#endif  // FUSIOND_RUNTIME_BASE_STATUS_MACROS_H_
