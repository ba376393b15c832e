// The parts of kernels that compute every element of the space for itself, in vectors along the
// innermost dim: what a vector's loads become, its values, what its stores take.
//
// Names: m<i>[v] what load i brought for vector v, as in memory; x<i> the same converted; v<i> a
// value; o<k> what store k writes. Values that vary along no dim are computed once a thread, those
// that do not vary along the innermost dim once a vector, the rest once an element.
#ifndef FUSIOND_COMPILER_CODEGEN_POINT_TEXT_H_
#define FUSIOND_COMPILER_CODEGEN_POINT_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/codegen/text_builder.h"
#include "compiler/schedule/kernel_schedule.h"
#include "compiler/schedule/region.h"

namespace fusiond::codegen {

class PointText {
 public:
  // `by_element`: vectors run over the ends of the innermost dim, so that nothing is the same for
  // all elements of one. `alignment`: as in RowText. All arguments must outlive it.
  PointText(const schedule::Region& region, const schedule::KernelSchedule& schedule,
            bool by_element, TextBuilder& out, std::vector<int64_t>& alignment);

  // What varies along no dim; loads at once.
  void WriteKernelValues();
  // Coordinates c0, c1, … of element `index` of the space, those of the dims in `used`.
  void WriteCoordinates(absl::string_view index, uint32_t used);
  // Whether WriteValues relies on c0, c1, … of the vector's first element.
  bool TakesCoordinates() const;
  // "fd_vec<…> m<i>[unroll];" of a load that varies.
  void DeclareLoad(uint32_t i);
  // From m<i>[v] to v<i> and o<k>.
  void WriteValues();

  // Whether load `i` varies, and is to be done vector by vector.
  bool IsLoaded(uint32_t i) const;
  // Whether a store takes o<k>, a vector; else Value(store.value), which is one element's.
  bool IsVector(const schedule::Store& store) const;
  std::string Value(uint32_t i) const;
  // "c0 == 0 && …": of the threads that would write the same element, the one that does; empty
  // where there is one only.
  std::string Owner(const schedule::Access& access) const;

 private:
  enum class Scope { kKernel, kVector, kElement };

  bool GivesVector(const schedule::Instr& instr) const;
  const char* Index() const { return schedule_.wide_index ? "u64" : "u32"; }
  Scope ScopeOf(const schedule::Instr& instr) const;
  std::string Coordinate(size_t dim, bool of_element) const;
  void WriteCompute(uint32_t i);
  void WriteElements();

  const schedule::Region& region_;
  const schedule::KernelSchedule& schedule_;
  const int inner_;
  const bool by_element_;
  const bool cut_;  // the last vector may be cut
  TextBuilder& out_;
  std::vector<int64_t>& alignment_;
};

}  // namespace fusiond::codegen

#endif  // FUSIOND_COMPILER_CODEGEN_POINT_TEXT_H_
