#include "compiler/passes/algebra/balance.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace fusiond::passes {
namespace {

using Factors = absl::InlinedVector<Factor, 4>;

// What all uses of each sum reduction multiply it with; exponents of least size.
class SharedFactors {
 public:
  SharedFactors(const Expressions& expressions, const Reachable& reachable)
      : expressions_(expressions) {
    for (const TermId id : reachable.terms) {
      const Term& term = expressions.term(id);
      for (const Factor& factor : term.factors) {
        if (expressions.atom(factor.atom).kind == AtomKind::kReduce) Use(factor, term);
      }
    }
  }

  // Factors to put inside the sum, by half of what is outside.
  Factors ToPush(AtomId sum, const std::vector<bool>& has_rsqrt) const {
    const auto at = shared_.find(sum);
    if (at == shared_.end()) return {};
    Factors push;
    const Atom& reduce = expressions_.atom(sum);
    for (const Factor& factor : at->second) {
      const Atom& atom = expressions_.atom(factor.atom);
      const bool constant = (atom.axes & reduce.reduced) == 0 && (atom.axes & ~reduce.axes) == 0;
      // Before the sum in the order of atoms: it is not made of the sum.
      if (!constant || atom.scalar || !expressions_.AtomLess(factor.atom, sum)) continue;
      if (atom.kind == AtomKind::kRadicand) continue;
      const int unit = has_rsqrt[factor.atom] && factor.halves < 0 ? 1 : 2;
      const int half = factor.halves / unit / 2 * unit;
      if (half != 0) push.push_back({factor.atom, half});
    }
    return push;
  }

 private:
  void Use(const Factor& sum, const Term& term) {
    Factors others;
    for (const Factor& factor : term.factors) {
      if (factor.atom != sum.atom && sum.halves == 2) others.push_back(factor);
    }
    const auto [at, first] = shared_.try_emplace(sum.atom, others);
    if (first) return;
    Factors both;
    for (const Factor& known : at->second) {
      for (const Factor& other : others) {
        if (other.atom != known.atom || (other.halves < 0) != (known.halves < 0)) continue;
        both.push_back(std::abs(other.halves) < std::abs(known.halves) ? other : known);
      }
    }
    at->second = std::move(both);
  }

  const Expressions& expressions_;
  absl::flat_hash_map<AtomId, Factors> shared_;
};

// Makes the reachable atoms anew on balanced sums.
class Rebalancer {
 public:
  Rebalancer(Expressions& expressions, const Reachable& reachable,
             const absl::flat_hash_map<AtomId, Factors>& pushes)
      : expressions_(expressions), pushes_(pushes), made_(expressions.atom_count()) {
    for (const AtomId id : reachable.atoms) {
      made_[id] = Make(id);
      if (!made_[id]) failed_ = true;
    }
  }

  std::optional<std::vector<TermId>> Roots(absl::Span<const TermId> roots) {
    std::vector<TermId> balanced;
    for (const TermId root : roots) {
      const std::optional<TermId> made = Make(expressions_.term(root));
      if (failed_ || !made) return std::nullopt;
      balanced.push_back(*made);
    }
    return balanced;
  }

 private:
  std::optional<TermId> Make(Term term) {
    if (failed_) return std::nullopt;
    const Factors factors = std::move(term.factors);
    term.factors.clear();
    TermId product = expressions_.Intern(std::move(term));
    for (const Factor& factor : factors) {
      const std::optional<TermId> power = expressions_.Power(*made_[factor.atom], factor.halves);
      if (!power) return std::nullopt;
      product = expressions_.Multiply(product, *power);
    }
    return product;
  }

  // A radicand gives its inner term: its powers are powers of that.
  std::optional<TermId> Make(AtomId id) {
    absl::InlinedVector<TermId, 4> parts;
    const auto old_parts = expressions_.atom(id).parts;
    for (const TermId part : old_parts) {
      const std::optional<TermId> made = Make(expressions_.term(part));
      if (!made) return std::nullopt;
      parts.push_back(*made);
    }
    const Atom& atom = expressions_.atom(id);
    switch (atom.kind) {
      case AtomKind::kInput:
        return expressions_.FromAtom(id);
      case AtomKind::kNode:
        return expressions_.WithParts(id, parts);
      case AtomKind::kSum:
        return atom.rigid ? expressions_.AddRigid(parts) : expressions_.Add(parts);
      case AtomKind::kRadicand:
        return parts[0];
      case AtomKind::kReduce:
        break;
    }
    const auto push = pushes_.find(id);
    if (push == pushes_.end()) return expressions_.WithParts(id, parts);
    const uint8_t reduced = atom.reduced;
    Term inside;
    inside.dtype = atom.dtype;
    inside.factors = push->second;
    const std::optional<TermId> factor = Make(inside);
    if (!factor) return std::nullopt;
    const std::optional<TermId> inverse = expressions_.Power(*factor, -2);
    if (!inverse) return std::nullopt;
    const TermId inner = expressions_.Multiply(parts[0], *factor);
    const TermId sum = expressions_.FromAtom(expressions_.ReduceAtom(inner, reduced));
    return expressions_.Multiply(sum, *inverse);
  }

  Expressions& expressions_;
  const absl::flat_hash_map<AtomId, Factors>& pushes_;
  std::vector<std::optional<TermId>> made_;
  bool failed_ = false;
};

}  // namespace

Reachable Reach(const Expressions& expressions, absl::Span<const TermId> roots) {
  Reachable reachable;
  std::vector<bool> seen_atoms(expressions.atom_count());
  absl::flat_hash_map<TermId, bool> seen_terms;
  std::vector<TermId> stack(roots.begin(), roots.end());
  reachable.has_rsqrt.resize(expressions.atom_count());
  while (!stack.empty()) {
    const TermId id = stack.back();
    stack.pop_back();
    if (!seen_terms.emplace(id, true).second) continue;
    reachable.terms.push_back(id);
    for (const Factor& factor : expressions.term(id).factors) {
      if (factor.halves < 0 && factor.halves % 2 != 0) {
        reachable.has_rsqrt[factor.atom] = expressions.atom(factor.atom).nonnegative;
      }
      if (seen_atoms[factor.atom]) continue;
      seen_atoms[factor.atom] = true;
      reachable.atoms.push_back(factor.atom);
      const Atom& atom = expressions.atom(factor.atom);
      stack.insert(stack.end(), atom.parts.begin(), atom.parts.end());
    }
  }
  std::sort(reachable.atoms.begin(), reachable.atoms.end(),
            [&](AtomId a, AtomId b) { return expressions.AtomLess(a, b); });
  return reachable;
}

std::vector<TermId> Balance(Expressions& expressions, std::vector<TermId> roots) {
  const Reachable reachable = Reach(expressions, roots);
  const SharedFactors shared(expressions, reachable);
  absl::flat_hash_map<AtomId, Factors> pushes;
  for (const AtomId id : reachable.atoms) {
    Factors push = shared.ToPush(id, reachable.has_rsqrt);
    if (!push.empty()) pushes.emplace(id, std::move(push));
  }
  if (pushes.empty()) return roots;
  return Rebalancer(expressions, reachable, pushes).Roots(roots).value_or(roots);
}

}  // namespace fusiond::passes
