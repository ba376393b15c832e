#include "server/cache/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"
#include "server/cache/entries.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace fusiond::cache {
namespace {

using ::fusiond::testing::StatusIs;
using ::testing::HasSubstr;

constexpr char kGoldenFolder[] = "tests/data/cache/";

std::string InlineRecord() { return EncodeRecord(RecordKind::kImage, "material", "payload"); }
BlobReference Blob() { return {base::Sha256("blob"), 5 << 20}; }
std::string BlobRecord() { return EncodeRecord(RecordKind::kExecutable, "origin", Blob()); }

TEST(RecordTest, InlineRecordRoundTrips) {
  const std::string bytes = InlineRecord();
  ASSERT_OK_AND_ASSIGN(RecordView view, DecodeRecord(bytes));
  EXPECT_EQ(view.kind, RecordKind::kImage);
  EXPECT_EQ(view.material, "material");
  EXPECT_EQ(view.payload, "payload");
  EXPECT_FALSE(view.blob.has_value());
}

TEST(RecordTest, BlobRecordRoundTrips) {
  const std::string bytes = BlobRecord();
  ASSERT_OK_AND_ASSIGN(RecordView view, DecodeRecord(bytes));
  EXPECT_EQ(view.material, "origin");
  EXPECT_EQ(view.payload, "");
  EXPECT_EQ(view.blob, Blob());
}

TEST(RecordTest, F01_EveryFlippedBitIsFound) {
  for (std::string bytes : {InlineRecord(), BlobRecord()}) {
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
      EXPECT_THAT(DecodeRecord(bytes), StatusIs(absl::StatusCode::kDataLoss)) << "bit " << bit;
      bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    }
  }
}

TEST(RecordTest, F01_EveryTruncationAndAnyAppendixIsFound) {
  for (const std::string& bytes : {InlineRecord(), BlobRecord()}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_THAT(DecodeRecord(bytes.substr(0, size)), StatusIs(absl::StatusCode::kDataLoss));
    }
    EXPECT_THAT(DecodeRecord(bytes + '\0'), StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST(RecordTest, DamageIsNamed) {
  auto damaged = [](size_t at, char byte) {
    std::string bytes = InlineRecord();
    bytes[at] = byte;
    return DecodeRecord(bytes).status();
  };
  EXPECT_THAT(damaged(0, 'X'), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("magic")));
  EXPECT_THAT(damaged(4, 9), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("version 9")));
  EXPECT_THAT(damaged(6, '?'), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("kind")));
  EXPECT_THAT(damaged(7, 2), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("flags")));
  EXPECT_THAT(damaged(15, 1), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("lengths")));
  EXPECT_THAT(damaged(22, 1), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("payload of")));
  EXPECT_THAT(damaged(24, 1), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("checksum")));
}

TEST(RecordTest, RandomBytesAreRefused) {
  std::mt19937 random(::fusiond::testing::TestSeed());
  for (int i = 0; i < 2000; ++i) {
    // Half of them start like a record.
    std::string bytes = i % 2 == 0 ? InlineRecord().substr(0, 8) : "";
    for (uint32_t n = random() % 64; n > 0; --n) bytes.push_back(static_cast<char>(random()));
    EXPECT_THAT(DecodeRecord(bytes), StatusIs(absl::StatusCode::kDataLoss));
  }
}

// Version 1 is today's: a file of that version is read, and written byte for byte the same.
TEST(RecordGoldenTest, Version1IsReadAndWritten) {
  ASSERT_OK_AND_ASSIGN(std::string image,
                       base::ReadFile(absl::StrCat(kGoldenFolder, "image_v1.bin")));
  ImageKeyMaterial material{"__global__ void k() {}", {"-DX=1"}, "sm_90a", "13.0+aabb"};
  EXPECT_EQ(image, EncodeRecord(RecordKind::kImage, EncodeImageMaterial(material), "cubin"));
  ASSERT_OK_AND_ASSIGN(RecordView view, DecodeRecord(image));
  ASSERT_OK_AND_ASSIGN(ImageKeyMaterial stored, DecodeImageMaterial(view.material));
  EXPECT_EQ(stored, material);
  EXPECT_EQ(view.payload, "cubin");

  ASSERT_OK_AND_ASSIGN(std::string request,
                       base::ReadFile(absl::StrCat(kGoldenFolder, "request_v1.bin")));
  ASSERT_OK_AND_ASSIGN(RecordView request_view, DecodeRecord(request));
  ASSERT_OK_AND_ASSIGN(RequestEntry entry, DecodeRequestEntry(request_view.payload));
  const RequestEntry expected{7, {{"guards", base::Sha256("executable"), 10, 1700000000}}};
  EXPECT_EQ(entry, expected);
  EXPECT_EQ(request, EncodeRecord(RecordKind::kRequest, request_view.material, Encode(expected)));
}

// A version that this program does not write is damage: a miss, deleted, compiled anew.
TEST(RecordGoldenTest, OtherVersionIsDamage) {
  ASSERT_OK_AND_ASSIGN(std::string bytes,
                       base::ReadFile(absl::StrCat(kGoldenFolder, "image_v2.bin")));
  EXPECT_THAT(DecodeRecord(bytes),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("format version 2, this is 1")));
}

TEST(RecordKeyTest, BytesRoundTrip) {
  const base::Digest a = base::Sha256("a"), b = base::Sha256("b");
  for (const RecordKey& key :
       {RecordKey::Of(RequestKey{a}), RecordKey::Of(CanonicalKey{a}), RecordKey::Of(ImageKey{a}),
        RecordKey::Executable(a), RecordKey::Graph(a), RecordKey::Journal(a, RequestKey{b})}) {
    ASSERT_OK_AND_ASSIGN(RecordKey back, RecordKey::FromBytes(key.bytes()));
    EXPECT_EQ(back, key);
    EXPECT_EQ(back.kind(), key.kind());
    EXPECT_EQ(back.first(), a);
    EXPECT_THAT(RecordKey::FromBytes(key.bytes().substr(1)), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(RecordKey::FromBytes(key.bytes() + "x"), StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_EQ(RecordKey::Journal(a, RequestKey{b}).second(), b);
  EXPECT_THAT(RecordKey::FromBytes(""), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(RequestEntryTest, NewGuardsAreAddedSameGuardsReplaced) {
  RequestEntry entry;
  entry.Put({"general", base::Sha256("1"), 1, 1}, VariantPosition::kLast);
  entry.Put({"other", base::Sha256("2"), 2, 2}, VariantPosition::kLast);
  entry.Put({"tuned", base::Sha256("3"), 3, 3}, VariantPosition::kFirst);
  EXPECT_EQ(entry.revision, 3u);
  ASSERT_EQ(entry.variants.size(), 3u);
  EXPECT_EQ(entry.variants[0].guards, "tuned");
  EXPECT_EQ(entry.variants[2].guards, "other");
  entry.Put({"general", base::Sha256("4"), 4, 4}, VariantPosition::kFirst);
  EXPECT_EQ(entry.revision, 4u);
  EXPECT_EQ(entry.variants[1].executable, base::Sha256("4"));
  entry.Put({"general", base::Sha256("4"), 4, 5}, VariantPosition::kLast);
  EXPECT_EQ(entry.revision, 4u);
  ASSERT_OK_AND_ASSIGN(RequestEntry back, DecodeRequestEntry(Encode(entry)));
  EXPECT_EQ(back, entry);
}

TEST(RequestEntryTest, OldestVariantMakesRoom) {
  RequestEntry entry;
  for (size_t i = 0; i <= kMaxVariants; ++i) {
    const int64_t created = i == 0 ? 2 : i == 1 ? 1 : 10;
    entry.Put({absl::StrCat(i), base::Sha256("x"), 1, created}, VariantPosition::kLast);
  }
  EXPECT_EQ(entry.variants.size(), kMaxVariants);
  EXPECT_EQ(entry.variants[0].guards, "0");
  EXPECT_EQ(entry.variants[1].guards, "2");
}

TEST(EntriesTest, EveryTruncationIsRefused) {
  const std::string request = Encode(RequestEntry{1, {{"g", base::Sha256("e"), 9, 1}}});
  const std::string origin = Encode(ExecutableOrigin{{}, {ImageKey{base::Sha256("i")}}});
  const std::string journal = Encode(JournalEntry{3, -1});
  ASSERT_OK_AND_ASSIGN(ExecutableOrigin origin_back, DecodeExecutableOrigin(origin));
  EXPECT_EQ(origin_back.images.size(), 1u);
  ASSERT_OK_AND_ASSIGN(JournalEntry journal_back, DecodeJournalEntry(journal));
  EXPECT_EQ(journal_back, (JournalEntry{3, -1}));
  auto cuts = [](const std::string& bytes) {
    std::vector<std::string> cuts;
    for (size_t size = 0; size < bytes.size(); ++size) cuts.push_back(bytes.substr(0, size));
    cuts.push_back(bytes + "x");
    return cuts;
  };
  for (const std::string& bytes : cuts(request)) {
    EXPECT_THAT(DecodeRequestEntry(bytes), StatusIs(absl::StatusCode::kDataLoss));
  }
  for (const std::string& bytes : cuts(origin)) {
    EXPECT_THAT(DecodeExecutableOrigin(bytes), StatusIs(absl::StatusCode::kDataLoss));
  }
  for (const std::string& bytes : cuts(journal)) {
    EXPECT_THAT(DecodeJournalEntry(bytes), StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_THAT(DecodeRequestEntry(Encode(RequestEntry{})), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace fusiond::cache
