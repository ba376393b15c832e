// Byte encoding: README.md, "Graph hash". Numbers of enums that grow are not part of it: ops are
// named, attribute keys and dtypes keep the numbers that the wire format fixes.
#include "compiler/ir/hash.h"

#include <cstring>

namespace fusiond::ir {
namespace {

uint64_t Bits(double value) {
  if (value != value) return 0x7ff8000000000000;  // all NaNs are one
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

class AttributeHasher {
 public:
  explicit AttributeHasher(base::FieldHasher& hasher) : hasher_(hasher) {}

  void operator()(bool value) { Kind(1).Field(uint64_t{value}); }
  void operator()(int64_t value) { Kind(2).Field(static_cast<uint64_t>(value)); }
  void operator()(double value) { Kind(3).Field(Bits(value)); }
  void operator()(DType value) { Kind(4).Field(static_cast<uint64_t>(value)); }
  void operator()(const std::vector<int64_t>& values) {
    Kind(5).Field(uint64_t{values.size()});
    for (const int64_t value : values) hasher_.Field(static_cast<uint64_t>(value));
  }
  void operator()(const std::vector<bool>& values) {
    Kind(6).Field(uint64_t{values.size()});
    for (const bool value : values) hasher_.Field(uint64_t{value});
  }

 private:
  base::FieldHasher& Kind(uint64_t kind) { return hasher_.Field(kind); }

  base::FieldHasher& hasher_;
};

void HashAttributes(const Attributes& attributes, base::FieldHasher& hasher) {
  hasher.Field(static_cast<uint64_t>(attributes.end() - attributes.begin()));
  for (const auto& [key, value] : attributes) {
    hasher.Field(static_cast<uint64_t>(key));
    std::visit(AttributeHasher(hasher), value);
  }
}

}  // namespace

base::Digest GraphHash(const Graph& graph) {
  Graph canonical = graph;
  canonical.Compact();
  base::FieldHasher hasher;
  hasher.Field("fusiond graph").Field(kGraphHashVersion);
  hasher.Field(uint64_t{canonical.nodes().size()}).Field(uint64_t{canonical.inputs().size()});
  for (const Node& node : canonical.nodes()) {
    hasher.Field(Info(node.op).name);
    hasher.Field(uint64_t{node.operands.size()});
    for (const ValueId operand : node.operands) hasher.Field(uint64_t{operand});
    HashAttributes(node.attributes, hasher);
    if (node.op != Op::kInput) continue;  // all other types follow
    const Type& type = canonical.type(node.results[0]);
    hasher.Field(static_cast<uint64_t>(type.dtype)).Field(uint64_t{type.scalar});
    hasher.Field(uint64_t{type.shape.size()});
    for (const int64_t extent : type.shape) hasher.Field(static_cast<uint64_t>(extent));
  }
  hasher.Field(uint64_t{canonical.outputs().size()});
  for (const Output& output : canonical.outputs()) {
    hasher.Field(uint64_t{output.value});
    hasher.Field(output.alias_input ? uint64_t{*output.alias_input} + 1 : 0);
  }
  return hasher.Finish();
}

}  // namespace fusiond::ir
