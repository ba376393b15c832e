// OpenSegments: the state of Segmentation's pass over the nodes.
//
// Thread-safety: single-thread (the one call of Segmentation).
#ifndef FUSIOND_COMPILER_SCHEDULE_OPEN_SEGMENTS_INTERNAL_H_
#define FUSIOND_COMPILER_SCHEDULE_OPEN_SEGMENTS_INTERNAL_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/graph.h"
#include "compiler/schedule/axis_match.h"
#include "compiler/schedule/segment.h"
#include "compiler/schedule/segmenter.h"

namespace fusiond::schedule {

// A value as seen along certain axes of a segment.
using Instance = std::pair<ir::ValueId, DimMap>;

struct ValueState {
  int segment = -1;  // that computes it; -1 for leaves and floating values
  DimMap axes;       // there, of each dim
  bool floating = false;
  uint8_t depth = 0;               // floating: nodes above it, up to a map
  int level = 0;                   // floating: the lowest of segments that may compute it
  std::vector<ir::ValueId> bases;  // of a map, as in SegmentNode
  size_t cone_nodes = 0;           // of a map
  bool dependent = false;          // on a reduction of its own segment
  bool late = false;               // complete only when the grid has ended: for epilogues alone
  bool closed = false;             // nobody may use it within its segment
};

struct OpenSegment {
  Segment segment;
  Fusion fusion = Fusion::kAll;  // strictest of its nodes
  std::vector<ir::ValueId> defined;
  absl::flat_hash_set<Instance> instances;          // computed here
  absl::flat_hash_map<ir::ValueId, DimMap> leaves;  // read from memory, or floating: first use
  absl::flat_hash_set<ir::ValueId> mapped;          // read from memory by maps
  size_t cone_nodes = 0;                            // that maps compute besides the segment's
  int64_t heaviest_bytes = 0;                       // of a tensor read
  int8_t inner = kNone;                             // axis along which that tensor is contiguous
  size_t tensors = 0;                               // reads and graph outputs
  int slots = 0;                                    // issue slots an element (cost.h)
  int64_t largest_frame = 1;                        // points of a node's
  int merged_into = -1;
};

class OpenSegments {
 public:
  explicit OpenSegments(const SegmentRequest& request);

  // Places one node. Requires: called in topological order.
  void Visit(ir::NodeId id);
  // After the last node: segments of a level that share nothing but their iteration space become
  // one where both are without reductions and memory runs along the same axis. Saves launches.
  void UniteEqualSpaces();

  std::vector<OpenSegment>& segments() { return segments_; }
  const ValueState& state(ir::ValueId id) const { return states_[id]; }
  // Computes floating value `id` in `segment` along `axes`, or notes that it is read there.
  void Instantiate(int segment, ir::ValueId id, const DimMap& axes);
  void NoteRead(OpenSegment& open, ir::ValueId id, const DimMap& axes);
  int64_t Bytes(ir::ValueId id) const;

 private:
  struct Join;
  // What a map computes anew for each of its elements, down to what it reads from memory.
  struct Cone {
    std::vector<ir::ValueId> bases;
    int nodes = 0;
    int slots = 0;
    bool fits = true;
  };

  void VisitMap(ir::NodeId id);
  Cone ConeOf(const ir::Node& map, bool through_computed) const;
  Cone BestCone(const ir::Node& map) const;
  bool MayComputeAgain(ir::ValueId id) const;
  void Materialise(ir::ValueId id);
  void NoteBases(OpenSegment& open, const ir::Node& map, const DimMap& frame);
  void NoteInner(OpenSegment& open, ir::ValueId id, const DimMap& axes);
  bool Floats(const ir::Node& node) const;
  bool TryJoin(ir::NodeId id, int level);
  bool MatchSegments(const ir::Node& node, Join& join) const;
  bool MatchLeaves(const ir::Node& node, Join& join) const;
  bool MatchReduction(const ir::Node& node, Fusion fusion, Join& join) const;
  bool MayUseLate(const ir::Node& node, const Join& join) const;
  void Commit(ir::NodeId id, Join& join);
  void Absorb(int into, int from, const DimMap& remap);
  void UniteReaders(int segment, const ir::Node& node);
  bool UniteAlong(ir::ValueId tensor, int with, int segment);
  bool MayUnite(const OpenSegment& a, const OpenSegment& b) const;
  int Resolve(int segment) const;
  int LevelOf(ir::ValueId id) const;
  Fusion FusionOf(ir::NodeId id) const;
  const ir::Dims& Strides(ir::ValueId id) const;

  const ir::Graph& graph_;
  const SegmentRequest& request_;
  std::vector<ValueState> states_;
  std::vector<OpenSegment> segments_;
  std::vector<int> input_index_;  // by ValueId, -1 for others
  std::vector<bool> is_output_;
  // Segments of a level that read a large tensor, the latest few.
  absl::flat_hash_map<std::pair<ir::ValueId, int>, std::vector<int>> readers_;
};

}  // namespace fusiond::schedule

#endif  // FUSIOND_COMPILER_SCHEDULE_OPEN_SEGMENTS_INTERNAL_H_
