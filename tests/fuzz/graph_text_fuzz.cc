// Any bytes as .fir text: the parser never crashes, and what it accepts is valid and round-trips.
#include <cstddef>
#include <cstdint>

#include "compiler/ir/hash.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "runtime/base/check.h"

using fusiond::ir::Graph;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Graph> graph = fusiond::ir::Parse(text);
  if (!graph.ok()) return 0;
  FUSIOND_CHECK(Verify(*graph, fusiond::ir::Stage::kImported).ok());
  const std::string printed = fusiond::ir::Print(*graph);
  const absl::StatusOr<Graph> back = fusiond::ir::Parse(printed);
  FUSIOND_CHECK(back.ok());
  FUSIOND_CHECK(fusiond::ir::Print(*back) == printed);
  FUSIOND_CHECK(GraphHash(*back) == GraphHash(*graph));
  return 0;
}
