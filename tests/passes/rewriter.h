// Rewriter: spells a graph another way. Each kind of rewrite is an identity of algebra (not of
// rounding) applied at one place that a generator picks, so that stacking them gives definitions
// that different people might write of the same computation.
//
// Shares no code with compiler/passes. Thread-compatible; equal seeds give equal graphs.
#ifndef FUSIOND_TESTS_PASSES_REWRITER_H_
#define FUSIOND_TESTS_PASSES_REWRITER_H_

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"

namespace fusiond::testing {

enum class Rewrite {
  kSwapOperands,      // a·b → b·a
  kPowMul,            // x·x ↔ x², 1/√x ↔ x^-½, x → x¹
  kDivReciprocal,     // a/b ↔ a·(1/b), a·b → a/(1/b)
  kBroadcast,         // f(broadcast x) ↔ broadcast f(x); implicit ↔ written out
  kFactorSum,         // Σc·x ↔ c·Σx, r·(a ± b) ↔ r·a ± r·b
  kDuplicateCast,     // another cast of the same value
  kCastRoundTrip,     // through a wider type and back; dropped again
  kNegPlacement,      // a - b → a + -b, -(b - a); a·b → -(-a·b)
  kDoubleNegation,    // x → -(-x)
  kDoubling,          // 2x ↔ x + x, x → ½(x + x)
  kMean,              // s/n ↔ s·(1/n), var_mean → sums
  kReassociate,       // (a∘b)∘c ↔ a∘(b∘c)
  kShuffleArguments,  // another order of inputs
};

inline constexpr Rewrite kAllRewrites[] = {
    Rewrite::kSwapOperands,    Rewrite::kPowMul,       Rewrite::kDivReciprocal,
    Rewrite::kBroadcast,       Rewrite::kFactorSum,    Rewrite::kDuplicateCast,
    Rewrite::kCastRoundTrip,   Rewrite::kNegPlacement, Rewrite::kDoubleNegation,
    Rewrite::kDoubling,        Rewrite::kMean,         Rewrite::kReassociate,
    Rewrite::kShuffleArguments};

absl::string_view RewriteName(Rewrite kind);

class Rewriter {
 public:
  Rewriter(ir::Graph graph, uint64_t seed);

  // Applies a rewrite of this kind at a random place. False: there is none.
  bool Apply(Rewrite kind);

  const ir::Graph& graph() const { return graph_; }
  // Input i of the given graph is input inputs()[i] of graph().
  const std::vector<size_t>& inputs() const { return inputs_; }

 private:
  ir::Graph graph_;
  std::vector<size_t> inputs_;
  std::mt19937_64 random_;
};

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_PASSES_REWRITER_H_
