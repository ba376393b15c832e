// Runs every file of the folders named on the command line once through a fuzz target: what builds
// without libFuzzer link to it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  size_t replayed = 0;
  for (int i = 1; i < argc; ++i) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      std::ifstream stream(file, std::ios::binary);
      const std::string input{std::istreambuf_iterator<char>(stream), {}};
      std::printf("%s\n", file.c_str());
      std::fflush(stdout);  // the last line names the input that crashed
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
      ++replayed;
    }
  }
  std::printf("%zu inputs\n", replayed);
  return replayed > 0 ? 0 : 1;
}
