// How a worker gets the bytes of an executable: it asks the supervisor, which checks that the
// worker's identity may have it and answers with a sealed memfd.
//
// Wire: one SOCK_SEQPACKET pair a worker, FetchRequest up, FetchReply (with one descriptor when OK)
// down, any order. Both are of one build, so there is no version.
#ifndef FUSIOND_RUNTIME_WORKER_EXECUTABLE_SOURCE_H_
#define FUSIOND_RUNTIME_WORKER_EXECUTABLE_SOURCE_H_

#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/file.h"
#include "runtime/base/sha256.h"
#include "runtime/executable/executable.h"

namespace fusiond::worker {

struct FetchRequest {
  uint64_t id = 0;
  uint8_t digest[32] = {};
};

struct FetchReply {
  uint64_t id = 0;
  uint32_t code = 0;  // absl::StatusCode
  uint32_t reserved = 0;
  uint64_t bytes = 0;   // of the memfd
  char text[256] = {};  // of the error, cut to fit
};

// The worker's end. Single-thread (the loop's).
class ExecutableSource {
 public:
  using Callback = std::function<void(absl::StatusOr<executable::Executable>)>;
  virtual ~ExecutableSource() = default;
  // `done` is called once, now or later: NOT_FOUND for an unknown digest, UNAVAILABLE when the
  // supervisor is gone, INTERNAL when what it sent is not what the digest names.
  virtual void Fetch(const base::Digest& digest, Callback done) = 0;
};

class SupervisorSource : public ExecutableSource {
 public:
  explicit SupervisorSource(base::UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  void Fetch(const base::Digest& digest, Callback done) override;
  // Reads the replies that are there. Call when fd() is readable.
  void OnReadable();

 private:
  struct Pending {
    base::Digest digest;
    Callback done;
  };

  const base::UniqueFd socket_;
  uint64_t next_id_ = 1;
  absl::flat_hash_map<uint64_t, Pending> pending_;
};

// The supervisor's end: reads one request; UNAVAILABLE after hang-up, DEADLINE_EXCEEDED when
// nothing is there, INVALID_ARGUMENT for anything malformed.
absl::StatusOr<FetchRequest> ReceiveFetchRequest(int socket);
// `memfd` immutable, `bytes` long; or an error. Neither blocks: DEADLINE_EXCEEDED when the worker
// does not read its replies.
absl::Status SendFetchReply(int socket, uint64_t id, int memfd, uint64_t bytes);
absl::Status SendFetchError(int socket, uint64_t id, const absl::Status& why);

}  // namespace fusiond::worker

#endif  // FUSIOND_RUNTIME_WORKER_EXECUTABLE_SOURCE_H_
