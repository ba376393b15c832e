// Attributes of a node: a short list of (key, value), sorted by key, each key at most once.
//
// Thread-safety: thread-compatible values.
#ifndef FUSIOND_COMPILER_IR_ATTRIBUTES_H_
#define FUSIOND_COMPILER_IR_ATTRIBUTES_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/types.h"

namespace fusiond::ir {

// The order is the order of printing. The numbers are those of fusiond.v1.AttributeKey.
enum class AttributeKey : uint8_t {
  kValue = 1,  // constant: bool, i64 or f64 (kind kNumber)
  kDtype = 2,  // cast, full, iota, uniform, normal, sum, prod; constant (default: bool, i64 or f64
               // by its kind)
  // broadcast_in_dim, full, iota, reshape, uniform, normal: extents, -1 = the next scalar operand;
  // expand: -1 = keep
  kShape = 3,
  // reductions, squeeze, size (one entry): non-negative, strictly increasing; permute; cat,
  // index_select, gather, take_along_axis (one entry)
  kDims = 4,
  kKeepdim = 5,         // reductions
  kCorrection = 6,      // var, var_mean
  kIsBroadcastDim = 7,  // broadcast
  kBroadcastDims = 8,   // broadcast_in_dim
  kContiguity = 9,      // input: kContiguous, … a dim, by allocation order, outermost first
  kStrideOrder = 10,    // input: rank of each dim's stride, 0 = smallest
  kHost = 11,           // input: a 0-dim tensor in host memory
  kStartIndices = 12,   // slice: one a dim
  kEndIndices = 13,     // slice: one a dim, behind its last element
  kPadWidths = 14,      // pad: before and behind, for the last dim, then the one before it, …
  kDiagonal = 15,       // triu
};

// kNumber: kBool, kInt or kFloat.
enum class AttributeKind : uint8_t { kBool, kInt, kFloat, kNumber, kDType, kInts, kBools };

// A constant's value keeps its own kind, so that i64 survives beyond 2^53.
using Number = std::variant<bool, int64_t, double>;

// kContiguity entries. kBroadcastDim: the extent is 1, or the dim is expanded (stride 0), so that
// contiguity does not apply.
inline constexpr int64_t kNotContiguous = 0;
inline constexpr int64_t kContiguous = 1;
inline constexpr int64_t kBroadcastDim = 2;

using Attribute =
    std::variant<bool, int64_t, double, DType, std::vector<int64_t>, std::vector<bool>>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<AttributeKey, Attribute>> entries);

  void Set(AttributeKey key, Attribute value);
  void Erase(AttributeKey key);
  const Attribute* Find(AttributeKey key) const;  // nullptr when absent

  // Typed reads; `otherwise` when absent. Requires (verified for every node of a valid graph): the
  // stored kind matches.
  bool Bool(AttributeKey key, bool otherwise = false) const;
  int64_t Int(AttributeKey key, int64_t otherwise = 0) const;
  std::optional<DType> Dtype(AttributeKey key) const;
  const std::vector<int64_t>& Ints(AttributeKey key) const;  // empty when absent
  const std::vector<bool>& Bools(AttributeKey key) const;

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool operator==(const Attributes&) const = default;

 private:
  absl::InlinedVector<std::pair<AttributeKey, Attribute>, 2> entries_;  // sorted by key
};

absl::string_view AttributeName(AttributeKey key);  // "value", "dtype", "is_broadcast_dim", …
std::optional<AttributeKey> AttributeFromName(absl::string_view name);

}  // namespace fusiond::ir

#endif  // FUSIOND_COMPILER_IR_ATTRIBUTES_H_
