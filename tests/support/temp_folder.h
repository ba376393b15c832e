// A folder of a test's own, removed with all its content at the end.
#ifndef FUSIOND_TESTS_SUPPORT_TEMP_FOLDER_H_
#define FUSIOND_TESTS_SUPPORT_TEMP_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "runtime/base/check.h"

namespace fusiond::testing {

class TempFolder {
 public:
  TempFolder() : path_(::testing::TempDir() + "/fusiond_test_XXXXXX") {
    FUSIOND_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SUPPORT_TEMP_FOLDER_H_
