// Requests and compiles of a made-up compiler: everything about number i follows from i.
#ifndef FUSIOND_TESTS_CACHE_SAMPLE_H_
#define FUSIOND_TESTS_CACHE_SAMPLE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "server/cache/cache_types.h"

namespace fusiond::cache {

inline KeyMaterial SampleMaterial(int i) {
  KeyMaterial material;
  material.graph = base::Sha256(absl::StrCat("graph ", i));
  material.arch = "sm_90a";
  material.device_profile = "h200";
  material.signature = "f32[2]";
  material.options = {{"math", "strict"}};
  material.specialisation_version = 1;
  material.compiler_version = "c0ffee";
  material.nvrtc = "13.0+aabb";
  return material;
}

inline RequestBinding SampleRequest(int i) {
  return {SampleMaterial(i), absl::StrCat("graph bytes ", i), absl::StrCat("guards ", i)};
}

inline ImageKeyMaterial SampleImage(int i) {
  return {absl::StrCat("source ", i), {"-DX=1"}, "sm_90a", "13.0+aabb"};
}

inline KeyMaterial SampleCanonical(int i) {
  KeyMaterial material = SampleMaterial(i);
  material.graph = base::Sha256(absl::StrCat("canonical ", i));
  return material;
}

// Every eighth is longer than what stands in a record.
inline std::string SampleExecutable(int i) {
  std::string bytes = absl::StrCat("executable ", i, " ");
  if (i % 8 == 0) bytes.resize(kMaxInlinePayloadBytes + 100, static_cast<char>(i));
  return bytes;
}

inline NewExecutable SampleCompile(int i) {
  return {
      SampleCanonical(i), {{SampleImage(i), absl::StrCat("cubin ", i)}}, {}, SampleExecutable(i)};
}

}  // namespace fusiond::cache

#endif  // FUSIOND_TESTS_CACHE_SAMPLE_H_
