#include "server/cache/journal.h"

#include <utility>

namespace fusiond::cache {

void Journal::NoteHit(const base::Digest& graph, const RequestKey& key) {
  if (store_ == nullptr) return;
  base::MutexLock lock(&mutex_);
  Uses& uses = noted_[key];
  uses.graph = graph;
  ++uses.count;
}

std::vector<NewRecord> Journal::RecordsFor(const base::Digest& graph, const RequestKey& key,
                                           const std::string& material,
                                           absl::string_view graph_bytes) {
  std::vector<NewRecord> records;
  if (store_ == nullptr) return records;
  const RecordKey journal_key = RecordKey::Journal(graph, key);
  if (!store_->Contains(journal_key)) {
    records.push_back(
        {journal_key, std::make_shared<Record>(Record{material, Encode(JournalEntry{})})});
  }
  const RecordKey graph_key = RecordKey::Graph(graph);
  if (!store_->Contains(graph_key)) {
    records.push_back({graph_key, std::make_shared<Record>(Record{"", std::string(graph_bytes)})});
  }
  return records;
}

std::vector<RecordKey> Journal::KeysOf(const base::Digest& graph, const RequestKey& key) {
  std::vector<RecordKey> keys;
  if (store_ == nullptr) return keys;
  keys.push_back(RecordKey::Journal(graph, key));
  absl::StatusOr<std::vector<RecordKey>> of_graph =
      store_->Keys(RecordKind::kJournal, graph.View(), std::nullopt, 2);
  if (!of_graph.ok()) return keys;
  std::erase(*of_graph, keys.front());
  if (of_graph->empty()) keys.push_back(RecordKey::Graph(graph));
  return keys;
}

JournalEntry Journal::Read(const base::Digest& graph, const RequestKey& key) {
  JournalEntry entry;
  if (store_ == nullptr) return entry;
  if (absl::StatusOr<Record> record = store_->Get(RecordKey::Journal(graph, key)); record.ok()) {
    entry = DecodeJournalEntry(record->payload).value_or(JournalEntry{});
  }
  base::MutexLock lock(&mutex_);
  if (auto at = noted_.find(key); at != noted_.end()) entry.count += at->second.count;
  return entry;
}

void Journal::Flush(int64_t now_unix_s) {
  absl::flat_hash_map<RequestKey, Uses> noted;
  {
    base::MutexLock lock(&mutex_);
    noted.swap(noted_);
  }
  if (noted.empty()) return;
  std::vector<std::pair<RecordKey, Record>> records;
  for (const auto& [key, uses] : noted) {
    const RecordKey journal_key = RecordKey::Journal(uses.graph, key);
    absl::StatusOr<Record> record = store_->Get(journal_key);
    if (!record.ok()) continue;
    JournalEntry entry = DecodeJournalEntry(record->payload).value_or(JournalEntry{});
    entry.count += uses.count;
    entry.last_used_unix_s = now_unix_s;
    records.emplace_back(journal_key, Record{std::move(record->material), Encode(entry)});
  }
  std::vector<StoreWrite> writes;
  writes.reserve(records.size());
  for (const auto& [key, record] : records)
    writes.push_back({key, record.material, record.payload});
  // Counts lost to a disk that refuses are worth no retry.
  if (!writes.empty()) store_->Commit(writes).IgnoreError();
}

}  // namespace fusiond::cache
