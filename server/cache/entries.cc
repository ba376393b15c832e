#include "server/cache/entries.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "server/cache/fields.h"

namespace fusiond::cache {

void RequestEntry::Put(Variant variant, VariantPosition position) {
  auto same = std::find_if(variants.begin(), variants.end(),
                           [&](const Variant& v) { return v.guards == variant.guards; });
  if (same != variants.end()) {
    if (same->executable == variant.executable) return;
    *same = std::move(variant);
  } else {
    if (variants.size() >= kMaxVariants) {
      variants.erase(std::min_element(
          variants.begin(), variants.end(),
          [](const Variant& a, const Variant& b) { return a.created_unix_s < b.created_unix_s; }));
    }
    variants.insert(position == VariantPosition::kFirst ? variants.begin() : variants.end(),
                    std::move(variant));
  }
  ++revision;
}

std::string Encode(const RequestEntry& entry) {
  FieldWriter writer;
  writer.Field(entry.revision).Field(uint64_t{entry.variants.size()});
  for (const Variant& variant : entry.variants) {
    writer.Field(variant.guards).Field(variant.executable).Field(variant.executable_bytes);
    writer.Field(static_cast<uint64_t>(variant.created_unix_s));
  }
  return std::move(writer).Finish();
}

absl::StatusOr<RequestEntry> DecodeRequestEntry(absl::string_view bytes) {
  FieldReader reader(bytes);
  RequestEntry entry;
  entry.revision = reader.Number();
  for (uint64_t left = reader.Number(); left > 0 && reader.ok(); --left) {
    Variant& variant = entry.variants.emplace_back();
    variant.guards = std::string(reader.Bytes());
    variant.executable = reader.Digest();
    variant.executable_bytes = reader.Number();
    variant.created_unix_s = static_cast<int64_t>(reader.Number());
  }
  FUSIOND_RETURN_IF_ERROR(reader.Finish("request entry"));
  if (entry.variants.empty()) return absl::DataLossError("request entry: no variants");
  return entry;
}

std::string Encode(const ExecutableOrigin& origin) {
  FieldWriter writer;
  writer.Field(origin.canonical.digest).Field(uint64_t{origin.images.size()});
  for (const ImageKey& image : origin.images) writer.Field(image.digest);
  return std::move(writer).Finish();
}

absl::StatusOr<ExecutableOrigin> DecodeExecutableOrigin(absl::string_view bytes) {
  FieldReader reader(bytes);
  ExecutableOrigin origin;
  origin.canonical.digest = reader.Digest();
  for (uint64_t left = reader.Number(); left > 0 && reader.ok(); --left) {
    origin.images.push_back({reader.Digest()});
  }
  FUSIOND_RETURN_IF_ERROR(reader.Finish("executable origin"));
  return origin;
}

std::string Encode(const JournalEntry& entry) {
  FieldWriter writer;
  writer.Field(entry.count).Field(static_cast<uint64_t>(entry.last_used_unix_s));
  return std::move(writer).Finish();
}

absl::StatusOr<JournalEntry> DecodeJournalEntry(absl::string_view bytes) {
  FieldReader reader(bytes);
  JournalEntry entry;
  entry.count = reader.Number();
  entry.last_used_unix_s = static_cast<int64_t>(reader.Number());
  FUSIOND_RETURN_IF_ERROR(reader.Finish("journal entry"));
  return entry;
}

}  // namespace fusiond::cache
