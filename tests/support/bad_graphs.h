// Graphs that must be refused, each in both forms that a client may send it in: what the importer,
// the text parser and the daemon are held to. A row states the rule and the words that carry limit
// and actual value.
#ifndef FUSIOND_TESTS_SUPPORT_BAD_GRAPHS_H_
#define FUSIOND_TESTS_SUPPORT_BAD_GRAPHS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/rules.h"

namespace fusiond::testing {

struct BadGraph {
  const char* name;
  ir::Rule rule;
  const char* words;
  const char* fir;    // behind "fir 1"; nullptr: text cannot say it
  const char* proto;  // fusiond.v1.Graph behind "version: 1"; nullptr: a message cannot say it
  const char* more_words =
      "";  // the other value, where a name that the form decides stands between
};

// Small, so that rows can pass them.
inline constexpr ir::Limits kBadGraphLimits = {
    .max_nodes = 6, .max_bytes = 2000, .max_inputs_and_outputs = 4, .max_elements = 1 << 20};

absl::Span<const BadGraph> BadGraphs();
// The code that a rule's violations have.
absl::StatusCode CodeOf(ir::Rule rule);

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SUPPORT_BAD_GRAPHS_H_
