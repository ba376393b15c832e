#include "compiler/passes/algebra/share.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace fusiond::passes {
namespace {

// Two items of one chain, in the order of plans; `opposite`: one is subtracted, one added.
struct Pair {
  PlanId first;
  PlanId second;
  bool opposite;
  bool operator==(const Pair&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Pair& pair) {
    return H::combine(std::move(h), pair.first, pair.second, pair.opposite);
  }
};

class Sharer {
 public:
  Sharer(Plans& plans, absl::Span<const PlanId> roots, ir::Op op) : plans_(plans), op_(op) {
    std::vector<bool> seen(plans.size());
    std::vector<PlanId> stack(roots.begin(), roots.end());
    while (!stack.empty()) {
      const PlanId id = stack.back();
      stack.pop_back();
      if (seen[id]) continue;
      seen[id] = true;
      if (plans[id].kind == PlanKind::kChain && plans[id].op == op) Count(id, +1);
      for (const Item& item : plans[id].items) stack.push_back(item.plan);
    }
    for (const auto& [pair, chains] : chains_) Push(pair);
  }

  int64_t work() const { return work_; }

  void Run() {
    while (!queue_.empty()) {
      ++work_;
      const Candidate best = queue_.top();
      queue_.pop();
      const size_t count = chains_[best.pair].size();
      if (count < 2) continue;
      if (count != best.count) {
        Push(best.pair);
        continue;
      }
      Extract(best.pair);
    }
  }

 private:
  struct Candidate {
    size_t count;
    int rank;
    Pair pair;
  };
  struct Worse {
    const Plans* plans;
    bool operator()(const Candidate& a, const Candidate& b) const {
      if (a.count != b.count) return a.count < b.count;
      if (a.rank != b.rank) return a.rank > b.rank;
      const auto key = [this](const Pair& pair) {
        const Plan& first = (*plans)[pair.first];
        const Plan& second = (*plans)[pair.second];
        return std::make_tuple(-static_cast<int64_t>(first.height), first.hash, second.height,
                               second.hash, pair.opposite);
      };
      return key(b.pair) < key(a.pair);
    }
  };

  int Rank(const Pair& pair) const {
    const Plan& first = plans_[pair.first];
    const Plan& second = plans_[pair.second];
    if (first.scalar && second.scalar) return 3;
    if (first.kind == PlanKind::kConstant || second.kind == PlanKind::kConstant) return 2;
    return first.axes == second.axes ? 1 : 0;
  }

  void Push(const Pair& pair) {
    const size_t count = chains_[pair].size();
    if (count >= 2 && Rank(pair) < 3) queue_.push({count, Rank(pair), pair});
  }

  // Enters (+1) or takes out (-1) the pairs of a chain; each once, however often it stands there.
  void Count(PlanId chain, int by) {
    const Items& items = plans_[chain].items;
    std::vector<Pair> pairs;
    for (size_t i = 0; i < items.size(); ++i) {
      for (size_t j = i + 1; j < items.size(); ++j) pairs.push_back(MakePair(items[i], items[j]));
    }
    work_ += static_cast<int64_t>(pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (std::find(pairs.begin(), pairs.begin() + i, pairs[i]) != pairs.begin() + i) continue;
      std::vector<PlanId>& chains = chains_[pairs[i]];
      const auto at = std::lower_bound(chains.begin(), chains.end(), chain);
      if (by > 0) {
        chains.insert(at, chain);
        touched_.push_back(pairs[i]);
      } else {
        chains.erase(at);
      }
    }
  }

  static bool IsPositive(const Item& item) { return !item.negative; }

  Pair MakePair(const Item& a, const Item& b) const {
    const bool opposite = a.negative != b.negative;
    return plans_.Less(b.plan, a.plan) ? Pair{b.plan, a.plan, opposite}
                                       : Pair{a.plan, b.plan, opposite};
  }

  void Extract(const Pair& pair) {
    const PlanId shared =
        plans_.Chain(op_, {Item{pair.first}, Item{pair.second, pair.opposite}}).plan;
    const std::vector<PlanId> chains = chains_[pair];
    touched_.clear();
    for (const PlanId chain : chains) {
      if (plans_[chain].items.size() > 2) Replace(chain, pair, shared);
    }
    for (const Pair& touched : touched_) Push(touched);
  }

  void Replace(PlanId chain, const Pair& pair, PlanId shared) {
    Count(chain, -1);
    Items items = plans_[chain].items;
    for (size_t i = 0; i < items.size(); ++i) {
      for (size_t j = 0; j < items.size(); ++j) {
        if (i == j || items[i].plan != pair.first || items[j].plan != pair.second ||
            (items[i].negative != items[j].negative) != pair.opposite) {
          continue;
        }
        bool negative = items[i].negative;
        items.erase(items.begin() + std::max(i, j));
        items.erase(items.begin() + std::min(i, j));
        if (negative && std::none_of(items.begin(), items.end(), IsPositive)) {
          // A sum begins with a positive item: the difference the other way round.
          shared = plans_.Chain(op_, {Item{pair.second}, Item{pair.first, true}}).plan;
          negative = false;
        }
        items.push_back({shared, negative});
        plans_.Sort(items);
        plans_.SetItems(chain, std::move(items));
        Count(chain, +1);
        return;
      }
    }
    Count(chain, +1);
  }

  Plans& plans_;
  const ir::Op op_;
  absl::flat_hash_map<Pair, std::vector<PlanId>> chains_;  // that contain a pair, by id
  std::priority_queue<Candidate, std::vector<Candidate>, Worse> queue_{Worse{&plans_}};
  std::vector<Pair> touched_;
  int64_t work_ = 0;
};

}  // namespace

int64_t ShareItems(Plans& plans, absl::Span<const PlanId> roots, ir::Op op) {
  Sharer sharer(plans, roots, op);
  sharer.Run();
  return sharer.work();
}

}  // namespace fusiond::passes
