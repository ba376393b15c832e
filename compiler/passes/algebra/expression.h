// Expressions: the values of a graph in the algebraic normal form, each held once.
//
// Every value is a *term*, c · Π atomᵏ with a constant c and whole or half exponents k. An *atom*
// is what the algebra does not look into: an input, the result of any other op, a sum, a sum
// reduction, or the radicand of a root that cannot be spread over its factors. A sum atom is
// primitive: its terms share no factor, and the first has coefficient 1; what they shared stands in
// the term around it. So x·r - m·r and r·(x - m) are one term, r¹·[x - m]¹, and rms⁻²·(2·rms)⁻¹ and
// ½·rstd³ meet once rstd = rms⁻¹.
//
// What is never done, because it may change what is computed (README.md has the reasons):
//  - products are not spread over sums: (x - m)² stays a square;
//  - a factor and its inverse do not vanish, nor do equal terms of opposite sign: such an operation
//    stays a node, and a sum around it is *rigid*, added to others as one term;
//  - constants that would leave the range of their type are not merged;
//  - terms and sums stay below kMaxFactors and kMaxTerms, longer ones are cut into atoms. Every
//    operation is thus O(1), and the whole linear.
//
// Order: atoms by height and hash, which follow from the structure alone. Thread-compatible.
#ifndef FUSIOND_COMPILER_PASSES_ALGEBRA_EXPRESSION_H_
#define FUSIOND_COMPILER_PASSES_ALGEBRA_EXPRESSION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/algebra/coefficient.h"

namespace fusiond::passes {

using AtomId = uint32_t;
using TermId = uint32_t;

struct Factor {
  AtomId atom;
  int halves;  // twice the exponent; never 0
  bool operator==(const Factor&) const = default;
};

struct Term {
  ir::DType dtype = ir::DType::kFloat;
  Coefficient coefficient;
  absl::InlinedVector<Factor, 4> factors;  // in the order of atoms
  bool operator==(const Term&) const = default;
};

enum class AtomKind : uint8_t {
  kInput,     // of the graph; `result` is its index
  kNode,      // result `result` of op on parts
  kSum,       // of parts, in order
  kReduce,    // sum of part 0 over `reduced`, which stay as extents of 1
  kRadicand,  // part 0; stands in terms with odd halves only
};

struct Atom {
  AtomKind kind = AtomKind::kNode;
  ir::DType dtype = ir::DType::kFloat;
  bool scalar = false;  // a scalar of the IR
  uint8_t axes = 0;     // bit a: the extent at axis a, from the right, is not 1
  uint8_t reduced = 0;  // of kReduce
  bool rigid = false;   // of kSum: never spread into another sum
  uint32_t result = 0;
  ir::Op op = ir::Op::kInput;
  ir::Attributes attributes;
  absl::InlinedVector<TermId, 3> parts;

  // Derived.
  bool nonnegative = false;
  bool guards_range = false;  // a maximum or minimum over a dim, or what was made of one
  uint32_t height = 0;
  uint64_t hash = 0;
};

class Expressions {
 public:
  static constexpr size_t kMaxFactors = 12;
  static constexpr size_t kMaxTerms = 8;
  static constexpr int kMaxHalves = 64;

  // Factors and terms looked at so far.
  int64_t work() const { return work_; }

  const Atom& atom(AtomId id) const { return atoms_[id]; }
  size_t atom_count() const { return atoms_.size(); }
  const Term& term(TermId id) const { return terms_[id]; }
  uint64_t hash(TermId id) const { return hashes_[id]; }
  uint8_t AxesOf(const Term& term) const;
  uint32_t HeightOf(const Term& term) const;

  TermId Input(uint32_t index, const ir::Type& type);
  // A node that the algebra does not look into, with its results' type.
  TermId Node(const ir::Node& node, uint32_t result, const ir::Type& type,
              absl::Span<const TermId> parts);
  // nullopt: not a coefficient (zero, infinite, nan, of extreme size).
  std::optional<TermId> Constant(double value, ir::DType dtype);

  TermId Multiply(TermId a, TermId b);
  // a^(halves/2). nullopt: not expressible; the op stays a node.
  std::optional<TermId> Power(TermId a, int halves);
  TermId Negate(TermId a);
  TermId Add(absl::Span<const TermId> terms);
  // A sum of terms that Add() would have found to be rigid.
  TermId AddRigid(absl::Span<const TermId> terms);
  // The sum over `reduced` axes, with what is constant along them in front, except factors that
  // guard the range of the sum. `factor`: false for extents of 0.
  TermId Reduce(TermId a, uint8_t reduced, bool factor = true);
  // The reduction of exactly this term.
  AtomId ReduceAtom(TermId inner, uint8_t reduced);
  TermId FromAtom(AtomId id);
  // The same node, root or reduction on other parts.
  TermId WithParts(AtomId id, absl::Span<const TermId> parts);

  // In the order of a sum: larger values first, constants last.
  bool TermLess(const Term& a, const Term& b) const;
  bool AtomLess(AtomId a, AtomId b) const;
  TermId Intern(Term term);

 private:
  AtomId Intern(Atom atom);
  void Derive(Atom& atom) const;
  void SortByHash(Atom& atom) const;  // the parts of a commutative op
  bool IsNonnegative(const Term& term) const;
  bool GuardsRange(const Term& term) const;
  bool IsZero(TermId id) const;

  // False: the product is not a term (a factor would vanish, or a limit is exceeded).
  bool MultiplyInto(Term& into, const Term& by);
  bool SpreadRadicands(Term& term);
  TermId Opaque(ir::Op op, absl::Span<const TermId> parts);

  using Terms = absl::InlinedVector<Term, 4>;
  Terms Flattened(absl::Span<const TermId> terms) const;
  // Adds up terms with equal factors. False: two of them have opposite signs.
  bool CollectLikeTerms(Terms& terms, bool cancel) const;
  void RegroupSums(Terms& terms);
  TermId Factored(Terms terms, bool rigid);
  int Divides(const Factor& factor) const;
  Term CommonFactors(absl::Span<const Term> terms) const;
  bool LeavesScalars(absl::Span<const Term> terms, const Term& common) const;
  void Divide(Term& term, const Term& by);
  void GroupCommonFactors(Terms& terms);

  int64_t work_ = 0;
  std::vector<Atom> atoms_;
  std::vector<Term> terms_;
  std::vector<uint64_t> hashes_;  // of terms_
  absl::flat_hash_map<uint64_t, absl::InlinedVector<AtomId, 1>> atoms_by_hash_;
  absl::flat_hash_map<uint64_t, absl::InlinedVector<TermId, 1>> terms_by_hash_;
};

}  // namespace fusiond::passes

#endif  // FUSIOND_COMPILER_PASSES_ALGEBRA_EXPRESSION_H_
