#include "compiler/passes/algebra/planner.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "compiler/passes/constants.h"

namespace fusiond::passes {
namespace {

using ir::Op;

constexpr int kMaxRepeated = 3;        // a power that stands as so many factors
constexpr double kMaxRatio = 1 << 20;  // of coefficients in a sum that is not scaled back

int Size(uint8_t axes) { return __builtin_popcount(axes); }

bool IsReduction(const Atom& atom) {
  return atom.kind == AtomKind::kReduce ||
         (atom.kind == AtomKind::kNode && ir::Info(atom.op).op_class == ir::OpClass::kReduction);
}

bool IsUnit(const Coefficient& c) { return c.IsOne() || c.IsMinusOne(); }

}  // namespace

std::vector<PlanId> Planner::Run(absl::Span<const TermId> roots) {
  const Reachable reachable = Reach(expressions_, roots);
  has_rsqrt_ = reachable.has_rsqrt;
  // Parts stand before what uses them, so that nothing below recurses into unplanned atoms.
  for (const AtomId id : reachable.atoms) atoms_.emplace(id, OfAtom(id));
  std::vector<PlanId> plans;
  for (const TermId root : roots) plans.push_back(Value(root));
  return plans;
}

PlanId Planner::OfAtom(AtomId id) {
  const Atom& atom = expressions_.atom(id);
  if (atom.kind == AtomKind::kSum) {
    const Item sum = Sum(id, Coefficient());
    return sum.negative ? plans_.Unary(Op::kNeg, sum.plan) : sum.plan;
  }
  if (atom.kind == AtomKind::kRadicand) return Value(atom.parts[0]);
  Plan plan;
  plan.dtype = atom.dtype;
  plan.scalar = atom.scalar;
  plan.axes = atom.axes;
  plan.reduced = atom.reduced;
  plan.result = atom.result;
  plan.op = atom.op;
  plan.attributes = atom.attributes;
  plan.kind = atom.kind == AtomKind::kInput    ? PlanKind::kInput
              : atom.kind == AtomKind::kReduce ? PlanKind::kReduce
                                               : PlanKind::kNode;
  const auto parts = atom.parts;
  for (const TermId part : parts) plan.items.push_back({Value(part)});
  return plans_.Intern(std::move(plan));
}

PlanId Planner::Value(TermId id) {
  const auto at = values_.find(id);
  if (at != values_.end()) return at->second;
  const Term term = expressions_.term(id);
  const Item item = Product(term, /*with_sign=*/true);
  values_.emplace(id, item.plan);
  return item.plan;
}

Item Planner::Signed(TermId id) {
  const auto at = terms_.find(id);
  if (at != terms_.end()) return at->second;
  const Term term = expressions_.term(id);
  const Item item = Product(term, /*with_sign=*/false);
  terms_.emplace(id, item);
  return item;
}

Item Planner::Product(const Term& term, bool with_sign) {
  Coefficient c = term.coefficient;
  Items items;
  bool negative = false;
  const std::optional<size_t> absorbs = Absorbs(term);
  for (size_t i = 0; i < term.factors.size(); ++i) {
    const Factor& factor = term.factors[i];
    PlanId base = atoms_.at(factor.atom);
    if (absorbs == i) {
      const Item sum = Sum(factor.atom, c.Power(2 / factor.halves));
      negative = sum.negative;
      base = sum.plan;
      c = Coefficient();
    }
    AppendFactor(factor, base, items);
  }
  negative = negative != c.negative();
  double size = ConstantOf(term.dtype, std::fabs(c.ToDouble()));
  if (items.empty() || size != 1) {
    if (with_sign && negative) size = -size;
    items.push_back({plans_.Constant(size, term.dtype)});
    if (with_sign) negative = false;
  }
  if (with_sign && negative && NegateSmaller(items)) negative = false;
  PairPowers(items);
  Item product = Levelled(Op::kMul, std::move(items));
  if (with_sign && negative) return {plans_.Unary(Op::kNeg, product.plan)};
  product.negative = negative;
  return product;
}

// x²·r² → (x·r)²: what is a power together is one product's power, whose size lies between.
void Planner::PairPowers(Items& items) {
  absl::flat_hash_map<PlanId, int> times;
  for (const Item& item : items) ++times[item.plan];
  Items once;
  int shared = kMaxRepeated + 1;
  for (const Item& item : items) {
    int& count = times[item.plan];
    if (count < 2) continue;
    shared = std::min(shared, count);
    once.push_back(item);
    count = 0;  // seen
  }
  if (once.size() < 2) return;
  for (const Item& item : once) {
    for (int i = 0; i < shared; ++i) {
      items.erase(std::find(items.begin(), items.end(), item));
    }
  }
  const Item product = Levelled(Op::kMul, once);
  for (int i = 0; i < shared; ++i) items.push_back(product);
}

// Negates a tensor that varies along fewer axes than the others, if there is one.
bool Planner::NegateSmaller(Items& items) {
  Item* smallest = nullptr;
  int largest = 0;
  for (Item& item : items) {
    const Plan& plan = plans_[item.plan];
    largest = std::max(largest, Size(plan.axes));
    if (plan.scalar) continue;
    if (smallest == nullptr || Size(plan.axes) < Size(plans_[smallest->plan].axes)) {
      smallest = &item;
    }
  }
  if (smallest == nullptr || Size(plans_[smallest->plan].axes) == largest) return false;
  smallest->plan = plans_.Unary(Op::kNeg, smallest->plan);
  return true;
}

void Planner::AppendFactor(const Factor& factor, PlanId base, Items& items) {
  const int size = std::abs(factor.halves);
  PlanId unit = base;
  int times = size / 2;
  if (factor.halves < 0) {
    const bool root = size % 2 == 1 || has_rsqrt_[factor.atom];
    unit = plans_.Unary(root ? Op::kRsqrt : Op::kReciprocal, base);
    if (root) times = size;
  } else if (size % 2 == 1) {
    items.push_back({plans_.Unary(Op::kSqrt, base)});
  }
  if (times > kMaxRepeated) {
    items.push_back({WholePower(unit, times)});
    return;
  }
  for (int i = 0; i < times; ++i) items.push_back({unit});
}

PlanId Planner::WholePower(PlanId base, int n) {
  std::optional<PlanId> product;
  for (PlanId square = base;; n /= 2) {
    if (n % 2 == 1) {
      product = product ? plans_.Chain(Op::kMul, {Item{*product}, Item{square}}).plan : square;
    }
    if (n < 2) return *product;
    square = plans_.Chain(Op::kMul, {Item{square}, Item{square}}).plan;
  }
}

std::optional<size_t> Planner::Absorbs(const Term& term) const {
  const Coefficient& c = term.coefficient;
  if (c.IsOne()) return std::nullopt;
  for (size_t i = 0; i < term.factors.size(); ++i) {
    const Factor& factor = term.factors[i];
    const Atom& sum = expressions_.atom(factor.atom);
    const int halves = std::abs(factor.halves);
    if (sum.kind != AtomKind::kSum || halves > 2 || (halves == 1 && c.negative())) continue;
    // c·s^k = (c^(1/k)·s)^k
    const Coefficient scale = c.Power(2 / factor.halves);
    int before = 1, after = 0;  // multiplications an element
    bool has_constant = false, extreme = false, positive = false;
    for (const TermId id : sum.parts) {
      const Term& part = expressions_.term(id);
      const Coefficient scaled = part.coefficient * scale;
      positive = positive || !scaled.negative();
      if (part.factors.empty()) {
        has_constant = true;
        continue;
      }
      extreme = extreme || std::fabs(part.coefficient.ToDouble()) > kMaxRatio;
      before += !IsUnit(part.coefficient);
      after += !IsUnit(scaled);
    }
    after += !positive;
    // A factor of fewer axes takes the constant at less cost.
    const bool smaller =
        std::any_of(term.factors.begin(), term.factors.end(), [&](const Factor& other) {
          return Size(expressions_.atom(other.atom).axes) < Size(sum.axes);
        });
    const bool saves = after < before || (after == before && has_constant);
    if (extreme || (saves && !smaller)) return i;
  }
  return std::nullopt;
}

// Whether `small` is made of a reduction of `large`'s values, as a mean or maximum of them is.
bool Planner::Centres(const Term& small, const Term& large) const {
  for (const Factor& factor : small.factors) {
    const Atom& reduction = expressions_.atom(factor.atom);
    if (!IsReduction(reduction)) continue;
    for (const Factor& inner : expressions_.term(reduction.parts[0]).factors) {
      if (Size(expressions_.atom(inner.atom).axes) == 0) continue;
      for (const Factor& outer : large.factors) {
        if (outer.atom == inner.atom) return true;
      }
    }
  }
  return false;
}

// The items of a sum; values stand with what centres them.
std::vector<Items> Planner::CentredGroups(AtomId id, const Coefficient& coefficient) {
  const auto parts = expressions_.atom(id).parts;
  const uint8_t axes = expressions_.atom(id).axes;
  absl::InlinedVector<Term, 4> terms;
  for (const TermId part : parts) terms.push_back(expressions_.term(part));
  std::vector<Items> groups;
  std::vector<size_t> group_of(terms.size());
  for (size_t i = 0; i < terms.size(); ++i) {
    Term& term = terms[i];
    term.coefficient = term.coefficient * coefficient;
    const Item item = Signed(expressions_.Intern(term));
    size_t group = groups.size();
    const uint8_t own = expressions_.AxesOf(term);
    for (size_t j = 0; j < i && own != axes; ++j) {
      if (expressions_.AxesOf(terms[j]) != axes || !Centres(term, terms[j])) continue;
      group = group_of[j];
      break;
    }
    group_of[i] = group;
    if (group == groups.size()) groups.emplace_back();
    groups[group].push_back(item);
  }
  return groups;
}

Item Planner::Sum(AtomId id, const Coefficient& coefficient) {
  std::vector<Items> groups = CentredGroups(id, coefficient);
  if (groups.size() == 1) return plans_.Chain(Op::kAdd, std::move(groups[0]));
  Items items;
  for (Items& group : groups) items.push_back(plans_.Chain(Op::kAdd, std::move(group)));
  // Where something is subtracted, terms of fewer axes stay apart: x - m + b may cancel, and b - m
  // would round at the size of m.
  const bool subtracts =
      std::any_of(items.begin(), items.end(), [](const Item& i) { return i.negative; });
  return subtracts ? plans_.Chain(Op::kAdd, std::move(items))
                   : Levelled(Op::kAdd, std::move(items));
}

Item Planner::Levelled(Op op, Items items) {
  uint8_t all = 0;
  for (const Item& item : items) all |= plans_[item.plan].axes;
  struct Level {
    uint8_t axes;
    Items items;
  };
  std::vector<Level> levels;
  const auto append = [&](const Item& item, uint8_t axes) {
    for (Level& level : levels) {
      if (level.axes == axes) return level.items.push_back(item);
    }
    levels.push_back({axes, {item}});
  };
  for (const Item& item : items) append(item, plans_[item.plan].axes);
  std::sort(levels.begin(), levels.end(), [](const Level& a, const Level& b) {
    return std::make_pair(Size(a.axes), a.axes) < std::make_pair(Size(b.axes), b.axes);
  });
  Items top;
  for (size_t i = 0; i < levels.size(); ++i) {
    Level& level = levels[i];
    if (level.axes == all) {
      top.insert(top.end(), level.items.begin(), level.items.end());
      continue;
    }
    // Scalars of the launch go one by one, to whatever is next.
    const bool scalars = std::all_of(level.items.begin(), level.items.end(),
                                     [&](const Item& item) { return plans_[item.plan].scalar; });
    Level* target = nullptr;
    for (size_t j = i + 1; j < levels.size() && target == nullptr; ++j) {
      const bool holds = (level.axes & ~levels[j].axes) == 0;
      if (holds && (scalars || levels[j].axes != all)) target = &levels[j];
    }
    Items moved = level.items;
    if (!scalars) moved = {plans_.Chain(op, level.items)};
    Items& into = target == nullptr ? top : target->items;
    into.insert(into.end(), moved.begin(), moved.end());
  }
  return plans_.Chain(op, std::move(top));
}

}  // namespace fusiond::passes
