// The few scalar operations that plain C++ cannot say: 16-bit float conversions, conversions to
// integers that saturate, maximum and minimum of the hardware. convert.cuh and
// math.cuh are plain C++ on top of these and of the functions of libdevice.
// Needs: types.cuh
FD f32 fd_f16_to_f32(u16 h) {
  f32 f;
  asm("cvt.f32.f16 %0,%1;" : "=f"(f) : "h"(h));
  return f;
}
// Two values rounded to nearest even; `lo` in the lower half. A nan becomes 0x7fff.
FD u32 fd_pack_bf16(f32 lo, f32 hi) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
FD u32 fd_pack_f16(f32 lo, f32 hi) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0,%1,%2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
// The halves of a bf16 pair as f32 by another instruction than shift and mask, so that the compiler
// does not keep the results of an earlier unpacking alive in registers.
FD f32 fd_bf16_lo_again(u32 pair) {
  u32 r;
  asm("prmt.b32 %0,%1,0,0x1044;" : "=r"(r) : "r"(pair));
  return fd_bit_cast<f32>(r);
}
FD f32 fd_bf16_hi_again(u32 pair) {
  u32 r;
  asm("prmt.b32 %0,%1,0,0x3244;" : "=r"(r) : "r"(pair));
  return fd_bit_cast<f32>(r);
}
// Hides from the compiler where a word came from: it cannot compute it again, nor keep what was
// derived from it.
FD void fd_opaque(u32& w) { asm volatile("" : "+r"(w)); }

// Truncation. Values beyond the range give its nearest end; nan gives 0, or the smallest integer
// when either type is 64 bits wide.
FD i32 fd_to_i32(f32 v) { return __float2int_rz(v); }
FD i64 fd_to_i64(f32 v) { return __float2ll_rz(v); }
FD i32 fd_to_i32(f64 v) { return __double2int_rz(v); }
FD i64 fd_to_i64(f64 v) { return __double2ll_rz(v); }

// nan if either is; +0 is larger than -0.
FD f32 fd_max_nan(f32 a, f32 b) {
  f32 r;
  asm("max.NaN.f32 %0,%1,%2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
FD f32 fd_min_nan(f32 a, f32 b) {
  f32 r;
  asm("min.NaN.f32 %0,%1,%2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
