// Graph ↔ fusiond.v1.Graph. FromProto and FromBytes are where a client's graph enters the program.
//
// Whatever the input, both take time and memory in proportion to its size, within `limits`: ids,
// counts, sizes and attributes are checked before they are used. FromBytes reads one input, node or
// output at a time, so that a message of tiny fields does not unfold into hundreds of megabytes of
// objects before a limit is seen; who holds bytes should prefer it.
//
// Thread-safety: pure functions.
// Errors: INVALID_ARGUMENT, UNIMPLEMENTED or RESOURCE_EXHAUSTED, by the broken rule; the message
// reads "node 5: IR-18: add: …", counting inputs, nodes and outputs each from 0 as in the message.
#ifndef FUSIOND_COMPILER_IMPORT_GRAPH_PROTO_H_
#define FUSIOND_COMPILER_IMPORT_GRAPH_PROTO_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/limits.h"
#include "proto/fusiond/v1/graph.pb.h"

namespace fusiond::graph_proto {

inline constexpr uint32_t kGraphVersion = 1;
// One input, node or output on the wire; the largest valid one takes a few hundred bytes.
inline constexpr size_t kMaxPartBytes = 4096;

// Inputs first, then the other nodes in topological order, dead ones included.
v1::Graph ToProto(const ir::Graph& graph);
// Serialised deterministically.
std::string ToBytes(const ir::Graph& graph);

absl::StatusOr<ir::Graph> FromProto(const v1::Graph& proto, const ir::Limits& limits = {});
absl::StatusOr<ir::Graph> FromBytes(absl::string_view bytes, const ir::Limits& limits = {});

}  // namespace fusiond::graph_proto

#endif  // FUSIOND_COMPILER_IMPORT_GRAPH_PROTO_H_
