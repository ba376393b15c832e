// The fast tier's f32 forms: the hardware's approximations. Errors, in ulp of the result where
// nothing else is said:
//
//   exp sigmoid silu    4 and as many as |a|       log log2 log10   4 of the larger of result and 1
//   exp2 4, sqrt 2      tanh 4096 (2^-11)
//   sin cos             2^-20, |a| < 1e5; beyond, anything in [-1, 1]
//   tan                 2^-19 of 1 + tan(a)^2, |a| < 1e5
// Needs: types.cuh, primitive.cuh, convert.cuh, math.cuh, approximate.cuh
FD f32 fd_fast_exp(f32 a) { return fd_ex2_approx(a * 1.44269504f); }
FD f32 fd_fast_exp2(f32 a) { return fd_ex2_approx(a); }
FD f32 fd_fast_log(f32 a) { return fd_lg2_approx(a) * 0.693147181f; }
FD f32 fd_fast_log2(f32 a) { return fd_lg2_approx(a); }
FD f32 fd_fast_log10(f32 a) { return fd_lg2_approx(a) * 0.301029996f; }
FD f32 fd_fast_sqrt(f32 a) { return fd_sqrt_approx(a); }
FD f32 fd_fast_tanh(f32 a) { return fd_tanh_approx(a); }
FD f32 fd_fast_sigmoid(f32 a) {
  const f32 e = fd_fast_exp(-fd_abs(a));
  return (fd_lt(a, 0.0f) ? e : 1) * fd_inverse_normal(1 + e);
}
FD f32 fd_fast_silu(f32 a) { return a * fd_fast_sigmoid(a); }
// Within half a turn of 0, where the hardware is at its best.
FD f32 fdi_in_a_turn(f32 a) {
  const f32 turns = fmaf(a, 0.159154943f, 0x1.8p23f) - 0x1.8p23f;
  return fmaf(turns, -0x1.4442dp-22f, fmaf(turns, -0x1.921fb4p+2f, a));
}
FD f32 fd_fast_sin(f32 a) { return fd_sin_approx(fdi_in_a_turn(a)); }
FD f32 fd_fast_cos(f32 a) { return fd_cos_approx(fdi_in_a_turn(a)); }
FD f32 fd_fast_tan(f32 a) {
  const f32 r = fdi_in_a_turn(a);
  return fd_quotient(fd_sin_approx(r), fd_cos_approx(r));
}
