// Counts this process's open descriptors, to show that none leaks.
#ifndef FUSIOND_TESTS_CHANNEL_OPEN_FDS_H_
#define FUSIOND_TESTS_CHANNEL_OPEN_FDS_H_

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace fusiond::testing {

inline size_t OpenFds() {
  std::filesystem::directory_iterator fds("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(fds), end(fds)));
}

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_CHANNEL_OPEN_FDS_H_
