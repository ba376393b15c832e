// The text form of a graph (.fir): what people read in dumps and golden files, and what
// command-line tools take.
//
//   fir 1
//   %0 = input : f32[2048,8192]{8192,1}
//   %1 = input {contiguity=[f,b]} : f32[-1,1]{?,1}
//   %2 = constant {value=3.0} : f64
//   %3 = mul %0, %2 : f32[2048,8192]{8192,1}
//   %4, %5 = var_mean %3 {dims=[1], correction=0} : f32[2048]{1}, f32[2048]{1}
//   output %5
//   output %3 alias %0
//
// One statement a line; `#` begins a comment. Printed text has every type; a file may leave out the
// strides of any type, and the type of any node but an input; what it does say is checked.
// Attributes equal to their default are left out. Print is deterministic: it depends on nothing but
// the graph; Print(Parse(Print(g))) == Print(g). Names given by a file (%x) may be any word;
// printing numbers values in topological order.
#ifndef FUSIOND_COMPILER_IR_TEXT_H_
#define FUSIOND_COMPILER_IR_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/limits.h"

namespace fusiond::ir {

inline constexpr int kTextVersion = 1;

std::string Print(const Graph& graph);
// "bf16[2048,8192]{8192,1}", "f64" for a scalar, "f32[]{}" for rank 0.
std::string Print(const Type& type);
// INVALID_ARGUMENT "line:column: …" for malformed text and for every rule a node breaks;
// RESOURCE_EXHAUSTED names the limit and the actual value. `names`: what the file calls the values.
absl::StatusOr<Graph> Parse(absl::string_view text, const Limits& limits = {},
                            ValueNames* names = nullptr);

// Shapes of the graph's inputs, in order, as people write them on command lines:
// "2048x8192,8192,-,4". "-" keeps what the graph says, which is all there is to say of a scalar or
// a tensor of rank 0; so does nothing between commas or behind the last entry. INVALID_ARGUMENT
// names the input whose entry is malformed, or missing though the graph leaves an extent open.
absl::StatusOr<std::vector<Dims>> ParseExtents(absl::string_view text, const Graph& graph);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_TEXT_H_
