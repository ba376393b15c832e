// Which cases of a large set a run takes: all of them with FUSIOND_NIGHTLY set, else one in
// `every`, another one with each commit.
#ifndef FUSIOND_TESTS_SUPPORT_SAMPLE_H_
#define FUSIOND_TESTS_SUPPORT_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace fusiond::testing {

// The first 32 bits of the commit's hash; 0 outside a checkout.
inline uint32_t CommitNumber() {
  static const uint32_t number = [] {
    char text[9] = "0";
    if (std::FILE* pipe = ::popen("git rev-parse HEAD 2>/dev/null", "r")) {
      if (std::fread(text, 1, 8, pipe) != 8) text[0] = '0', text[1] = '\0';
      ::pclose(pipe);
    }
    return static_cast<uint32_t>(std::strtoul(text, nullptr, 16));
  }();
  return number;
}

inline bool InSample(size_t index, size_t every) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  return std::getenv("FUSIOND_NIGHTLY") != nullptr || index % every == CommitNumber() % every;
}

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SUPPORT_SAMPLE_H_
