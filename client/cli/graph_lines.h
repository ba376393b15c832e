// Printed graphs held against each other whatever numbers they give to values.
//
// Thread-safety: pure functions. Cost: linear in the text.
#ifndef FUSIOND_CLIENT_CLI_GRAPH_LINES_H_
#define FUSIOND_CLIENT_CLI_GRAPH_LINES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace fusiond::cli {

// Lines are those of ir::Print without "fir 1"; others are taken as they are.

// One key a line: its op, attributes and type, and those of its operands, in no order where that
// means nothing. Equal keys, probably the same step of two computations.
std::vector<std::string> LocalKeys(absl::Span<const std::string> lines);

// Where b's inputs are among a's, if the two differ in nothing but the order of inputs and outputs
// and the numbers of values: entry i is the place in b of a's input i. Found by colour refinement,
// so that what it cannot tell apart (the two inputs of one sum) stands in any order.
std::optional<std::vector<size_t>> SameButForOrder(absl::Span<const std::string> a,
                                                   absl::Span<const std::string> b);

}  // namespace fusiond::cli

#endif  // FUSIOND_CLIENT_CLI_GRAPH_LINES_H_
