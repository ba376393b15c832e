#include "server/engine/request_memo.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "compiler/ir/types.h"
#include "runtime/base/status_macros.h"
#include "server/cache/fields.h"

namespace fusiond::server {
namespace {

// Nodes of list and index, blocks of the heap (estimate).
constexpr size_t kEntryOverheadBytes = 512;

constexpr int kMaxOptions = 16;  // more than there are

// What is beyond this is refused by PrepareRequest, and not worth hashing first: such a request may
// be large for nothing.
bool MayPass(const v1::CompileRequest& request, const ir::Limits& limits) {
  return static_cast<int64_t>(request.graph().size()) <= limits.max_bytes &&
         request.inputs_size() <= limits.max_inputs_and_outputs &&
         request.options_size() <= kMaxOptions &&
         std::all_of(
             request.inputs().begin(), request.inputs().end(), [](const v1::InputLayout& layout) {
               return layout.shape_size() <= ir::kMaxRank && layout.strides_size() <= ir::kMaxRank;
             });
}

absl::string_view BytesOf(const google::protobuf::RepeatedField<int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)};
}

// Whatever PrepareRequest comes to read must come in here; its limits are the memo's.
base::Digest DigestOf(const v1::CompileRequest& request, const executable::DeviceInfo& device,
                      const KeyContext& context) {
  cache::FieldWriter writer;
  // A profile's name and arch stand for its figures, which no request changes.
  writer.Field(device.arch).Field(device.profile);
  writer.Field(context.compiler_version).Field(context.nvrtc);
  writer.Field(static_cast<uint64_t>(request.options_size()));
  for (const auto& [name, value] :
       std::map<std::string, std::string>(request.options().begin(), request.options().end()))
    writer.Field(name).Field(value);
  writer.Field(static_cast<uint64_t>(request.inputs_size()));
  for (const v1::InputLayout& layout : request.inputs()) {
    writer.Field(BytesOf(layout.shape())).Field(BytesOf(layout.strides()));
    writer.Field(static_cast<uint64_t>(layout.alignment()));
  }
  base::FieldHasher hasher;
  hasher.Field(std::move(writer).Finish()).Field(request.graph());
  return hasher.Finish();
}

size_t BytesOf(const PreparedRequest& prepared) {
  const cache::KeyMaterial& material = prepared.material;
  size_t bytes = kEntryOverheadBytes + sizeof(prepared) + prepared.graph.capacity() +
                 material.signature.capacity() + material.compiler_version.capacity() +
                 material.nvrtc.capacity() + prepared.encoded.material.capacity();
  for (const auto& [name, value] : material.options) bytes += 128 + name.size() + value.size();
  for (const v1::InputLayout& layout : prepared.layouts) bytes += layout.SpaceUsedLong();
  for (const executable::TensorArg& argument : prepared.arguments) {
    bytes += sizeof(argument) +
             (argument.shape.capacity() + argument.strides.capacity()) * sizeof(int64_t);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PreparedRequest>> RequestMemo::Prepare(
    const v1::CompileRequest& request, const executable::DeviceInfo& device,
    const KeyContext& context) {
  std::optional<base::Digest> digest;
  if (MayPass(request, limits_)) {
    digest = DigestOf(request, device, context);
    if (std::shared_ptr<const PreparedRequest> known = Find(*digest)) return known;
  }
  FUSIOND_ASSIGN_OR_RETURN(PreparedRequest checked,
                           PrepareRequest(request, device, context, limits_));
  auto prepared = std::make_shared<const PreparedRequest>(std::move(checked));
  if (digest) Keep(*digest, prepared);
  return prepared;
}

std::shared_ptr<const PreparedRequest> RequestMemo::Find(const base::Digest& digest) {
  base::MutexLock lock(&mutex_);
  const auto at = index_.find(digest);
  if (at == index_.end()) return nullptr;
  used_.splice(used_.begin(), used_, at->second);
  ++hits_;
  return at->second->prepared;
}

void RequestMemo::Keep(const base::Digest& digest,
                       std::shared_ptr<const PreparedRequest> prepared) {
  const size_t bytes = BytesOf(*prepared);
  if (bytes > budget_bytes_) return;
  std::list<Entry> dropped;  // destroyed without the lock
  base::MutexLock lock(&mutex_);
  if (index_.contains(digest)) return;  // two callers at once
  used_.push_front({digest, std::move(prepared), bytes});
  index_[digest] = used_.begin();
  bytes_ += bytes;
  while (bytes_ > budget_bytes_) {
    bytes_ -= used_.back().bytes;
    index_.erase(used_.back().digest);
    dropped.splice(dropped.begin(), used_, std::prev(used_.end()));
  }
}

RequestMemo::Stats RequestMemo::GetStats() const {
  base::MutexLock lock(&mutex_);
  return {used_.size(), bytes_, hits_};
}

}  // namespace fusiond::server
