#include "runtime/executable/formula.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusiond::executable {
namespace {

using Kind = FormulaTerm::Kind;

bool IsBinary(Kind kind) { return kind >= Kind::kAdd && kind <= Kind::kRoundUp; }

// False on overflow or division by a value that is not positive.
bool Apply(Kind kind, int64_t a, int64_t b, int64_t* result) {
  switch (kind) {
    case Kind::kAdd:
      return !__builtin_add_overflow(a, b, result);
    case Kind::kMultiply:
      return !__builtin_mul_overflow(a, b, result);
    case Kind::kCeilDiv:
    case Kind::kRoundUp: {
      int64_t sum;
      if (b <= 0 || a < 0 || __builtin_add_overflow(a, b - 1, &sum)) return false;
      *result = kind == Kind::kCeilDiv ? sum / b : sum / b * b;
      return true;
    }
    case Kind::kMin:
      *result = std::min(a, b);
      return true;
    case Kind::kMax:
      *result = std::max(a, b);
      return true;
    default:
      return false;
  }
}

const char* BinaryName(Kind kind) {
  switch (kind) {
    case Kind::kAdd:
      return "add";
    case Kind::kMultiply:
      return "mul";
    case Kind::kCeilDiv:
      return "ceil_div";
    case Kind::kMin:
      return "min";
    case Kind::kMax:
      return "max";
    case Kind::kRoundUp:
      return "round_up";
    default:
      return "?";
  }
}

}  // namespace

Formula Formula::Constant(int64_t value) {
  FormulaTerm term;
  term.value = value;
  return FromTerms({term});
}

Formula Formula::Extent(uint32_t input, uint32_t dim) {
  FormulaTerm term;
  term.kind = Kind::kExtent;
  term.input = input;
  term.dim = dim;
  return FromTerms({term});
}

Formula Formula::SmCount() {
  FormulaTerm term;
  term.kind = Kind::kSmCount;
  return FromTerms({term});
}

Formula Formula::FromTerms(absl::Span<const FormulaTerm> terms) {
  Formula formula;
  formula.terms_.assign(terms.begin(), terms.end());
  return formula;
}

Formula Formula::Combine(Kind kind, const Formula& a, const Formula& b) {
  std::optional<int64_t> ca = a.AsConstant(), cb = b.AsConstant();
  int64_t folded;
  if (ca && cb && Apply(kind, *ca, *cb, &folded)) return Constant(folded);
  Formula result;
  for (const Formula* part : {&a, &b}) {
    if (part->terms_.empty()) {
      result.terms_.push_back(FormulaTerm());
    } else {
      result.terms_.insert(result.terms_.end(), part->terms_.begin(), part->terms_.end());
    }
  }
  FormulaTerm op;
  op.kind = kind;
  result.terms_.push_back(op);
  return result;
}

std::optional<int64_t> Formula::AsConstant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_[0].kind == Kind::kConstant) return terms_[0].value;
  return std::nullopt;
}

absl::StatusOr<int64_t> Formula::Evaluate(absl::Span<const absl::Span<const int64_t>> input_shapes,
                                          int sm_count) const {
  if (terms_.empty()) return 0;
  if (terms_.size() > kMaxTerms) {
    return absl::InvalidArgumentError(
        absl::StrCat("formula: limit is ", kMaxTerms, " terms, has ", terms_.size()));
  }
  absl::InlinedVector<int64_t, 8> stack;
  for (const FormulaTerm& term : terms_) {
    if (term.kind == Kind::kConstant) {
      stack.push_back(term.value);
    } else if (term.kind == Kind::kSmCount) {
      stack.push_back(sm_count);
    } else if (term.kind == Kind::kExtent) {
      if (term.input >= input_shapes.size() || term.dim >= input_shapes[term.input].size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("formula: no dim ", term.dim, " of input ", term.input));
      }
      stack.push_back(input_shapes[term.input][term.dim]);
    } else if (IsBinary(term.kind)) {
      if (stack.size() < 2) return absl::InvalidArgumentError("formula: operand missing");
      int64_t b = stack.back();
      stack.pop_back();
      if (!Apply(term.kind, stack.back(), b, &stack.back())) {
        return absl::InvalidArgumentError(absl::StrCat("formula: ", BinaryName(term.kind), "(",
                                                       stack.back(), ", ", b,
                                                       ") overflows or is not defined"));
      }
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("formula: unknown term kind ", static_cast<int>(term.kind)));
    }
  }
  if (stack.size() != 1) return absl::InvalidArgumentError("formula: operator missing");
  if (stack[0] < 0) {
    return absl::InvalidArgumentError(absl::StrCat("formula: negative result ", stack[0]));
  }
  return stack[0];
}

std::string Formula::ToString() const {
  if (terms_.empty()) return "0";
  std::vector<std::string> stack;
  for (const FormulaTerm& term : terms_) {
    if (term.kind == Kind::kConstant) {
      stack.push_back(absl::StrCat(term.value));
    } else if (term.kind == Kind::kSmCount) {
      stack.push_back("sm_count");
    } else if (term.kind == Kind::kExtent) {
      stack.push_back(absl::StrCat("extent(", term.input, ",", term.dim, ")"));
    } else {
      if (stack.size() < 2) return "malformed";
      std::string b = std::move(stack.back());
      stack.pop_back();
      stack.back() = absl::StrCat(BinaryName(term.kind), "(", stack.back(), ", ", b, ")");
    }
  }
  return stack.size() == 1 ? stack[0] : "malformed";
}

}  // namespace fusiond::executable
