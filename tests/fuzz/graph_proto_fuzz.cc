// Any bytes as fusiond.v1.Graph: the importer never crashes, what it accepts is valid and
// round-trips, and reading part by part accepts what reading at once accepts.
#include <cstddef>
#include <cstdint>

#include "compiler/import/graph_proto.h"
#include "compiler/ir/hash.h"
#include "compiler/ir/verify.h"
#include "runtime/base/check.h"

using fusiond::ir::Graph;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Graph> graph = fusiond::graph_proto::FromBytes(bytes);
  if (!graph.ok()) return 0;
  FUSIOND_CHECK(Verify(*graph, fusiond::ir::Stage::kImported).ok());
  const absl::StatusOr<Graph> back =
      fusiond::graph_proto::FromBytes(fusiond::graph_proto::ToBytes(*graph));
  FUSIOND_CHECK(back.ok());
  FUSIOND_CHECK(GraphHash(*back) == GraphHash(*graph));
  fusiond::v1::Graph at_once;
  FUSIOND_CHECK(at_once.ParseFromArray(data, static_cast<int>(size)));
  const absl::StatusOr<Graph> from_message = fusiond::graph_proto::FromProto(at_once);
  FUSIOND_CHECK(from_message.ok());
  FUSIOND_CHECK(GraphHash(*from_message) == GraphHash(*graph));
  return 0;
}
