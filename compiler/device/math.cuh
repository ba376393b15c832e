// One helper for every pointwise op: fd_<op>. Plain C++ on top of primitive.cuh and libdevice, so
// that a GPU and the emulation compile the same text.
//
// Operands of one helper have one type, out of bool, i32, i64, f32, f64; 16-bit values come as f32.
// Helpers of f32 and f64 only: those of libdevice, and truediv, reciprocal, sigmoid, silu, rsqrt.
// These are the forms of the default tier: within 4 ulp. Where another tier differs, for f32 alone,
// its own stand in math_strict.cuh and math_fast.cuh.
//
// FDI_CALLED functions are long: a kernel calls one copy of each. Inlined, a chain of them would
// take NVRTC seconds; a call costs about five instructions, and ptxas allocates registers across
// it. Integers: arithmetic wraps; x / 0 is -1 and the remainder x (so x == x / 0 * 0 + remainder);
// shifts by less than 0 or by the width and more shift everything out.
// Floats are ordered by fd_lt and its like, never by < (primitive.cuh says why), and == is free.
// Needs: types.cuh, primitive.cuh, convert.cuh, angle.cuh
template <class T>
struct fdi_modular {
  typedef T type;  // the type whose + - * do on integers what T's should, without overflow
};
template <>
struct fdi_modular<i32> {
  typedef u32 type;
};
template <>
struct fdi_modular<i64> {
  typedef u64 type;
};
template <class T>
using fdi_modular_t = typename fdi_modular<T>::type;

// ---- Functions of libdevice, and their forms on integers where an op has one.
#define FDI_UNARY_LIBM(op, fn)               \
  FD f32 fd_##op(f32 a) { return fn##f(a); } \
  FDI_CALLED f64 fd_##op(f64 a) { return fn(a); }
FDI_UNARY_LIBM(acos, acos)
FDI_UNARY_LIBM(acosh, acosh)
FDI_UNARY_LIBM(asin, asin)
FDI_UNARY_LIBM(asinh, asinh)
FDI_UNARY_LIBM(atan, atan)
FDI_UNARY_LIBM(atanh, atanh)
FDI_UNARY_LIBM(cosh, cosh)
FDI_UNARY_LIBM(erf, erf)
FD f32 fd_erfc(f32 a) { return a != a ? a : erfcf(a); }  // erfcf orders |a| and a constant
FDI_CALLED f64 fd_erfc(f64 a) { return erfc(a); }
FDI_UNARY_LIBM(erfcinv, erfcinv)
FDI_UNARY_LIBM(erfinv, erfinv)
FDI_UNARY_LIBM(exp, exp)
FDI_UNARY_LIBM(exp2, exp2)
FDI_UNARY_LIBM(expm1, expm1)
FDI_UNARY_LIBM(log, log)
FDI_UNARY_LIBM(log10, log10)
FDI_UNARY_LIBM(log1p, log1p)
FDI_UNARY_LIBM(log2, log2)
FDI_UNARY_LIBM(rsqrt, rsqrt)
FDI_UNARY_LIBM(sinh, sinh)
FDI_UNARY_LIBM(sqrt, sqrt)
FDI_UNARY_LIBM(tanh, tanh)
FDI_CALLED f32 fd_lgamma(f32 a) { return lgammaf(a); }
FDI_CALLED f64 fd_lgamma(f64 a) { return lgamma(a); }
FDI_CALLED f64 fd_cos(f64 a) { return cos(a); }
FDI_CALLED f64 fd_sin(f64 a) { return sin(a); }
FDI_CALLED f64 fd_tan(f64 a) { return tan(a); }
#define FDI_ROUNDING(op, fn)                 \
  template <class T>                         \
  FD T fd_##op(T a) {                        \
    return a;                                \
  }                                          \
  FD f32 fd_##op(f32 a) { return fn##f(a); } \
  FD f64 fd_##op(f64 a) { return fn(a); }
FDI_ROUNDING(ceil, ceil)
FDI_ROUNDING(floor, floor)
FDI_ROUNDING(round, rint)  // halves to even
FDI_ROUNDING(trunc, trunc)

// ---- Comparison and logic.
#define FDI_COMPARE(op, sign) \
  template <class T>          \
  FD bool fd_##op(T a, T b) { \
    return a sign b;          \
  }
FDI_COMPARE(eq, ==)
FDI_COMPARE(ge, >=)
FDI_COMPARE(gt, >)
FDI_COMPARE(le, <=)
FDI_COMPARE(lt, <)
FDI_COMPARE(ne, !=)
FD bool fd_ge(f32 a, f32 b) { return fd_less_equal(b, a); }
FD bool fd_gt(f32 a, f32 b) { return fd_less(b, a); }
FD bool fd_le(f32 a, f32 b) { return fd_less_equal(a, b); }
FD bool fd_lt(f32 a, f32 b) { return fd_less(a, b); }
template <class T>
FD bool fd_logical_and(T a, T b) {
  return a != 0 && b != 0;
}
template <class T>
FD bool fd_logical_or(T a, T b) {
  return a != 0 || b != 0;
}
template <class T>
FD bool fd_logical_not(T a) {
  return a == 0;
}
template <class T>
FD T fd_where(bool c, T a, T b) {
  return c ? a : b;
}

// ---- Predicates.
template <class T>
FD bool fd_isnan(T a) {
  return a != a;
}
template <class T>
FD bool fd_isfinite(T) {
  return true;
}
FD bool fd_isfinite(f32 a) { return fd_lt(fabsf(a), fd_bit_cast<f32>(0x7f800000u)); }
FD bool fd_isfinite(f64 a) { return fd_lt(fabs(a), fd_bit_cast<f64>(0x7ff0000000000000ull)); }
template <class T>
FD bool fd_isinf(T a) {
  return !fd_isfinite(a) && !fd_isnan(a);
}
template <class T>
FD bool fd_isneginf(T a) {
  return fd_isinf(a) && fd_lt(a, (T)0);
}
template <class T>
FD bool fd_isposinf(T a) {
  return fd_isinf(a) && fd_gt(a, (T)0);
}
template <class T>
FD bool fd_isreal(T) {
  return true;
}
template <class T>
FD bool fd_signbit(T a) {
  return a < 0;
}
FD bool fd_signbit(f32 a) { return fd_bit_cast<u32>(a) >> 31; }
FD bool fd_signbit(f64 a) { return fd_bit_cast<u64>(a) >> 63; }

// ---- Bits.
template <class T>
FD T fd_bitwise_and(T a, T b) {
  return a & b;
}
template <class T>
FD T fd_bitwise_or(T a, T b) {
  return a | b;
}
template <class T>
FD T fd_bitwise_xor(T a, T b) {
  return a ^ b;
}
template <class T>
FD T fd_bitwise_not(T a) {
  if constexpr (fd_same<T, bool>) {
    return !a;
  } else {
    return ~a;
  }
}
template <class T>
FD bool fdi_shifts_out(T b) {
  return (fdi_modular_t<T>)b >= sizeof(T) * 8;
}
template <class T>
FD T fd_bitwise_left_shift(T a, T b) {
  return fdi_shifts_out(b) ? 0 : (T)((fdi_modular_t<T>)a << b);
}
template <class T>
FD T fd_bitwise_right_shift(T a, T b) {
  return a >> (fdi_shifts_out(b) ? (T)(sizeof(T) * 8 - 1) : b);
}
template <class T>
FD T fd_logical_right_shift(T a, T b) {
  return fdi_shifts_out(b) ? 0 : (T)((fdi_modular_t<T>)a >> b);
}

// ---- Arithmetic.
template <class T>
FD T fd_set(T a) {
  return a;
}
template <class T>
FD T fd_segment_set(T a) {
  return a;
}
template <class T>
FD T fd_real(T a) {
  return a;
}
template <class T>
FD T fd_add(T a, T b) {
  return (T)((fdi_modular_t<T>)a + (fdi_modular_t<T>)b);
}
template <class T>
FD T fd_sub(T a, T b) {
  return (T)((fdi_modular_t<T>)a - (fdi_modular_t<T>)b);
}
template <class T>
FD T fd_mul(T a, T b) {
  return (T)((fdi_modular_t<T>)a * (fdi_modular_t<T>)b);
}
template <class T>
FD T fd_neg(T a) {
  return (T)(-(fdi_modular_t<T>)a);
}
template <class T>
FD T fd_div(T a, T b) {
  if constexpr (fd_is_float<T>) {
    return a / b;
  } else if constexpr (fd_same<T, bool>) {
    return a || !b;
  } else {
    return b == 0 ? -1 : b == -1 ? fd_neg(a) : a / b;
  }
}
FD f32 fd_div(f32 a, f32 b) { return fd_quotient(a, b); }
template <class T>
FD T fd_mod(T a, T b) {
  if constexpr (fd_same<T, bool>) {
    return a && !b;
  } else {
    return b == 0 ? a : b == -1 ? 0 : a % b;
  }
}
FDI_CALLED f32 fd_mod(f32 a, f32 b) { return fmodf(a, b); }
FDI_CALLED f64 fd_mod(f64 a, f64 b) { return fmod(a, b); }
template <class T>
FD T fd_fmod(T a, T b) {
  return fd_mod(a, b);
}
template <class T>
FD T fd_remainder(T a, T b) {
  const T m = fd_mod(a, b);
  return m != 0 && b != 0 && fd_lt(m, (T)0) != fd_lt(b, (T)0) ? fd_add(m, b) : m;
}
template <class T>
FD T fd_truediv(T a, T b) {
  return fd_div(a, b);
}
FD f32 fd_reciprocal(f32 a) { return fd_inverse(a); }
FD f64 fd_reciprocal(f64 a) { return 1 / a; }
template <class T>
FD T fd_abs(T a) {
  return a < 0 ? fd_neg(a) : a;
}
FD f32 fd_abs(f32 a) { return fabsf(a); }
FD f64 fd_abs(f64 a) { return fabs(a); }
template <class T>
FD T fd_sign(T a) {
  return (T)(fd_gt(a, (T)0) - fd_lt(a, (T)0));
}
template <class T>
FD T fd_frac(T a) {
  return fd_sub(a, fd_trunc(a));
}
template <class T>
FD T fd_relu(T a) {
  return fd_le(a, (T)0) ? (T)0 : a;
}
FD f32 fd_relu(f32 a) { return fd_max_nan(a, 0); }
template <class T>
FD T fd_maximum(T a, T b) {
  return a != a || fd_gt(a, b) ? a : b;
}
template <class T>
FD T fd_minimum(T a, T b) {
  return a != a || fd_lt(a, b) ? a : b;
}
FD f32 fd_maximum(f32 a, f32 b) { return fd_max_nan(a, b); }
FD f32 fd_minimum(f32 a, f32 b) { return fd_min_nan(a, b); }
// Where the limits cross, the upper one wins; one that is nan limits nothing.
template <class T>
FD T fd_clamp(T a, T low, T high) {
  const T t = fd_lt(a, low) ? low : a;
  return fd_gt(t, high) ? high : t;
}
FD f32 fd_clamp(f32 a, f32 low, f32 high) {
  const f32 t = low != low ? a : fd_max_nan(a, low);
  return high != high ? t : fd_min_nan(t, high);
}
template <class T>
FD T fd_threshold(T a, T limit, T value) {
  return fd_le(a, limit) ? value : a;
}
template <class T>
FD T fd_addcmul(T a, T b, T c, T scale) {
  return fd_add(a, fd_mul(fd_mul(scale, b), c));
}
// From the nearer end, so that weight 1 gives `b` exactly.
template <class T>
FD T fd_lerp(T a, T b, T weight) {
  const T d = fd_sub(b, a);
  if constexpr (fd_is_float<T>) {
    return fd_lt(fd_abs(weight), (T)0.5) ? a + weight * d : b - d * (1 - weight);
  } else if constexpr (fd_same<T, bool>) {
    return weight ? b : a;
  } else {
    return fd_add(a, fd_mul(weight, d));
  }
}
template <class T>
FD T fd_gcd(T a, T b) {
  fdi_modular_t<T> x = (fdi_modular_t<T>)fd_abs(a), y = (fdi_modular_t<T>)fd_abs(b);
  while (y != 0) {
    const fdi_modular_t<T> r = x % y;
    x = y;
    y = r;
  }
  return (T)x;
}

// ---- Powers, exponentials and angles of two operands.
template <class T>
FD T fd_pow(T a, T b) {
  if constexpr (fd_same<T, bool>) {
    return a || !b;
  } else {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    T r = 1;
    for (; b > 0; b >>= 1, a = fd_mul(a, a)) r = b & 1 ? fd_mul(r, a) : r;
    return r;
  }
}
FDI_CALLED f32 fd_pow(f32 a, f32 b) { return powf(a, b); }
FDI_CALLED f64 fd_pow(f64 a, f64 b) { return pow(a, b); }
FDI_CALLED f32 fd_atan2(f32 a, f32 b) { return atan2f(a, b); }
FDI_CALLED f64 fd_atan2(f64 a, f64 b) { return atan2(a, b); }
FD f32 fd_nextafter(f32 a, f32 b) { return nextafterf(a, b); }
FD f64 fd_nextafter(f64 a, f64 b) { return nextafter(a, b); }
// e^-|a| never overflows, so that small results keep their relative accuracy.
FD f32 fd_sigmoid(f32 a) {
  const f32 e = fd_exp(-fd_abs(a));
  return (fd_lt(a, 0.0f) ? e : 1) * fd_inverse_normal(1 + e);
}
FD f64 fd_sigmoid(f64 a) {
  const f64 e = fd_exp(-fd_abs(a));
  return (fd_lt(a, 0.0) ? e : 1) / (1 + e);
}
template <class T>
FD T fd_silu(T a) {
  return a * fd_sigmoid(a);
}
