// The three keys of the cache and what each is made of.
//
//   request key    names a compile request before anything is compiled
//   canonical key  the same fields over the canonical graph: requests that canonicalise alike share
//                  one executable
//   image key      names one kernel image: equal kernels of different graphs compile once
//
// A key is the SHA-256 of its material's encoding (fields.h), which starts with the kind of key and
// kKeySchemaVersion. The encoding itself stands in every record, so that a hit is compared field by
// field and a miss can be explained. Everything that may change the compiled code is a field;
// nothing else is: no path, process, device ordinal or time. The fields are listed in FORMAT.md.
//
// Thread-safety: pure functions over values. Cost: linear in the material; one SHA-256.
#ifndef FUSIOND_SERVER_CACHE_KEYS_H_
#define FUSIOND_SERVER_CACHE_KEYS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/sha256.h"

namespace fusiond::cache {

// Bump when a field is added, removed or changes its meaning; the golden keys of keys_test change
// with it.
inline constexpr uint64_t kKeySchemaVersion = 1;

// A digest that cannot be taken for another kind of key.
template <typename Tag>
struct TypedKey {
  base::Digest digest;

  std::string Hex() const { return digest.Hex(); }
  bool operator==(const TypedKey& other) const { return digest == other.digest; }
  bool operator<(const TypedKey& other) const {
    return digest.View().compare(other.digest.View()) < 0;
  }
  template <typename H>
  friend H AbslHashValue(H h, const TypedKey& key) {
    return H::combine(std::move(h), key.digest);
  }
};
using RequestKey = TypedKey<struct RequestKeyTag>;
using CanonicalKey = TypedKey<struct CanonicalKeyTag>;
using ImageKey = TypedKey<struct ImageKeyTag>;

// Of a request key; of a canonical key when `graph` is the canonical graph's hash.
struct KeyMaterial {
  base::Digest graph;                          // graph hash
  std::string arch;                            // with suffix: "sm_90a", "cpu"
  std::string device_profile;                  // name of the schedule profile, e.g. "h200"
  std::string signature;                       // serialised signature of the inputs
  std::map<std::string, std::string> options;  // every option that may change the code
  uint64_t specialisation_version = 0;
  std::string compiler_version;  // SHA-256 over the compiler's sources, hex
  std::string nvrtc;  // NVRTC identity: version and build ids; empty for an arch without NVRTC
  bool operator==(const KeyMaterial&) const = default;
};

struct ImageKeyMaterial {
  std::string source;                // the kernel's text
  std::vector<std::string> options;  // exactly what NVRTC is passed, in order
  std::string arch;
  std::string nvrtc;
  bool operator==(const ImageKeyMaterial&) const = default;
};

// The bytes that the key is the SHA-256 of.
std::string EncodeRequestMaterial(const KeyMaterial& material);
std::string EncodeCanonicalMaterial(const KeyMaterial& material);
std::string EncodeImageMaterial(const ImageKeyMaterial& material);

// DATA_LOSS when the bytes are not exactly what the encoder writes for some material (of another
// kind or schema version, for one).
absl::StatusOr<KeyMaterial> DecodeRequestMaterial(absl::string_view bytes);
absl::StatusOr<KeyMaterial> DecodeCanonicalMaterial(absl::string_view bytes);
absl::StatusOr<ImageKeyMaterial> DecodeImageMaterial(absl::string_view bytes);

RequestKey RequestKeyOf(const KeyMaterial& material);

// What a look-up needs of a request, for whoever asks for it more than once.
struct EncodedRequest {
  base::Digest graph;
  std::string material;  // encoded
  RequestKey key;
};
EncodedRequest EncodeRequest(const KeyMaterial& material);
CanonicalKey CanonicalKeyOf(const KeyMaterial& material);
ImageKey ImageKeyOf(const ImageKeyMaterial& material);

// KeyMaterial::signature for people; escaped where it is none.
std::string SignatureText(const std::string& encoded);

// One field of a key in readable form.
struct KeyField {
  std::string name;   // "arch", "option math", …
  std::string value;  // escaped where the bytes are not text; a signature is decoded
  bool operator==(const KeyField&) const = default;
};
// Every field, in the order of the encoding.
std::vector<KeyField> Describe(const KeyMaterial& material);

struct KeyDifference {
  std::string name;
  std::string wanted;  // "(absent)" when only `found` has the field
  std::string found;
};
std::vector<KeyDifference> Differences(const KeyMaterial& wanted, const KeyMaterial& found);

}  // namespace fusiond::cache

#endif  // FUSIOND_SERVER_CACHE_KEYS_H_
