#include "compiler/passes/algebra/expression.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "compiler/passes/builder.h"

namespace fusiond::passes {
namespace {

using ir::DType;
using ir::Op;

// Ops that keep the sign of a guard of the range and scale with it.
bool PassesGuard(Op op) {
  switch (op) {
    case Op::kAbs:
    case Op::kCast:
    case Op::kClamp:
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kRelu:
    case Op::kWhere:
      return true;
    default:
      return false;
  }
}

bool GivesNonnegative(Op op) {
  switch (op) {
    case Op::kAbs:
    case Op::kErfc:
    case Op::kExp:
    case Op::kExp2:
    case Op::kRelu:
    case Op::kRsqrt:
    case Op::kSigmoid:
    case Op::kSqrt:
      return true;
    default:
      return false;
  }
}

bool SameAtom(const Atom& a, const Atom& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.scalar == b.scalar && a.reduced == b.reduced &&
         a.rigid == b.rigid && a.result == b.result && a.op == b.op && a.parts == b.parts &&
         SameAttributes(a.attributes, b.attributes);
}

}  // namespace

uint8_t Expressions::AxesOf(const Term& term) const {
  uint8_t axes = 0;
  for (const Factor& factor : term.factors) axes |= atom(factor.atom).axes;
  return axes;
}

uint32_t Expressions::HeightOf(const Term& term) const {
  uint32_t height = 0;
  for (const Factor& factor : term.factors) height = std::max(height, atom(factor.atom).height);
  return height;
}

bool Expressions::AtomLess(AtomId a, AtomId b) const {
  const Atom& x = atom(a);
  const Atom& y = atom(b);
  return std::tie(x.height, x.hash, a) < std::tie(y.height, y.hash, b);
}

bool Expressions::TermLess(const Term& a, const Term& b) const {
  if (a.factors.empty() || b.factors.empty()) return !a.factors.empty();
  const int axes_a = __builtin_popcount(AxesOf(a));
  const int axes_b = __builtin_popcount(AxesOf(b));
  if (axes_a != axes_b) return axes_a > axes_b;
  if (a.factors.size() != b.factors.size()) return a.factors.size() < b.factors.size();
  for (size_t i = 0; i < a.factors.size(); ++i) {
    const Factor& x = a.factors[i];
    const Factor& y = b.factors[i];
    if (x.atom != y.atom) return AtomLess(x.atom, y.atom);
    if (x.halves != y.halves) return x.halves < y.halves;
  }
  return false;
}

bool Expressions::IsNonnegative(const Term& term) const {
  if (term.coefficient.negative()) return false;
  for (const Factor& factor : term.factors) {
    // A root is; an even power is.
    if (factor.halves % 4 != 2 && factor.halves % 4 != -2) continue;
    if (!atom(factor.atom).nonnegative) return false;
  }
  return true;
}

bool Expressions::GuardsRange(const Term& term) const {
  for (const Factor& factor : term.factors) {
    if (atom(factor.atom).guards_range) return true;
  }
  return false;
}

void Expressions::Derive(Atom& atom) const {
  bool nonnegative = true;
  bool guards = false;
  atom.hash = Mix(static_cast<uint64_t>(atom.kind) << 32 | static_cast<uint64_t>(atom.op) << 8 |
                      static_cast<uint64_t>(atom.dtype),
                  static_cast<uint64_t>(atom.result) << 16 | atom.reduced << 8 | atom.rigid);
  atom.hash = Mix(atom.hash, HashAttributes(atom.attributes));
  for (const TermId id : atom.parts) {
    const Term& part = term(id);
    nonnegative = nonnegative && IsNonnegative(part);
    guards = guards || GuardsRange(part);
    atom.height = std::max(atom.height, HeightOf(part) + 1);
    atom.hash = Mix(atom.hash, hash(id));
  }
  switch (atom.kind) {
    case AtomKind::kInput:
      break;
    case AtomKind::kNode: {
      const bool extremum = atom.op == Op::kMax || atom.op == Op::kMin;
      atom.nonnegative = GivesNonnegative(atom.op) || (extremum && nonnegative);
      atom.guards_range = extremum || (guards && PassesGuard(atom.op));
      break;
    }
    case AtomKind::kSum:
    case AtomKind::kRadicand:
      atom.nonnegative = nonnegative;
      atom.guards_range = guards;
      break;
    case AtomKind::kReduce:
      atom.nonnegative = nonnegative;
      break;
  }
}

AtomId Expressions::Intern(Atom atom) {
  Derive(atom);
  auto& same_hash = atoms_by_hash_[atom.hash];
  for (const AtomId id : same_hash) {
    if (SameAtom(atoms_[id], atom)) return id;
  }
  const auto id = static_cast<AtomId>(atoms_.size());
  same_hash.push_back(id);
  atoms_.push_back(std::move(atom));
  return id;
}

TermId Expressions::Intern(Term term) {
  uint64_t hash = Mix(static_cast<uint64_t>(term.dtype), term.coefficient.Hash());
  for (const Factor& factor : term.factors) {
    hash = Mix(hash, atom(factor.atom).hash);
    hash = Mix(hash, static_cast<uint64_t>(static_cast<int64_t>(factor.halves)));
  }
  auto& same_hash = terms_by_hash_[hash];
  for (const TermId id : same_hash) {
    if (terms_[id] == term) return id;
  }
  const auto id = static_cast<TermId>(terms_.size());
  same_hash.push_back(id);
  terms_.push_back(std::move(term));
  hashes_.push_back(hash);
  return id;
}

TermId Expressions::FromAtom(AtomId id) {
  Term term;
  term.dtype = atom(id).dtype;
  term.factors.push_back({id, 2});
  return Intern(std::move(term));
}

TermId Expressions::Input(uint32_t index, const ir::Type& type) {
  Atom atom;
  atom.kind = AtomKind::kInput;
  atom.dtype = type.dtype;
  atom.scalar = type.scalar;
  atom.axes = passes::AxesOf(type);
  atom.result = index;
  const AtomId id = Intern(std::move(atom));
  atoms_[id].hash = index;  // inputs stand in their own order
  return FromAtom(id);
}

TermId Expressions::Node(const ir::Node& node, uint32_t result, const ir::Type& type,
                         absl::Span<const TermId> parts) {
  Atom atom;
  atom.dtype = type.dtype;
  atom.scalar = type.scalar;
  atom.axes = passes::AxesOf(type);
  atom.result = result;
  atom.op = node.op;
  atom.attributes = node.attributes;
  atom.parts.assign(parts.begin(), parts.end());
  MirrorComparison(atom.op, atom.parts);
  if (IsCommutative(atom.op)) SortByHash(atom);
  return FromAtom(Intern(std::move(atom)));
}

void Expressions::SortByHash(Atom& atom) const {
  std::sort(atom.parts.begin(), atom.parts.end(),
            [&](TermId a, TermId b) { return hash(a) < hash(b); });
}

std::optional<TermId> Expressions::Constant(double value, DType dtype) {
  const std::optional<Coefficient> coefficient = Coefficient::Of(value, dtype);
  if (!coefficient) return std::nullopt;
  return Intern(Term{.dtype = dtype, .coefficient = *coefficient, .factors = {}});
}

TermId Expressions::WithParts(AtomId id, absl::Span<const TermId> parts) {
  const Atom& from = atom(id);
  Atom made;
  made.kind = from.kind;
  made.dtype = from.dtype;
  made.scalar = from.scalar;
  made.axes = from.axes;
  made.reduced = from.reduced;
  made.result = from.result;
  made.op = from.op;
  made.attributes = from.attributes;
  made.parts.assign(parts.begin(), parts.end());
  if (IsCommutative(made.op)) SortByHash(made);
  return FromAtom(Intern(std::move(made)));
}

// An op of the algebra that stays a node, on values that it could not merge.
TermId Expressions::Opaque(Op op, absl::Span<const TermId> parts) {
  Atom atom;
  atom.dtype = term(parts[0]).dtype;
  atom.op = op;
  atom.parts.assign(parts.begin(), parts.end());
  SortByHash(atom);
  for (const TermId part : parts) atom.axes |= AxesOf(term(part));
  return FromAtom(Intern(std::move(atom)));
}

AtomId Expressions::ReduceAtom(TermId inner, uint8_t reduced) {
  Atom atom;
  atom.kind = AtomKind::kReduce;
  atom.dtype = term(inner).dtype;
  atom.axes = AxesOf(term(inner)) & ~reduced;
  atom.reduced = reduced;
  atom.op = Op::kSum;
  atom.parts.push_back(inner);
  return Intern(std::move(atom));
}

// Linear factoring (R9).
TermId Expressions::Reduce(TermId a, uint8_t reduced, bool factor) {
  Term inner = term(a);
  Term outer;
  outer.dtype = inner.dtype;
  if (factor) {
    std::swap(outer.coefficient, inner.coefficient);
    const auto stays = [&](const Factor& f) {
      return (atom(f.atom).axes & reduced) != 0 || atom(f.atom).guards_range;
    };
    for (const Factor& f : inner.factors) {
      if (!stays(f)) outer.factors.push_back(f);
    }
    inner.factors.erase(std::remove_if(inner.factors.begin(), inner.factors.end(),
                                       [&](const Factor& f) { return !stays(f); }),
                        inner.factors.end());
  }
  const TermId sum = FromAtom(ReduceAtom(Intern(std::move(inner)), reduced));
  return Multiply(Intern(std::move(outer)), sum);
}

}  // namespace fusiond::passes
