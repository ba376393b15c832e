// Client: a connection to a fusiond daemon.
//
//   auto client = Client::Connect(folder);
//   auto fusion = (*client)->Compile(graph, "h200");
//   auto session = (*client)->OpenDevice(uuid);                // remote launch: session.h
//   auto local = (*client)->LoadLocally(*fusion, driver, 132);  // local launch: local_executable.h
//
// client/cc/README.md has a whole program.
//
// Thread-safety: thread-safe. Ownership: sessions and loaded executables live on when the Client is
// gone. Errors: UNAVAILABLE when no daemon answers (calls are tried twice, the second time when one
// listens again, which is waited for as long as Connect may), PERMISSION_DENIED when this user may
// not open its socket; otherwise what the rpc says (proto/fusiond/v1/service.proto). Cost: every
// method is a blocking round trip.
#ifndef FUSIOND_CLIENT_CC_CLIENT_H_
#define FUSIOND_CLIENT_CC_CLIENT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cc/local_executable.h"
#include "client/cc/session.h"
#include "compiler/ir/graph.h"
#include "proto/fusiond/v1/service.pb.h"
#include "runtime/base/sha256.h"
#include "runtime/executable/executable.h"

namespace fusiond::client {

// What of one tensor the compiler may know. Strides in elements; empty = row-major. Empty shape for
// scalars.
struct Layout {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t alignment = 16;  // of the address, bytes
};

// A compiled graph.
struct Fusion {
  base::Digest key;                // of the request
  base::Digest executable_digest;  // what a lease or a remote load names
  v1::CompileResponse response;    // source, timings, schedule, …
};

using Options = std::map<std::string, std::string>;

class Client {
 public:
  // `folder` holds control.sock and channel.sock. UNAVAILABLE when nothing listens there within
  // `timeout`, PERMISSION_DENIED at once when this user may not open what does,
  // INVALID_ARGUMENT when the path is longer than a socket's can be.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& folder,
                                                         absl::Duration timeout = absl::Seconds(5));
  ~Client();

  // `target`: "cpu", an arch ("sm_90a"), a profile ("h200") or a device UUID. One layout an input,
  // or none at all when the graph states every extent.
  absl::StatusOr<Fusion> Compile(const ir::Graph& graph, const std::string& target,
                                 absl::Span<const Layout> layouts = {}, const Options& options = {},
                                 absl::Duration timeout = absl::Minutes(2));

  // The executable, by a lease: shared memory that stays valid when the daemon is gone. NOT_FOUND
  // when it was evicted.
  absl::StatusOr<executable::Executable> Lease(const base::Digest& executable_digest);
  // The same, serialised (fusiond.v1.Executable).
  absl::StatusOr<std::string> LeaseBytes(const base::Digest& executable_digest);
  // Leases and loads into the current CUDA context of the calling thread.
  absl::StatusOr<std::unique_ptr<LocalExecutable>> LoadLocally(const Fusion& fusion,
                                                               const cuda::Driver& driver,
                                                               int sm_count);
  // Remote launch on "cpu" or a device UUID. Tries again, with back-off, while daemon or worker are
  // restarting (UNAVAILABLE), at most for `patience`.
  absl::StatusOr<std::unique_ptr<Session>> OpenDevice(const std::string& device,
                                                      absl::Duration patience = absl::Seconds(10),
                                                      const SessionOptions& options = {});

  // The rest of the control plane, as the rpcs say.
  absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request);
  absl::StatusOr<v1::GetArtifactsResponse> GetArtifacts(const v1::GetArtifactsRequest& request);
  absl::StatusOr<v1::ExecuteResponse> Execute(const v1::ExecuteRequest& request);
  absl::StatusOr<v1::DevicesResponse> Devices();
  absl::StatusOr<v1::StatusResponse> GetStatus();
  absl::StatusOr<v1::CacheStatsResponse> CacheStats();
  absl::StatusOr<v1::CacheListResponse> CacheList(const v1::CacheListRequest& request);
  absl::StatusOr<v1::CacheEvictResponse> CacheEvict(const v1::CacheEvictRequest& request);
  // Calls `on_event` for every event, in order, on this thread. Not tried again: UNAVAILABLE says
  // how far it came, within a minute of the daemon's end or stop.
  absl::Status Warm(const v1::WarmRequest& request,
                    const std::function<void(const v1::WarmEvent&)>& on_event);

  // The request that Compile, Explain and GetArtifacts send.
  static v1::CompileRequest MakeRequest(const ir::Graph& graph, const std::string& target,
                                        absl::Span<const Layout> layouts, const Options& options);

 private:
  struct Rpc;
  absl::StatusOr<std::unique_ptr<Session>> OpenDeviceOnce(const std::string& device,
                                                          const SessionOptions& options);
  Client(std::string folder, std::unique_ptr<Rpc> rpc);

  const std::string folder_;
  const std::unique_ptr<Rpc> rpc_;
};

}  // namespace fusiond::client

#endif  // FUSIOND_CLIENT_CC_CLIENT_H_
