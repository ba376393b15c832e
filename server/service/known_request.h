// The request behind a key, put together from what the cache keeps of it.
#ifndef FUSIOND_SERVER_SERVICE_KNOWN_REQUEST_H_
#define FUSIOND_SERVER_SERVICE_KNOWN_REQUEST_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/fusiond/v1/service.pb.h"
#include "server/cache/cache.h"
#include "server/service/grants.h"

namespace fusiond::server {

struct KnownRequest {
  cache::RequestKey key;
  cache::KeyMaterial material;  // compiler and NVRTC are those that compiled it
  // Graph, profile, options, extents; strides and alignments as the guards of the executable that
  // was compiled first ask for them.
  v1::CompileRequest request;
};

// Of the one key that begins so. NOT_FOUND: no entry has it, none that an answer to this identity
// named, or the graph was not kept (no store). INVALID_ARGUMENT: several keys begin so, or no
// hexadecimal digits.
absl::StatusOr<KnownRequest> FindKnownRequest(cache::Cache& cache, const Grants& grants,
                                              const Identity& identity,
                                              absl::string_view key_prefix);

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_SERVICE_KNOWN_REQUEST_H_
