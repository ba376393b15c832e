// RandomGraph: valid graphs over all ops, dtypes and shapes, for tests that hold two things against
// each other (printer and parser, evaluator and kernels, before and after a pass).
//
//   const uint64_t seed = TestSeed();  // test_seed.h
//   const RandomGraph random = MakeRandomGraph(seed);
//
// Equal seeds and options give equal graphs. A graph is small (a few dozen nodes, extents below
// ten), so that evaluating it takes microseconds. Values are not bounded: NaN, infinity, integer
// division by zero can occur; tests that cannot stand an op leave it out of `ops`.
#ifndef FUSIOND_TESTS_SUPPORT_RANDOM_GRAPH_H_
#define FUSIOND_TESTS_SUPPORT_RANDOM_GRAPH_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"

namespace fusiond::testing {

struct RandomGraphOptions {
  int min_nodes = 4;  // besides inputs
  int max_nodes = 24;
  int max_inputs = 4;
  int max_rank = 4;
  int64_t max_extent = 7;
  bool zero_size = true;       // one graph in ten has an extent of 0
  bool symbolic = false;       // some input extents are -1
  bool strided_inputs = true;  // inputs with gaps, other stride orders, expanded dims
  bool scalar_inputs = true;
  bool aliases = true;  // some outputs alias an input
  std::vector<ir::DType> dtypes = {std::begin(ir::kAllDTypes), std::end(ir::kAllDTypes)};
  std::vector<ir::Op> ops = {};  // to choose from; empty = all but input
};

struct RandomGraph {
  ir::Graph graph;
  std::vector<ir::Dims> extents;  // one an input: with these Specialise succeeds
};

RandomGraph MakeRandomGraph(uint64_t seed, const RandomGraphOptions& options = {});

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_SUPPORT_RANDOM_GRAPH_H_
