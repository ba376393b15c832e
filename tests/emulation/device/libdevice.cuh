// The functions of libdevice that math.cuh calls: the C library's, and own forms of those it lacks,
// accurate to about one unit in the last place.
extern "C" {
#define FDE_LIBM1(fn) \
  float fn##f(float); \
  double fn(double);
#define FDE_LIBM2(fn)        \
  float fn##f(float, float); \
  double fn(double, double);
FDE_LIBM1(acos)
FDE_LIBM1(acosh)
FDE_LIBM1(asin)
FDE_LIBM1(asinh)
FDE_LIBM1(atan)
FDE_LIBM1(atanh)
FDE_LIBM1(ceil)
FDE_LIBM1(cos)
FDE_LIBM1(cosh)
FDE_LIBM1(erf)
FDE_LIBM1(erfc)
FDE_LIBM1(exp)
FDE_LIBM1(exp2)
FDE_LIBM1(expm1)
FDE_LIBM1(fabs)
FDE_LIBM1(floor)
FDE_LIBM1(lgamma)
FDE_LIBM1(log)
FDE_LIBM1(log10)
FDE_LIBM1(log1p)
FDE_LIBM1(log2)
FDE_LIBM1(rint)
FDE_LIBM1(sin)
FDE_LIBM1(sinh)
FDE_LIBM1(sqrt)
FDE_LIBM1(tan)
FDE_LIBM1(tanh)
FDE_LIBM1(trunc)
FDE_LIBM2(atan2)
FDE_LIBM2(fmod)
FDE_LIBM2(nextafter)
FDE_LIBM2(pow)
float fmaf(float, float, float);
}

inline double rsqrt(double x) {
  const double r = 1 / sqrt(x);
  // One step of Newton, where it cannot make 0 * inf.
  return x > 1e-300 && x < 1e300 ? r * (1.5 - 0.5 * x * r * r) : r;
}
inline float rsqrtf(float x) { return (float)(1 / sqrt((double)x)); }

// Newton's method. Towards 0 on erf itself, which keeps the relative accuracy that 1 - x would
// lose; far out on ln erfc, which is nearly a parabola, by its asymptotic series where erfc is
// subnormal.
inline double erfcinv(double z);
inline double erfinv(double x) {
  if (!(fabs(x) <= 0.75)) return x < 0 ? -erfcinv(1 + x) : erfcinv(1 - x);
  double y = x * 0.886226925452758;
  for (int i = 0; i < 60; i++) {
    const double step = (x - erf(y)) * exp(y * y) * 0.886226925452758;
    y += step;
    if (fabs(step) <= 1e-17 * fabs(y)) break;
  }
  return y;
}
inline double erfcinv(double z) {
  if (!(z > 0 && z < 2))
    return z == 0 ? __builtin_inf() : z == 2 ? -__builtin_inf() : __builtin_nan("");
  if (z >= 0.25 && z <= 1.75) return erfinv(1 - z);
  if (z > 1) return -erfcinv(2 - z);
  const double target = log(z);
  double y = sqrt(-log(z * sqrt(-target)));
  for (int i = 0; i < 60; i++) {
    const double q = 0.5 / (y * y);
    const double ln = y < 20 ? log(erfc(y))
                             : -y * y - log(y * 1.7724538509055159) +
                                   log1p(-q * (1 - q * (3 - q * (15 - q * (105 - q * 945)))));
    const double slope = y < 20 ? 1.1283791670955126 * exp(-y * y) / erfc(y) : 2 * y + 1 / y;
    const double step = (ln - target) / slope;
    y += step;
    if (fabs(step) < 1e-16 * fabs(y)) break;
  }
  return y;
}
inline float erfinvf(float x) { return (float)erfinv(x); }
inline float erfcinvf(float x) { return (float)erfcinv(x); }
