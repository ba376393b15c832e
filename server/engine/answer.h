// What a caller of the engine learns, and answers that need no compile.
//
// Thread-safety: values and thread-safe functions. Cost: a look-up may read the disk.
#ifndef FUSIOND_SERVER_ENGINE_ANSWER_H_
#define FUSIOND_SERVER_ENGINE_ANSWER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/sha256.h"
#include "server/cache/cache.h"
#include "server/engine/request.h"

namespace fusiond::server {

enum class AnswerSource { kCompiled, kMemory, kDisk };

inline AnswerSource SourceOf(cache::Tier tier) {
  return tier == cache::Tier::kMemory ? AnswerSource::kMemory : AnswerSource::kDisk;
}

// The executable itself is in the cache under its digest.
struct CompileAnswer {
  cache::RequestKey key;
  base::Digest executable;
  uint64_t revision = 0;
  AnswerSource source = AnswerSource::kCompiled;
  std::shared_ptr<const std::string> bytes;  // of the executable, serialised
  // Of this compile; zero for an answer from the cache.
  absl::Duration queued, planning, nvrtc;
  uint32_t nvrtc_calls = 0;
  uint64_t source_bytes = 0;
  std::vector<std::string> notes;
};

// The answer if the cache has one whose guards hold for this request, or the failure it keeps;
// counts as a look-up.
std::optional<absl::StatusOr<CompileAnswer>> FindAnswer(cache::Cache& cache,
                                                        const PreparedRequest& request);
// The same for whoever only wants to know: counts nothing, and kept failures are not looked at.
std::optional<CompileAnswer> PeekAnswer(cache::Cache& cache, const PreparedRequest& request);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_ENGINE_ANSWER_H_
