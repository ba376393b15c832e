// A compile request, checked and keyed.
//
// Thread-safety: values and pure functions. Cost: linear in the graph (import, verification,
// specialisation, hash).
#ifndef FUSIOND_SERVER_ENGINE_REQUEST_H_
#define FUSIOND_SERVER_ENGINE_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/limits.h"
#include "compiler/options.h"
#include "proto/fusiond/v1/service.pb.h"
#include "runtime/executable/binding.h"
#include "runtime/executable/device_info.h"
#include "server/cache/keys.h"

namespace fusiond::server {

struct PreparedRequest {
  std::string graph;  // serialised fusiond.v1.Graph
  executable::DeviceInfo device;
  compiler::Options options;
  std::vector<v1::InputLayout> layouts;  // one an input, strides and alignment filled in
  std::vector<executable::TensorArg>
      arguments;  // likewise, to hold guards against: address = alignment
  cache::KeyMaterial material;
  cache::EncodedRequest encoded;  // of the material
};

// What of a key the process knows and no request says.
struct KeyContext {
  std::string compiler_version;
  std::string nvrtc;  // identity; empty when none was ever seen
};

// Imports, verifies and specialises the graph, checks layouts and options, and makes the key
// material. `device` is the request's target, resolved. Errors: INVALID_ARGUMENT, UNIMPLEMENTED,
// RESOURCE_EXHAUSTED as the importer's, or naming the input or option.
absl::StatusOr<PreparedRequest> PrepareRequest(const v1::CompileRequest& request,
                                               const executable::DeviceInfo& device,
                                               const KeyContext& context,
                                               const ir::Limits& limits = {});

}  // namespace fusiond::server

#endif  // FUSIOND_SERVER_ENGINE_REQUEST_H_
