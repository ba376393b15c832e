// A fusiond of the benchmark's own, on folders of its own.
//
// Thread-safety: single-thread. Ownership: the destructor ends the daemon and removes its folders.
#ifndef FUSIOND_TESTS_BENCH_DAEMON_H_
#define FUSIOND_TESTS_BENCH_DAEMON_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cc/client.h"
#include "server/process/child_process.h"

namespace fusiond::bench {

class Daemon {
 public:
  // Returns once it serves and its compile pool has compiled something, so that a first request
  // finds a process that is warm. Errors name what the daemon or the program lacks.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const std::string& program,
                                                       const std::vector<std::string>& flags = {});
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  client::Client& client() { return *client_; }
  const std::string& sockets() const { return sockets_; }
  // What to compile for: the first usable GPU's UUID, or a profile where there is none.
  const std::string& target() const { return target_; }

 private:
  Daemon() = default;
  absl::Status Spawn(const std::string& program, const std::vector<std::string>& flags);
  absl::Status Connect();
  absl::Status WarmUp();

  std::string folder_, sockets_, target_;
  std::unique_ptr<server::ChildProcess> process_;
  std::unique_ptr<client::Client> client_;
};

}  // namespace fusiond::bench

#endif  // FUSIOND_TESTS_BENCH_DAEMON_H_
