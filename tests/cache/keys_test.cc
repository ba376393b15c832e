#include "server/cache/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/executable/signature.h"
#include "server/cache/fields.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace fusiond::cache {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;

KeyMaterial Material() {
  KeyMaterial material;
  for (size_t i = 0; i < material.graph.bytes.size(); ++i) material.graph.bytes[i] = i;
  material.arch = "sm_90a";
  material.device_profile = "h200";
  material.signature = "sig-bytes";
  material.options = {{"math", "strict"}, {"excess_precision", "true"}};
  material.specialisation_version = 1;
  material.compiler_version = "c0ffee";
  material.nvrtc = "13.0+aabb+ccdd";
  return material;
}

ImageKeyMaterial ImageMaterial() {
  return {
      "__global__ void k() {}", {"--gpu-architecture=sm_90a", "-DX=1"}, "sm_90a", "13.0+aabb+ccdd"};
}

// The literals were computed by an independent program from FORMAT.md. If this fails, keys have
// changed: bump kKeySchemaVersion, and then the literals.
TEST(KeysTest, F13_GoldenKeysDoNotMove) {
  EXPECT_EQ(RequestKeyOf(Material()).Hex(),
            "bf85a800e7b74386aa6dd7a405f32919f1c2b2d779429dcdf874bfc28d3130ea");
  EXPECT_EQ(CanonicalKeyOf(Material()).Hex(),
            "8a0760ae32d492e7bb9d41856ecd07f74e9d3d6942221fad8e0d8bf86dc1a89e");
  EXPECT_EQ(ImageKeyOf(ImageMaterial()).Hex(),
            "625bc57140d84862ce2c80d7735db161c120b084bb123800831edd72fb6bd31e");
}

TEST(KeysTest, KeyIsTheFieldHasherDigestOfItsFields) {
  base::FieldHasher hasher;
  const KeyMaterial m = Material();
  hasher.Field("fusiond.key.request").Field(kKeySchemaVersion).Field(m.graph.View());
  hasher.Field(m.arch).Field(m.device_profile).Field(m.signature).Field(uint64_t{2});
  hasher.Field("excess_precision").Field("true").Field("math").Field("strict");
  hasher.Field(uint64_t{1}).Field(m.compiler_version).Field(m.nvrtc);
  EXPECT_EQ(RequestKeyOf(m).digest, hasher.Finish());
}

// F08: the NVRTC identity; F09: options; F15: arch, signature; and every other field.
TEST(KeysTest, F08_F09_F15_EveryFieldChangesTheKey) {
  const std::vector<std::function<void(KeyMaterial&)>> changes = {
      [](KeyMaterial& m) { m.graph.bytes[31] ^= 1; },
      [](KeyMaterial& m) { m.arch = "sm_90"; },
      [](KeyMaterial& m) { m.device_profile = "h100"; },
      [](KeyMaterial& m) { m.signature += '\0'; },
      [](KeyMaterial& m) { m.options["math"] = "fast"; },
      [](KeyMaterial& m) { m.options.erase("math"); },
      [](KeyMaterial& m) { m.options["precision"] = "double"; },
      [](KeyMaterial& m) { m.options["precision"] = ""; },
      [](KeyMaterial& m) { m.specialisation_version = 2; },
      [](KeyMaterial& m) { m.compiler_version = "c0ffef"; },
      [](KeyMaterial& m) { m.nvrtc = "13.0+aabb+ccde"; },
      [](KeyMaterial&) {},
  };
  std::set<std::string> keys;
  for (const auto& change : changes) {
    KeyMaterial material = Material();
    change(material);
    keys.insert(RequestKeyOf(material).Hex());
    keys.insert(CanonicalKeyOf(material).Hex());
  }
  EXPECT_EQ(keys.size(), 2 * changes.size());
}

TEST(KeysTest, F08_F09_EveryFieldChangesTheImageKey) {
  const std::vector<std::function<void(ImageKeyMaterial&)>> changes = {
      [](ImageKeyMaterial& m) { m.source += ' '; },
      [](ImageKeyMaterial& m) { m.options[1] = "-DX=2"; },
      [](ImageKeyMaterial& m) { std::swap(m.options[0], m.options[1]); },
      [](ImageKeyMaterial& m) { m.options.pop_back(); },
      [](ImageKeyMaterial& m) { m.options.push_back(""); },
      [](ImageKeyMaterial& m) { m.arch = "sm_90"; },
      [](ImageKeyMaterial& m) { m.nvrtc = "13.0+aabb+ccde"; },
      [](ImageKeyMaterial&) {},
  };
  std::set<std::string> keys;
  for (const auto& change : changes) {
    ImageKeyMaterial material = ImageMaterial();
    change(material);
    keys.insert(ImageKeyOf(material).Hex());
  }
  EXPECT_EQ(keys.size(), changes.size());
}

// The order in which options were set, and anything outside the material (time, process, earlier
// keys), is not in the key.
TEST(KeysTest, F10_EqualMaterialGivesOneKey) {
  KeyMaterial a = Material();
  KeyMaterial b = Material();
  a.options.clear();
  b.options.clear();
  for (const char* name : {"x", "a", "m"}) a.options[name] = "1";
  for (const char* name : {"m", "x", "a"}) b.options[name] = "1";
  EXPECT_EQ(RequestKeyOf(a), RequestKeyOf(b));
  EXPECT_EQ(EncodeRequestMaterial(a), EncodeRequestMaterial(b));
}

// Strings that look like each other's boundaries: lengths, separators, numbers, the encoding
// itself.
TEST(KeysTest, F11_AdversarialFieldsNeverShareBytes) {
  std::mt19937 random(::fusiond::testing::TestSeed());
  const std::string encoded = EncodeRequestMaterial(Material());
  const std::vector<std::string> pieces = {"",
                                           "a",
                                           "b",
                                           "ab",
                                           "ba",
                                           "=",
                                           "|",
                                           std::string(8, '\0'),
                                           std::string("\1\0\0\0\0\0\0\0", 8),
                                           "\"",
                                           "\n",
                                           encoded,
                                           encoded.substr(8),
                                           "option a"};
  auto pick = [&] { return pieces[random() % pieces.size()]; };
  std::map<std::string, KeyMaterial> seen;
  for (int i = 0; i < 3000; ++i) {
    KeyMaterial m;
    m.arch = pick();
    m.device_profile = pick();
    m.signature = pick();
    m.compiler_version = pick();
    m.nvrtc = pick();
    for (uint32_t n = random() % 3; n > 0; --n) m.options[pick()] = pick();
    auto [at, inserted] = seen.emplace(RequestKeyOf(m).Hex(), m);
    EXPECT_EQ(at->second, m);
    ASSERT_OK_AND_ASSIGN(KeyMaterial back, DecodeRequestMaterial(EncodeRequestMaterial(m)));
    EXPECT_EQ(back, m);
  }
}

TEST(KeysTest, MaterialRoundTrips) {
  ASSERT_OK_AND_ASSIGN(KeyMaterial canonical,
                       DecodeCanonicalMaterial(EncodeCanonicalMaterial(Material())));
  EXPECT_EQ(canonical, Material());
  ASSERT_OK_AND_ASSIGN(ImageKeyMaterial image,
                       DecodeImageMaterial(EncodeImageMaterial(ImageMaterial())));
  EXPECT_EQ(image, ImageMaterial());
}

TEST(KeysTest, MaterialOfAnotherKindIsRefused) {
  EXPECT_THAT(DecodeRequestMaterial(EncodeCanonicalMaterial(Material())),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeCanonicalMaterial(EncodeRequestMaterial(Material())),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeImageMaterial(EncodeRequestMaterial(Material())),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(KeysTest, EveryTruncationIsRefused) {
  for (const std::string& bytes :
       {EncodeRequestMaterial(Material()), EncodeImageMaterial(ImageMaterial())}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_THAT(DecodeRequestMaterial(bytes.substr(0, size)),
                  StatusIs(absl::StatusCode::kDataLoss));
      EXPECT_THAT(DecodeImageMaterial(bytes.substr(0, size)),
                  StatusIs(absl::StatusCode::kDataLoss));
    }
    EXPECT_THAT(DecodeRequestMaterial(bytes + "x"), StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST(KeysTest, OptionsOutOfOrderOrRepeatedAreRefused) {
  auto encoded = [](std::initializer_list<const char*> names) {
    FieldWriter writer;
    writer.Field("fusiond.key.request").Field(kKeySchemaVersion).Field(base::Digest());
    writer.Field("").Field("").Field("").Field(uint64_t{names.size()});
    for (const char* name : names) writer.Field(name).Field("1");
    writer.Field(uint64_t{1}).Field("").Field("");
    return std::move(writer).Finish();
  };
  EXPECT_THAT(DecodeRequestMaterial(encoded({"a", "b"})), IsOk());
  EXPECT_THAT(DecodeRequestMaterial(encoded({"b", "a"})), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeRequestMaterial(encoded({"a", "a"})), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(KeysTest, HugeStoredCountEndsAtTheEndOfTheBytes) {
  FieldWriter writer;
  writer.Field("fusiond.key.image").Field(kKeySchemaVersion).Field("source").Field(~uint64_t{0});
  EXPECT_THAT(DecodeImageMaterial(std::move(writer).Finish()),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(KeysTest, DifferencesNameTheFieldsThatDiffer) {
  KeyMaterial found = Material();
  found.nvrtc = "12.9";
  found.options.erase("math");
  found.options["precision"] = "double";
  std::vector<std::string> texts;
  for (const KeyDifference& d : Differences(Material(), found)) {
    texts.push_back(absl::StrCat(d.name, ": ", d.wanted, " / ", d.found));
  }
  EXPECT_THAT(texts, ::testing::UnorderedElementsAre("nvrtc: 13.0+aabb+ccdd / 12.9",
                                                     "option math: strict / (absent)",
                                                     "option precision: (absent) / double"));
  EXPECT_TRUE(Differences(Material(), Material()).empty());
}

TEST(KeysTest, DescribeDecodesSignatures) {
  executable::Signature signature;
  signature.inputs.resize(2);
  signature.inputs[0].dtype = base::DType::kBFloat16;
  signature.inputs[0].extents = {2048, std::nullopt};
  signature.inputs[1].scalar = true;
  KeyMaterial wanted = Material(), found = Material();
  wanted.signature = signature.Encode();
  signature.inputs[0].extents[0] = 4096;
  found.signature = signature.Encode();
  EXPECT_THAT(Describe(wanted), ::testing::Contains(KeyField{"signature", "bf16[2048,.], f32"}));
  const std::vector<KeyDifference> differences = Differences(wanted, found);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].wanted, "bf16[2048,.], f32");
  EXPECT_EQ(differences[0].found, "bf16[4096,.], f32");
}

TEST(KeysTest, DescribeEscapesWhatIsNotText) {
  KeyMaterial material = Material();
  material.signature = std::string("\0\x01", 2);
  EXPECT_THAT(Describe(material), ::testing::Contains(KeyField{"signature", "\\000\\001"}));
}

}  // namespace
}  // namespace fusiond::cache
