// Formula: a number that depends on the extents of a request and on the device's SM count.
//
// A closed set of operations in postfix form, evaluated once per new shape. Written by the
// compiler, read from disk: evaluation checks everything.
//
// Thread-safety: a value.
#ifndef FUSIOND_RUNTIME_EXECUTABLE_FORMULA_H_
#define FUSIOND_RUNTIME_EXECUTABLE_FORMULA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace fusiond::executable {

struct FormulaTerm {
  // The numbers are those of fusiond.v1.FormulaTerm.
  enum class Kind : uint8_t {
    kConstant = 1,  // value
    kExtent = 2,    // dim `dim` of input `input`
    kSmCount = 3,
    kAdd = 4,  // the rest take two from the stack: a (below) and b (top)
    kMultiply = 5,
    kCeilDiv = 6,  // ⌈a / b⌉, b > 0
    kMin = 7,
    kMax = 8,
    kRoundUp = 9,  // a rounded up to a multiple of b, b > 0
  };
  Kind kind = Kind::kConstant;
  int64_t value = 0;
  uint32_t input = 0;
  uint32_t dim = 0;
  bool operator==(const FormulaTerm&) const = default;
};

class Formula {
 public:
  static constexpr int kMaxTerms = 64;

  Formula() = default;  // 0
  static Formula Constant(int64_t value);
  static Formula Extent(uint32_t input, uint32_t dim);
  static Formula SmCount();
  static Formula FromTerms(absl::Span<const FormulaTerm> terms);

  // Combine folds constants.
  static Formula Combine(FormulaTerm::Kind kind, const Formula& a, const Formula& b);

  absl::Span<const FormulaTerm> terms() const { return terms_; }
  std::optional<int64_t> AsConstant() const;
  // INVALID_ARGUMENT for a malformed formula, an unknown input or dim, division by 0, overflow or a
  // negative result.
  absl::StatusOr<int64_t> Evaluate(absl::Span<const absl::Span<const int64_t>> input_shapes,
                                   int sm_count) const;
  std::string ToString() const;  // "ceil_div(extent(0,1), 8)"
  bool operator==(const Formula&) const = default;

 private:
  absl::InlinedVector<FormulaTerm, 1> terms_;
};

}  // namespace fusiond::executable

#endif  // FUSIOND_RUNTIME_EXECUTABLE_FORMULA_H_
