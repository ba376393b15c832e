#include "compiler/ir/attributes.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace fusiond::ir {
namespace {

struct NamedKey {
  AttributeKey key;
  absl::string_view name;
};

constexpr NamedKey kNames[] = {
    {AttributeKey::kValue, "value"},
    {AttributeKey::kDtype, "dtype"},
    {AttributeKey::kShape, "shape"},
    {AttributeKey::kDims, "dims"},
    {AttributeKey::kKeepdim, "keepdim"},
    {AttributeKey::kCorrection, "correction"},
    {AttributeKey::kIsBroadcastDim, "is_broadcast_dim"},
    {AttributeKey::kBroadcastDims, "broadcast_dims"},
    {AttributeKey::kContiguity, "contiguity"},
    {AttributeKey::kStrideOrder, "stride_order"},
    {AttributeKey::kHost, "host"},
    {AttributeKey::kStartIndices, "start_indices"},
    {AttributeKey::kEndIndices, "end_indices"},
    {AttributeKey::kPadWidths, "pad_widths"},
    {AttributeKey::kDiagonal, "diagonal"},
};

template <typename T>
const T* Read(const Attribute* attribute) {
  if (attribute == nullptr) return nullptr;
  const T* value = std::get_if<T>(attribute);
  FUSIOND_CHECK(value != nullptr);
  return value;
}

}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<AttributeKey, Attribute>> entries) {
  for (const auto& [key, value] : entries) Set(key, value);
}

void Attributes::Set(AttributeKey key, Attribute value) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), key,
                             [](const auto& entry, AttributeKey k) { return entry.first < k; });
  if (at != entries_.end() && at->first == key) {
    at->second = std::move(value);
  } else {
    entries_.insert(at, {key, std::move(value)});
  }
}

void Attributes::Erase(AttributeKey key) {
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                [key](const auto& entry) { return entry.first == key; }),
                 entries_.end());
}

const Attribute* Attributes::Find(AttributeKey key) const {
  for (const auto& entry : entries_) {
    if (entry.first == key) return &entry.second;
  }
  return nullptr;
}

bool Attributes::Bool(AttributeKey key, bool otherwise) const {
  const bool* value = Read<bool>(Find(key));
  return value == nullptr ? otherwise : *value;
}

int64_t Attributes::Int(AttributeKey key, int64_t otherwise) const {
  const int64_t* value = Read<int64_t>(Find(key));
  return value == nullptr ? otherwise : *value;
}

std::optional<DType> Attributes::Dtype(AttributeKey key) const {
  const DType* value = Read<DType>(Find(key));
  return value == nullptr ? std::nullopt : std::make_optional(*value);
}

const std::vector<int64_t>& Attributes::Ints(AttributeKey key) const {
  static const std::vector<int64_t> kEmpty;
  const auto* value = Read<std::vector<int64_t>>(Find(key));
  return value == nullptr ? kEmpty : *value;
}

const std::vector<bool>& Attributes::Bools(AttributeKey key) const {
  static const std::vector<bool> kEmpty;
  const auto* value = Read<std::vector<bool>>(Find(key));
  return value == nullptr ? kEmpty : *value;
}

absl::string_view AttributeName(AttributeKey key) {
  for (const NamedKey& named : kNames) {
    if (named.key == key) return named.name;
  }
  return "?";
}

std::optional<AttributeKey> AttributeFromName(absl::string_view name) {
  for (const NamedKey& named : kNames) {
    if (named.name == name) return named.key;
  }
  return std::nullopt;
}

}  // namespace fusiond::ir
