// Products, powers and sums of terms; the algebra of expression.h.
#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/passes/algebra/expression.h"

namespace fusiond::passes {
namespace {

using ir::Op;

// A factor that several terms of a sum share.
struct Candidate {
  int terms = 0;
  int axes = 0;
  AtomId atom = 0;
  int divides = 0;
};

}  // namespace

// Radicands with whole exponents are their terms again: (√a)² = a.
bool Expressions::SpreadRadicands(Term& term) {
  for (;;) {
    const auto at = std::find_if(term.factors.begin(), term.factors.end(), [&](const Factor& f) {
      return f.halves % 2 == 0 && atom(f.atom).kind == AtomKind::kRadicand;
    });
    if (at == term.factors.end()) return true;
    const Factor factor = *at;
    term.factors.erase(at);
    const std::optional<TermId> power = Power(atom(factor.atom).parts[0], factor.halves);
    if (!power || !MultiplyInto(term, Term(this->term(*power)))) return false;
  }
}

bool Expressions::MultiplyInto(Term& into, const Term& by) {
  into.coefficient = into.coefficient * by.coefficient;
  if (!into.coefficient.InRange(into.dtype)) return false;
  for (const Factor& factor : by.factors) {
    const auto at =
        std::lower_bound(into.factors.begin(), into.factors.end(), factor.atom,
                         [&](const Factor& f, AtomId atom) { return AtomLess(f.atom, atom); });
    if (at == into.factors.end() || at->atom != factor.atom) {
      into.factors.insert(at, factor);
      continue;
    }
    at->halves += factor.halves;
    if (at->halves == 0 || std::abs(at->halves) > kMaxHalves) return false;
  }
  return into.factors.size() <= kMaxFactors && SpreadRadicands(into);
}

TermId Expressions::Multiply(TermId a, TermId b) {
  Term product = term(a);
  if (MultiplyInto(product, Term(term(b)))) return Intern(std::move(product));
  return Opaque(Op::kMul, {a, b});
}

std::optional<TermId> Expressions::Power(TermId a, int halves) {
  Term power = term(a);
  if (halves % 2 == 0) {
    const int n = halves / 2;
    power.coefficient = power.coefficient.Power(n);
    if (!power.coefficient.InRange(power.dtype)) return std::nullopt;
    for (Factor& factor : power.factors) {
      factor.halves *= n;
      if (std::abs(factor.halves) > kMaxHalves) return std::nullopt;
    }
    if (!SpreadRadicands(power)) return std::nullopt;
    return Intern(std::move(power));
  }
  if (power.factors.empty()) {
    return Constant(std::pow(power.coefficient.ToDouble(), halves / 2.0), power.dtype);
  }
  // √ spreads over factors of known sign, and one of unknown sign: (x³)^½ is nan where x < 0, as
  // x^(3/2) is, but (x²)^½ is |x|.
  int unknown = power.coefficient.negative() ? 2 : 0;
  bool spreads = true;
  for (Factor& factor : power.factors) {
    spreads = spreads && factor.halves % 2 == 0;  // no fourth roots
    if (!atom(factor.atom).nonnegative) unknown += factor.halves % 4 == 0 ? 2 : 1;
    factor.halves = factor.halves / 2 * halves;
    spreads = spreads && std::abs(factor.halves) <= kMaxHalves;
  }
  if (spreads && unknown < 2) {
    power.coefficient = power.coefficient.SquareRoot().Power(halves);
    if (power.coefficient.InRange(power.dtype)) return Intern(std::move(power));
  }
  Atom radicand;
  radicand.kind = AtomKind::kRadicand;
  radicand.dtype = power.dtype;
  radicand.axes = AxesOf(power);
  radicand.parts.push_back(a);
  Term root;
  root.dtype = power.dtype;
  root.factors.push_back({Intern(std::move(radicand)), halves});
  return Intern(std::move(root));
}

TermId Expressions::Negate(TermId a) {
  Term negated = term(a);
  negated.coefficient = negated.coefficient.Negated();
  return Intern(std::move(negated));
}

bool Expressions::IsZero(TermId id) const {
  const Term& t = term(id);
  if (t.factors.size() != 1 || t.factors[0].halves != 2) return false;
  const Atom& a = atom(t.factors[0].atom);
  if (a.op != Op::kConstant) return false;
  const double* value = std::get_if<double>(a.attributes.Find(ir::AttributeKey::kValue));
  return value != nullptr && *value == 0;
}

// Sums that stand alone in a term become their terms.
Expressions::Terms Expressions::Flattened(absl::Span<const TermId> terms) const {
  Terms flat;
  for (const TermId id : terms) {
    const Term& t = term(id);
    const Atom* sum =
        t.factors.size() == 1 && t.factors[0].halves == 2 ? &atom(t.factors[0].atom) : nullptr;
    if (sum == nullptr || sum->kind != AtomKind::kSum || sum->rigid) {
      flat.push_back(t);
      continue;
    }
    for (const TermId part : sum->parts) {
      flat.push_back(term(part));
      flat.back().coefficient = flat.back().coefficient * t.coefficient;
    }
  }
  return flat;
}

bool Expressions::CollectLikeTerms(Terms& terms, bool cancel) const {
  std::stable_sort(terms.begin(), terms.end(),
                   [&](const Term& a, const Term& b) { return TermLess(a, b); });
  Terms collected;
  for (Term& t : terms) {
    if (collected.empty() || collected.back().factors != t.factors) {
      collected.push_back(std::move(t));
      continue;
    }
    Coefficient& sum = collected.back().coefficient;
    if (sum.negative() != t.coefficient.negative() && !cancel) return false;
    const std::optional<Coefficient> added = sum.Plus(t.coefficient);
    if (!added || !added->InRange(t.dtype)) return false;
    sum = *added;
  }
  terms = std::move(collected);
  return true;
}

// A sum that stands as a factor in one of the terms, and whose own terms stand beside it, is one
// term again: x + b + c·[x + b]³ → [x + b] + c·[x + b]³.
void Expressions::RegroupSums(Terms& terms) {
  std::vector<AtomId> sums;
  for (const Term& t : terms) {
    for (const Factor& f : t.factors) {
      if (f.halves >= 2 && atom(f.atom).kind == AtomKind::kSum) sums.push_back(f.atom);
    }
  }
  std::sort(sums.begin(), sums.end(), [&](AtomId a, AtomId b) { return AtomLess(a, b); });
  sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  for (const AtomId id : sums) {
    absl::InlinedVector<size_t, 4> members;
    std::optional<Coefficient> scale;
    for (const TermId part_id : atom(id).parts) {
      const Term& part = term(part_id);
      const auto at = std::find_if(terms.begin(), terms.end(),
                                   [&](const Term& t) { return t.factors == part.factors; });
      if (at == terms.end()) break;
      const Coefficient ratio = at->coefficient * part.coefficient.Inverse();
      if (scale && !(ratio == *scale)) break;
      scale = ratio;
      members.push_back(at - terms.begin());
    }
    if (members.size() < atom(id).parts.size() || !scale->InRange(terms[0].dtype)) continue;
    std::sort(members.begin(), members.end());
    for (size_t i = members.size(); i-- > 0;) terms.erase(terms.begin() + members[i]);
    Term sum = term(FromAtom(id));
    sum.coefficient = *scale;
    terms.push_back(std::move(sum));
  }
}

TermId Expressions::Add(absl::Span<const TermId> given) {
  absl::InlinedVector<TermId, 4> addends;
  for (const TermId id : given) {
    if (!IsZero(id)) addends.push_back(id);
  }
  if (addends.empty()) return given[0];
  if (addends.size() == 1) return addends[0];
  Terms terms = Flattened(addends);
  work_ += static_cast<int64_t>(terms.size());
  const auto in_range = [](const Term& t) { return t.coefficient.InRange(t.dtype); };
  if (terms.size() <= kMaxTerms && std::all_of(terms.begin(), terms.end(), in_range) &&
      CollectLikeTerms(terms, /*cancel=*/false)) {
    RegroupSums(terms);
    return Factored(std::move(terms), /*rigid=*/false);
  }
  return AddRigid(addends);
}

TermId Expressions::AddRigid(absl::Span<const TermId> addends) {
  Terms terms;
  for (const TermId id : addends) terms.push_back(term(id));
  // 3x - x is 2x; x - x stays.
  if (terms.size() <= kMaxTerms && CollectLikeTerms(terms, /*cancel=*/true)) {
    return Factored(std::move(terms), /*rigid=*/true);
  }
  TermId sum = addends[0];
  for (const TermId addend : addends.subspan(1)) sum = Opaque(Op::kAdd, {sum, addend});
  return sum;
}

// Powers of one atom have a common factor if this is equal: the sign; a radicand's exponents must
// stay odd, so that only equal ones have.
int Expressions::Divides(const Factor& factor) const {
  if (atom(factor.atom).kind == AtomKind::kRadicand) return factor.halves;
  return factor.halves < 0 ? -1 : 1;
}

Term Expressions::CommonFactors(absl::Span<const Term> terms) const {
  Term common;
  common.dtype = terms[0].dtype;
  for (Factor factor : terms[0].factors) {
    bool in_all = true;
    for (const Term& t : terms.subspan(1)) {
      const auto at = std::find_if(t.factors.begin(), t.factors.end(),
                                   [&](const Factor& f) { return f.atom == factor.atom; });
      in_all = at != t.factors.end() && Divides(*at) == Divides(factor);
      if (!in_all) break;
      if (std::abs(at->halves) < std::abs(factor.halves)) factor.halves = at->halves;
    }
    if (in_all) common.factors.push_back(factor);
  }
  return common;
}

// Without the common factors only scalars of the launch would be left, whose sum is no tensor.
bool Expressions::LeavesScalars(absl::Span<const Term> terms, const Term& common) const {
  for (const Term& t : terms) {
    for (const Factor& f : t.factors) {
      if (atom(f.atom).scalar) continue;
      const auto at = std::find(common.factors.begin(), common.factors.end(), f);
      if (at == common.factors.end()) return false;
    }
  }
  // Constants among themselves have been added up.
  return true;
}

// Requires: `by` is among the common factors of `term` and others.
void Expressions::Divide(Term& term, const Term& by) {
  for (const Factor& factor : by.factors) {
    const auto at = std::find_if(term.factors.begin(), term.factors.end(),
                                 [&](const Factor& f) { return f.atom == factor.atom; });
    at->halves -= factor.halves;
    if (at->halves == 0) term.factors.erase(at);
  }
}

// a·b + a·c + d → a·[b + c] + d: the factor of most terms first, then the largest.
void Expressions::GroupCommonFactors(Terms& terms) {
  for (;;) {
    const auto better = [&](const Candidate& a, const Candidate& b) {
      if (a.terms != b.terms) return a.terms > b.terms;
      if (a.axes != b.axes) return a.axes > b.axes;
      if (a.atom != b.atom) return AtomLess(a.atom, b.atom);
      return a.divides > b.divides;
    };
    std::vector<std::pair<AtomId, int>> uses;  // an atom, and which exponents divide
    for (const Term& t : terms) {
      for (const Factor& f : t.factors) uses.emplace_back(f.atom, Divides(f));
    }
    work_ += static_cast<int64_t>(uses.size());
    std::sort(uses.begin(), uses.end());
    std::optional<Candidate> best;
    for (auto at = uses.begin(); at != uses.end();) {
      const auto end = std::upper_bound(at, uses.end(), *at);
      const Candidate candidate{.terms = static_cast<int>(end - at),
                                .axes = __builtin_popcount(atom(at->first).axes),
                                .atom = at->first,
                                .divides = at->second};
      if (candidate.terms > 1 && (!best || better(candidate, *best))) best = candidate;
      at = end;
    }
    if (!best) return;
    Terms group, rest;
    for (const Term& t : terms) {
      const bool has = std::any_of(t.factors.begin(), t.factors.end(), [&](const Factor& f) {
        return f.atom == best->atom && Divides(f) == best->divides;
      });
      (has ? group : rest).push_back(t);
    }
    const Term common = CommonFactors(group);
    if (LeavesScalars(group, common)) return;
    absl::InlinedVector<TermId, 4> inner;
    for (Term& t : group) {
      Divide(t, common);
      inner.push_back(Intern(std::move(t)));
    }
    rest.push_back(term(Multiply(Intern(common), Add(inner))));
    terms = std::move(rest);
  }
}

TermId Expressions::Factored(Terms terms, bool rigid) {
  if (terms.size() == 1) return Intern(std::move(terms[0]));
  const Term common = CommonFactors(terms);
  if (!common.factors.empty() && !LeavesScalars(terms, common)) {
    // What is left may be sums alone, and is added anew.
    absl::InlinedVector<TermId, 4> inner;
    for (Term& t : terms) {
      Divide(t, common);
      inner.push_back(Intern(std::move(t)));
    }
    return Multiply(Intern(common), rigid ? AddRigid(inner) : Add(inner));
  }
  if (!rigid) GroupCommonFactors(terms);
  if (terms.size() == 1) return Intern(std::move(terms[0]));
  std::sort(terms.begin(), terms.end(),
            [&](const Term& a, const Term& b) { return TermLess(a, b); });

  // The first term's coefficient goes in front; its sign alone where more takes another out of
  // range, or gives one to a scalar of the launch, which would be multiplied in another type.
  Coefficient content = terms[0].coefficient;
  for (const Term& t : terms) {
    const bool scalar =
        !t.factors.empty() && std::all_of(t.factors.begin(), t.factors.end(),
                                          [this](const Factor& f) { return atom(f.atom).scalar; });
    if (!scalar && (t.coefficient * terms[0].coefficient.Inverse()).InRange(t.dtype)) continue;
    content = Coefficient();
    if (terms[0].coefficient.negative()) content = content.Negated();
    break;
  }
  const Coefficient inverse = content.Inverse();
  for (Term& t : terms) t.coefficient = t.coefficient * inverse;
  Atom sum;
  sum.kind = AtomKind::kSum;
  sum.dtype = terms[0].dtype;
  sum.rigid = rigid;
  for (Term& t : terms) {
    sum.axes |= AxesOf(t);
    sum.parts.push_back(Intern(std::move(t)));
  }
  Term scaled = term(FromAtom(Intern(std::move(sum))));
  scaled.coefficient = content;
  return Intern(std::move(scaled));
}

}  // namespace fusiond::passes
