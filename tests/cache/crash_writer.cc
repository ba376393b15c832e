// crash_writer FOLDER FIRST: commits sample compiles number FIRST, FIRST + 1, … into the cache in
// FOLDER for ever, and writes one byte to standard output after each. Made to be killed.
// Exit status 3: the folder belongs to another process.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

#include "server/cache/cache.h"
#include "server/cache/leveldb_store.h"
#include "tests/cache/sample.h"

int main(int argc, char** argv) {
  using namespace fusiond::cache;  // NOLINT(google-build-using-namespace): a test's main
  if (argc != 3) return 2;
  LevelDbStoreOptions options;
  options.folder = argv[1];
  options.allow_network_fs = true;
  absl::StatusOr<std::unique_ptr<LevelDbStore>> store = LevelDbStore::Create(options);
  if (!store.ok()) {
    std::cerr << store.status() << "\n";
    return absl::IsAlreadyExists(store.status()) ? 3 : 1;
  }
  Cache cache({}, *std::move(store));
  if (!cache.WaitUntilOpen(absl::Minutes(1))) return 1;
  for (int i = std::atoi(argv[2]);; ++i) {
    if (!cache.Commit(SampleRequest(i), SampleCompile(i)).persisted) return 1;
    if (::write(STDOUT_FILENO, "x", 1) != 1) return 1;
  }
}
