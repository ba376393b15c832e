#include "server/cache/negative_entries.h"

#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace fusiond::cache {
namespace {

bool MayBeKept(absl::StatusCode code) {
  return code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kUnimplemented ||
         code == absl::StatusCode::kInternal;
}

// Never cuts inside a UTF-8 character: a continuation byte is 0b10xxxxxx.
absl::string_view Shorten(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

bool NegativeEntries::Add(const RequestKey& key, const absl::Status& failure) {
  if (!MayBeKept(failure.code())) return false;
  absl::string_view text = Shorten(failure.message(), kMaxMessageBytes);
  std::string message(text);
  if (text.size() < failure.message().size()) {
    absl::StrAppend(&message, "… (", failure.message().size(), " bytes in all)");
  }
  base::MutexLock lock(&mutex_);
  DropExpired();
  if (auto at = index_.find(key); at != index_.end()) {
    by_age_.erase(at->second);
    index_.erase(at);
  }
  if (index_.size() >= kMaxEntries) {
    index_.erase(by_age_.front().key);
    by_age_.pop_front();
  }
  by_age_.push_back({key, absl::Status(failure.code(), message), clock_.Now() + ttl_});
  index_[key] = std::prev(by_age_.end());
  return true;
}

std::optional<absl::Status> NegativeEntries::Find(const RequestKey& key) {
  base::MutexLock lock(&mutex_);
  DropExpired();
  auto at = index_.find(key);
  if (at == index_.end()) return std::nullopt;
  return at->second->failure;
}

void NegativeEntries::Remove(const RequestKey& key) {
  base::MutexLock lock(&mutex_);
  auto at = index_.find(key);
  if (at == index_.end()) return;
  by_age_.erase(at->second);
  index_.erase(at);
}

void NegativeEntries::Clear() {
  base::MutexLock lock(&mutex_);
  index_.clear();
  by_age_.clear();
}

size_t NegativeEntries::Size() const {
  base::MutexLock lock(&mutex_);
  return index_.size();
}

void NegativeEntries::DropExpired() {
  const absl::Duration now = clock_.Now();
  while (!by_age_.empty() && by_age_.front().expires <= now) {
    index_.erase(by_age_.front().key);
    by_age_.pop_front();
  }
}

}  // namespace fusiond::cache
