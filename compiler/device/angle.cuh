// Sine, cosine and tangent of f32 within 2, 2 and 4 ulp, whatever the angle.
//
// An angle is n quarter turns and a rest r, |r| <= pi/4 (fdi_angle); of r the functions are
// polynomials. libdevice's own bring a loop and an array in local memory for angles beyond 1e5.
// Needs: types.cuh, primitive.cuh
struct fdi_angle {
  f32 r;
  u32 n;  // modulo 4
};
// Beyond 1e5 the product of x and 2/pi, in 96 bits of it: those that stand for whole turns have no
// part in it, those below move r by 2^-62 at most.
FD fdi_angle fdi_reduce_far(f32 x) {
  static const u32 two_over_pi[] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                    0xf534ddc0u, 0xdb629599u, 0x3c439041u};
  const u32 bits = fd_bit_cast<u32>(x), exponent = bits >> 23 & 255;
  if (exponent == 255) return {x - x, 0};
  const u32 mantissa = bits << 8 | 0x80000000u;
  // x is mantissa * 2^(exponent - 158); a turn's four quarters begin at this bit of the table.
  const u32 at = exponent - 128, word = at >> 5, shift = at & 31;
  u32 w[3];
#pragma unroll
  for (int i = 0; i < 3; i++) {
    const u64 pair = (u64)two_over_pi[word + i] << 32 | two_over_pi[word + i + 1];
    w[i] = (u32)(pair << shift >> 32);
  }
  const u64 quarters =
      ((u64)mantissa * w[2] >> 32) + (u64)mantissa * w[1] + ((u64)(mantissa * w[0]) << 32);
  const i64 rest = (i64)(quarters << 2);  // of 2^64 a quarter, the nearest one's
  const f32 r = (f32)((f64)rest * 0x1.921fb54442d18p-64);
  const u32 n = (u32)(quarters >> 62) + (rest < 0);
  if (fd_less(x, 0)) return {-r, 0u - n};
  return {r, n};
}
FD fdi_angle fdi_reduce(f32 x) {
  if (!fd_less(fabsf(x), 1e5f)) return fdi_reduce_far(x);
  const f32 shifted = fmaf(x, 0x1.45f306p-1f, 0x1.8p23f);  // the integer stands in the low bits
  const f32 n = shifted - 0x1.8p23f;
  const f32 r = fmaf(n, -0x1.4442dp-24f, fmaf(n, -0x1.921fb4p+0f, x));
  return {fmaf(n, -0x1.846988p-48f, r), fd_bit_cast<u32>(shifted)};
}
// sin(r) or cos(r), by minimax polynomials: within 0.1 ulp besides rounding.
FD f32 fdi_sin_or_cos(f32 r, bool cosine) {
  const f32 s = r * r;
  const f32 a = cosine ? 2.4438379e-5f : -1.9517234e-4f;
  const f32 b = cosine ? -1.3887367e-3f : 8.332178e-3f;
  const f32 c = cosine ? 4.1666646e-2f : -0.16666655f;
  const f32 p = fmaf(fmaf(a, s, b), s, c);
  return cosine ? fmaf(fmaf(p, s, -0.5f), s, 1) : fmaf(fmaf(p, s, 0.f), r, r);  // + 0: for r = -0
}
FDI_CALLED f32 fdi_sine(f32 x, u32 quarters) {
  const fdi_angle angle = fdi_reduce(x);
  const u32 n = angle.n + quarters;
  const f32 v = fdi_sin_or_cos(angle.r, n & 1);
  return n & 2 ? -v : v;
}
FD f32 fd_sin(f32 a) { return fdi_sine(a, 0); }
FD f32 fd_cos(f32 a) { return fdi_sine(a, 1); }
FDI_CALLED f32 fd_tan(f32 a) {
  const fdi_angle angle = fdi_reduce(a);
  const f32 s = fdi_sin_or_cos(angle.r, false), c = fdi_sin_or_cos(angle.r, true);
  return angle.n & 1 ? -fd_quotient(c, s) : fd_quotient(s, c);
}
