// The global memory of a job: each tensor an allocation of its own, of exact size, aligned to what
// was promised and to no more.
//
// Without a sanitizer a tensor ends at a page that nobody may touch, as close as its alignment
// allows; what lies between is filled and checked. With AddressSanitizer, it is malloc's.
#ifndef FUSIOND_TESTS_EMULATION_RUNTIME_TENSORS_H_
#define FUSIOND_TESTS_EMULATION_RUNTIME_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/emulation/runtime/job.h"

namespace fusiond::emulation {

class Tensors {
 public:
  explicit Tensors(const std::vector<Tensor>& tensors);
  ~Tensors();
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  // The bytes every tensor begins an interleaving with.
  void Fill();
  char* data(size_t tensor) const { return ranges_[tensor].data; }
  std::string Contents(size_t tensor) const;
  // Whether [p, p + bytes) lies inside one tensor.
  bool Hold(const void* p, uint64_t bytes) const;
  // Where `p` is: "4 bytes past the end of tensor 2"; empty if near none.
  std::string Describe(const void* p) const;
  // Empty, or what was written around the tensors.
  std::string CheckSurroundings() const;

 private:
  struct Range {
    char* data;
    uint64_t bytes;
    char* allocation;
    uint64_t allocated;  // up to where kernels could write unnoticed
    uint64_t mapped;     // 0: malloc's
  };
  const std::vector<Tensor>& tensors_;
  std::vector<Range> ranges_;
};

}  // namespace fusiond::emulation

#endif  // FUSIOND_TESTS_EMULATION_RUNTIME_TENSORS_H_
