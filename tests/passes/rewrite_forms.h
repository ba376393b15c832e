// The forms that Rewriter applies: each an identity of algebra at one node.
//
// Shares no code with compiler/passes. Thread-safety: pure functions on the Site's graphs.
#ifndef FUSIOND_TESTS_PASSES_REWRITE_FORMS_H_
#define FUSIOND_TESTS_PASSES_REWRITE_FORMS_H_

#include <initializer_list>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "compiler/ir/graph.h"
#include "runtime/base/check.h"
#include "tests/passes/rewriter.h"

namespace fusiond::testing {

// A node of the old graph while the new one is made: what stands before it is made already.
class Site {
 public:
  Site(const ir::Graph& from, const ir::Node& node, ir::Graph& to,
       const std::vector<ir::ValueId>& renamed)
      : from_(from), node_(node), to_(to), renamed_(renamed) {}

  const ir::Node& node() const { return node_; }
  const ir::Type& type() const { return from_.type(node_.results[0]); }
  const ir::Node& producer(size_t operand) const { return from_.producer(node_.operands[operand]); }
  const ir::Type& type(size_t operand) const { return from_.type(node_.operands[operand]); }

  const ir::Type& OldType(ir::ValueId old) const { return from_.type(old); }
  ir::ValueId Now(ir::ValueId old) const { return renamed_[old]; }
  ir::ValueId Operand(size_t i) const { return Now(node_.operands[i]); }
  ir::ValueId Constant(double value) { return to_.AddConstant(value, ir::DType::kDouble); }
  ir::ValueId Add(ir::Op op, std::initializer_list<ir::ValueId> operands,
                  const ir::Attributes& attributes = {}) {
    const std::vector<ir::ValueId> list(operands);
    const absl::StatusOr<ir::ValueId> value = to_.Add(op, list, attributes);
    FUSIOND_CHECK(value.ok());
    return *value;
  }
  // The node as it was, and with one operand replaced.
  ir::ValueId Self() { return With(node_.operands.size(), 0); }
  ir::ValueId With(size_t at, ir::ValueId operand) {
    absl::InlinedVector<ir::ValueId, 4> operands;
    for (size_t i = 0; i < node_.operands.size(); ++i) {
      operands.push_back(i == at ? operand : Operand(i));
    }
    const absl::StatusOr<ir::ValueId> value = to_.Add(node_.op, operands, node_.attributes);
    FUSIOND_CHECK(value.ok());
    return *value;
  }
  ir::ValueId Like(const ir::Node& other, ir::ValueId operand) {
    return Add(other.op, {operand}, other.attributes);
  }

 private:
  const ir::Graph& from_;
  const ir::Node& node_;
  ir::Graph& to_;
  const std::vector<ir::ValueId>& renamed_;
};

// One way to rewrite; nullopt: not here. Nothing is made before the decision to rewrite.
using Form = std::optional<ir::ValueId> (*)(Site& site);

std::vector<Form> FormsOf(Rewrite kind);

// var_mean → Σx/n and Σ(x - mean)²/n.
std::vector<ir::ValueId> SpellMoments(Site& site);

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_PASSES_REWRITE_FORMS_H_
