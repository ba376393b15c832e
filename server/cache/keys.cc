#include "server/cache/keys.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/executable/signature.h"
#include "server/cache/fields.h"

namespace fusiond::cache {
namespace {

constexpr absl::string_view kRequestDomain = "fusiond.key.request";
constexpr absl::string_view kCanonicalDomain = "fusiond.key.canonical";
constexpr absl::string_view kImageDomain = "fusiond.key.image";
constexpr absl::string_view kAbsent = "(absent)";

std::string Encode(absl::string_view domain, const KeyMaterial& material) {
  FieldWriter writer;
  writer.Field(domain).Field(kKeySchemaVersion);
  writer.Field(material.graph).Field(material.arch).Field(material.device_profile);
  writer.Field(material.signature).Field(uint64_t{material.options.size()});
  for (const auto& [name, value] : material.options) writer.Field(name).Field(value);
  writer.Field(material.specialisation_version);
  writer.Field(material.compiler_version).Field(material.nvrtc);
  return std::move(writer).Finish();
}

absl::Status CheckStart(absl::string_view domain, FieldReader& reader) {
  if (reader.Bytes() != domain) return absl::DataLossError(absl::StrCat("not a ", domain));
  const uint64_t version = reader.Number();
  if (version != kKeySchemaVersion) {
    return absl::DataLossError(
        absl::StrCat(domain, ": schema version ", version, ", this is ", kKeySchemaVersion));
  }
  return absl::OkStatus();
}

absl::StatusOr<KeyMaterial> Decode(absl::string_view domain, absl::string_view bytes) {
  FieldReader reader(bytes);
  FUSIOND_RETURN_IF_ERROR(CheckStart(domain, reader));
  KeyMaterial material;
  material.graph = reader.Digest();
  material.arch = std::string(reader.Bytes());
  material.device_profile = std::string(reader.Bytes());
  material.signature = std::string(reader.Bytes());
  for (uint64_t left = reader.Number(); left > 0 && reader.ok(); --left) {
    std::string name(reader.Bytes());
    material.options[std::move(name)] = std::string(reader.Bytes());
  }
  material.specialisation_version = reader.Number();
  material.compiler_version = std::string(reader.Bytes());
  material.nvrtc = std::string(reader.Bytes());
  FUSIOND_RETURN_IF_ERROR(reader.Finish(domain));
  if (Encode(domain, material) != bytes) {
    return absl::DataLossError(absl::StrCat(domain, ": options out of order or repeated"));
  }
  return material;
}

}  // namespace

std::string EncodeRequestMaterial(const KeyMaterial& material) {
  return Encode(kRequestDomain, material);
}

std::string EncodeCanonicalMaterial(const KeyMaterial& material) {
  return Encode(kCanonicalDomain, material);
}

std::string EncodeImageMaterial(const ImageKeyMaterial& material) {
  FieldWriter writer;
  writer.Field(kImageDomain).Field(kKeySchemaVersion).Field(material.source);
  writer.Field(uint64_t{material.options.size()});
  for (const std::string& option : material.options) writer.Field(option);
  writer.Field(material.arch).Field(material.nvrtc);
  return std::move(writer).Finish();
}

absl::StatusOr<KeyMaterial> DecodeRequestMaterial(absl::string_view bytes) {
  return Decode(kRequestDomain, bytes);
}

absl::StatusOr<KeyMaterial> DecodeCanonicalMaterial(absl::string_view bytes) {
  return Decode(kCanonicalDomain, bytes);
}

absl::StatusOr<ImageKeyMaterial> DecodeImageMaterial(absl::string_view bytes) {
  FieldReader reader(bytes);
  FUSIOND_RETURN_IF_ERROR(CheckStart(kImageDomain, reader));
  ImageKeyMaterial material;
  material.source = std::string(reader.Bytes());
  for (uint64_t left = reader.Number(); left > 0 && reader.ok(); --left) {
    material.options.emplace_back(reader.Bytes());
  }
  material.arch = std::string(reader.Bytes());
  material.nvrtc = std::string(reader.Bytes());
  FUSIOND_RETURN_IF_ERROR(reader.Finish(kImageDomain));
  return material;
}

RequestKey RequestKeyOf(const KeyMaterial& material) {
  return {base::Sha256(EncodeRequestMaterial(material))};
}

EncodedRequest EncodeRequest(const KeyMaterial& material) {
  EncodedRequest encoded;
  encoded.graph = material.graph;
  encoded.material = EncodeRequestMaterial(material);
  encoded.key = RequestKey{base::Sha256(encoded.material)};
  return encoded;
}

CanonicalKey CanonicalKeyOf(const KeyMaterial& material) {
  return {base::Sha256(EncodeCanonicalMaterial(material))};
}

ImageKey ImageKeyOf(const ImageKeyMaterial& material) {
  return {base::Sha256(EncodeImageMaterial(material))};
}

std::string SignatureText(const std::string& encoded) {
  const absl::StatusOr<executable::Signature> signature = executable::Signature::Decode(encoded);
  return signature.ok() ? signature->ToString() : absl::CEscape(encoded);
}

std::vector<KeyField> Describe(const KeyMaterial& material) {
  std::vector<KeyField> fields = {
      {"key schema", absl::StrCat(kKeySchemaVersion)},
      {"graph", material.graph.Hex()},
      {"arch", absl::CEscape(material.arch)},
      {"profile", absl::CEscape(material.device_profile)},
      {"signature", SignatureText(material.signature)},
  };
  for (const auto& [name, value] : material.options) {
    fields.push_back({absl::StrCat("option ", absl::CEscape(name)), absl::CEscape(value)});
  }
  fields.push_back({"specialisation", absl::StrCat(material.specialisation_version)});
  fields.push_back({"compiler", absl::CEscape(material.compiler_version)});
  fields.push_back({"nvrtc", absl::CEscape(material.nvrtc)});
  return fields;
}

std::vector<KeyDifference> Differences(const KeyMaterial& wanted, const KeyMaterial& found) {
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (KeyField& field : Describe(wanted)) {
    values[field.name] = {std::move(field.value), std::string(kAbsent)};
  }
  for (KeyField& field : Describe(found)) {
    auto [at, inserted] = values.try_emplace(field.name, std::string(kAbsent), std::string());
    at->second.second = std::move(field.value);
  }
  std::vector<KeyDifference> differences;
  for (auto& [name, pair] : values) {
    if (pair.first == pair.second) continue;
    differences.push_back({name, std::move(pair.first), std::move(pair.second)});
  }
  return differences;
}

}  // namespace fusiond::cache
