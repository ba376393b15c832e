#include "compiler/passes/algebra/coefficient.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "compiler/passes/builder.h"

namespace fusiond::passes {
namespace {

using ir::DType;

constexpr int64_t kMaxPart = int64_t{1} << 31;  // of numerator and denominator
constexpr int kComparedBits = 44;               // of `inexact`

double Rounded(double value, DType dtype) {
  return dtype == DType::kFloat ? static_cast<float>(value) : value;
}

// Odd part of n > 0, and how often 2 was taken out.
int TakeTwos(uint64_t& n) {
  const int twos = __builtin_ctzll(n);
  n >>= twos;
  return twos;
}

int Bits(uint64_t n) { return 64 - __builtin_clzll(n); }

struct Fraction {
  uint64_t numerator;
  uint64_t denominator;
};

// The first convergent of the continued fraction of value > 0 that rounds to it, if it has fewer
// bits than the dtype's mantissa: then it is no accident.
std::optional<Fraction> SimpleFraction(double value, DType dtype) {
  const int max_bits = dtype == DType::kFloat ? 22 : 44;
  double rest = value;
  uint64_t h = 1, h_before = 0, k = 0, k_before = 1;
  for (int i = 0; i < 24; ++i) {
    const double whole = std::floor(rest);
    if (!(whole < 4e9)) return std::nullopt;
    const auto a = static_cast<uint64_t>(whole);
    if (h > kMaxPart || k > kMaxPart) return std::nullopt;
    h_before = std::exchange(h, a * h + h_before);
    k_before = std::exchange(k, a * k + k_before);
    if (h > 0 && Rounded(static_cast<double>(h) / static_cast<double>(k), dtype) == value) {
      uint64_t odd_h = h, odd_k = k;
      TakeTwos(odd_h);
      TakeTwos(odd_k);
      if (Bits(odd_h) + Bits(odd_k) > max_bits) return std::nullopt;
      return Fraction{h, k};
    }
    if (rest == whole) return std::nullopt;
    rest = 1 / (rest - whole);
  }
  return std::nullopt;
}

double Compared(double inexact) { return std::nearbyint(std::ldexp(inexact, kComparedBits - 1)); }

}  // namespace

void Coefficient::Normalise(uint64_t numerator, uint64_t denominator) {
  exponent_ += TakeTwos(numerator);
  exponent_ -= TakeTwos(denominator);
  const uint64_t common = std::gcd(numerator, denominator);
  numerator_ = static_cast<int64_t>(numerator / common);
  denominator_ = static_cast<int64_t>(denominator / common);
  if (numerator_ < kMaxPart && denominator_ < kMaxPart) return;
  // Too long for a fraction: the quotient becomes a number like any other.
  const Coefficient rounded =
      Inexact(inexact_ * (static_cast<double>(numerator_) / static_cast<double>(denominator_)));
  numerator_ = denominator_ = 1;
  inexact_ = rounded.inexact_;
  exponent_ += rounded.exponent_;
}

void Coefficient::SetRadical(uint64_t a, uint64_t b) {
  // √(a·b) = g·√(a/g · b/g)
  const uint64_t common = std::gcd(a, b);
  uint64_t rest = (a / common) * (b / common);
  uint64_t outside = common;
  const auto root = static_cast<uint64_t>(std::llround(std::sqrt(static_cast<double>(rest))));
  if (root * root == rest) {
    outside *= root;
    rest = 1;
  }
  radical_ = static_cast<int64_t>(rest);
  if (radical_ >= kMaxPart) {
    const Coefficient rounded = Inexact(inexact_ * std::sqrt(static_cast<double>(rest)));
    radical_ = 1;
    inexact_ = rounded.inexact_;
    exponent_ += rounded.exponent_;
  }
  uint64_t numerator = static_cast<uint64_t>(numerator_);
  uint64_t denominator = static_cast<uint64_t>(denominator_);
  const uint64_t shared = std::gcd(outside, denominator);
  numerator *= outside / shared;
  Normalise(numerator, denominator / shared);
}

Coefficient Coefficient::Inexact(double value) {
  Coefficient result;
  result.negative_ = value < 0;
  int exponent;
  result.inexact_ = 2 * std::frexp(std::fabs(value), &exponent);
  result.exponent_ = exponent - 1;
  // A power of two but for rounding is one.
  if (Compared(result.inexact_) == Compared(2)) {
    result.inexact_ = 1;
    ++result.exponent_;
  } else if (Compared(result.inexact_) == Compared(1)) {
    result.inexact_ = 1;
  }
  return result;
}

std::optional<Coefficient> Coefficient::Of(double value, DType dtype) {
  value = Rounded(value, dtype);
  if (value == 0 || !std::isfinite(value)) return std::nullopt;
  int exponent;
  const double mantissa = std::frexp(std::fabs(value), &exponent);
  auto whole = static_cast<uint64_t>(std::ldexp(mantissa, 53));
  const int twos = TakeTwos(whole);
  Coefficient result;
  // The fraction first: the f32 nearest to 1/8191 is 4097/2^25 as well.
  if (const auto fraction = SimpleFraction(std::fabs(value), dtype)) {
    result.Normalise(fraction->numerator, fraction->denominator);
  } else if (Bits(whole) <= 22) {
    result.numerator_ = static_cast<int64_t>(whole);
    result.exponent_ = exponent - 53 + twos;
  } else {
    result = Inexact(std::fabs(value));
  }
  result.negative_ = value < 0;
  if (!result.InRange(dtype)) return std::nullopt;
  return result;
}

double Coefficient::ToDouble() const {
  double size = inexact_ * (static_cast<double>(numerator_) / static_cast<double>(denominator_));
  if (radical_ != 1) size *= std::sqrt(static_cast<double>(radical_));
  return std::ldexp(negative_ ? -size : size, exponent_);
}

Coefficient Coefficient::Negated() const {
  Coefficient result = *this;
  result.negative_ = !negative_;
  return result;
}

Coefficient Coefficient::Inverse() const {
  Coefficient result = Inexact(1 / inexact_);
  result.negative_ = negative_;
  result.exponent_ -= exponent_;
  result.numerator_ = denominator_;
  result.denominator_ = numerator_;
  if (radical_ == 1) return result;
  // 1/√r = √r / r
  const auto radical = static_cast<uint64_t>(radical_);
  result.radical_ = radical_;
  const uint64_t common = std::gcd(static_cast<uint64_t>(result.numerator_), radical);
  result.Normalise(static_cast<uint64_t>(result.numerator_) / common,
                   static_cast<uint64_t>(result.denominator_) * (radical / common));
  return result;
}

Coefficient Coefficient::operator*(const Coefficient& other) const {
  Coefficient result = Inexact(inexact_ * other.inexact_);
  result.negative_ = negative_ != other.negative_;
  result.exponent_ += exponent_ + other.exponent_;
  const auto product = [](int64_t a, int64_t b) {
    return static_cast<uint64_t>(a) * static_cast<uint64_t>(b);
  };
  result.Normalise(product(numerator_, other.numerator_),
                   product(denominator_, other.denominator_));
  if (radical_ != 1 || other.radical_ != 1) {
    result.SetRadical(static_cast<uint64_t>(radical_), static_cast<uint64_t>(other.radical_));
  }
  return result;
}

Coefficient Coefficient::Power(int n) const {
  Coefficient result;
  const Coefficient base = n < 0 ? Inverse() : *this;
  for (int i = n < 0 ? -n : n; i > 0; --i) result = result * base;
  return result;
}

Coefficient Coefficient::SquareRoot() const {
  if (radical_ != 1) return Inexact(std::sqrt(ToDouble()));
  // √(i·n/d·2^e) = √i · √(n·d) / d · 2^(e/2)
  Coefficient result = Inexact(std::sqrt(inexact_));
  const bool odd = exponent_ % 2 != 0;
  result.exponent_ += (exponent_ - (odd ? 1 : 0)) / 2;
  result.denominator_ = denominator_;
  result.SetRadical(static_cast<uint64_t>(numerator_),
                    static_cast<uint64_t>(denominator_) * (odd ? 2 : 1));
  return result;
}

std::optional<Coefficient> Coefficient::Plus(const Coefficient& other) const {
  if (Negated() == other) return std::nullopt;
  const int shared = std::min(exponent_, other.exponent_);
  if (inexact_ == other.inexact_ && radical_ == other.radical_ && exponent_ - shared < 24 &&
      other.exponent_ - shared < 24) {
    // Exact: both over one denominator.
    const auto scaled = [&](const Coefficient& c, int64_t by) {
      const __int128 n = static_cast<__int128>(c.numerator_) * by << (c.exponent_ - shared);
      return c.negative_ ? -n : n;
    };
    const __int128 sum = scaled(*this, other.denominator_) + scaled(other, denominator_);
    const __int128 size = sum < 0 ? -sum : sum;
    if (size < static_cast<__int128>(kMaxPart) * kMaxPart) {
      Coefficient result;
      result.inexact_ = inexact_;
      result.radical_ = radical_;
      result.exponent_ = shared;
      result.Normalise(static_cast<uint64_t>(size), static_cast<uint64_t>(denominator_) *
                                                        static_cast<uint64_t>(other.denominator_));
      result.negative_ = sum < 0;
      return result;
    }
  }
  const double sum = ToDouble() + other.ToDouble();
  if (sum == 0) return std::nullopt;
  return Inexact(sum);
}

bool Coefficient::InRange(DType dtype) const {
  const int limit = dtype == DType::kFloat ? 60 : 500;
  int exponent;
  std::frexp(ToDouble(), &exponent);
  return exponent > -limit && exponent < limit;
}

bool Coefficient::operator==(const Coefficient& other) const {
  return negative_ == other.negative_ && exponent_ == other.exponent_ &&
         numerator_ == other.numerator_ && denominator_ == other.denominator_ &&
         radical_ == other.radical_ && Compared(inexact_) == Compared(other.inexact_);
}

uint64_t Coefficient::Hash() const {
  uint64_t hash = Mix(negative_, static_cast<uint64_t>(static_cast<int64_t>(exponent_)));
  hash = Mix(hash, static_cast<uint64_t>(numerator_));
  hash = Mix(hash, static_cast<uint64_t>(denominator_));
  hash = Mix(hash, static_cast<uint64_t>(radical_));
  return Mix(hash, static_cast<uint64_t>(Compared(inexact_)));
}

}  // namespace fusiond::passes
