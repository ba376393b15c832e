// Any bytes as a cache record, as what stands inside one, and as names of entries: no decoder
// crashes, and whatever one accepts is exactly what its encoder writes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/check.h"
#include "server/cache/blob_files.h"
#include "server/cache/entries.h"
#include "server/cache/keys.h"
#include "server/cache/record.h"

namespace fusiond::cache {
namespace {

void CheckRecord(absl::string_view bytes) {
  absl::StatusOr<RecordView> view = DecodeRecord(bytes);
  if (!view.ok()) return;
  const std::string again = view->blob.has_value()
                                ? EncodeRecord(view->kind, view->material, *view->blob)
                                : EncodeRecord(view->kind, view->material, view->payload);
  FUSIOND_CHECK(again == bytes);
}

void CheckMaterial(absl::string_view bytes) {
  if (auto request = DecodeRequestMaterial(bytes); request.ok()) {
    FUSIOND_CHECK(EncodeRequestMaterial(*request) == bytes);
    FUSIOND_CHECK(!Describe(*request).empty());
  }
  if (auto canonical = DecodeCanonicalMaterial(bytes); canonical.ok()) {
    FUSIOND_CHECK(EncodeCanonicalMaterial(*canonical) == bytes);
  }
  if (auto image = DecodeImageMaterial(bytes); image.ok()) {
    FUSIOND_CHECK(EncodeImageMaterial(*image) == bytes);
  }
}

void CheckEntries(absl::string_view bytes) {
  if (auto entry = DecodeRequestEntry(bytes); entry.ok()) FUSIOND_CHECK(Encode(*entry) == bytes);
  if (auto origin = DecodeExecutableOrigin(bytes); origin.ok()) {
    FUSIOND_CHECK(Encode(*origin) == bytes);
  }
  if (auto entry = DecodeJournalEntry(bytes); entry.ok()) FUSIOND_CHECK(Encode(*entry) == bytes);
  if (auto key = RecordKey::FromBytes(bytes); key.ok()) FUSIOND_CHECK(key->bytes() == bytes);
  BlobFiles::Parse(bytes);
}

}  // namespace
}  // namespace fusiond::cache

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  fusiond::cache::CheckRecord(bytes);
  fusiond::cache::CheckMaterial(bytes);
  fusiond::cache::CheckEntries(bytes);
  return 0;
}
