// The few scalar operations that plain C++ cannot say: 16-bit float conversions, conversions to
// integers that saturate, maximum, minimum, comparisons and approximate quotients of the hardware.
// convert.cuh and math.cuh are plain C++ on top of these and of the functions of libdevice.
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

// Whole vectors: N words of two 16-bit floats each, and their 2 * N values. Four words take one
// statement: one instruction for NVRTC to optimise, not sixteen and a loop to unroll. Its results
// are written while operands are still read, hence the "&".
//
//   fd_unpack_bf16<N>, fd_unpack_f16<N> (words, values)
//   fd_unpack_bf16_again<N>   by other instructions, so that the compiler does not keep the results
//                             of an earlier unpacking alive in registers
//   fd_pack_bf16<N>, fd_pack_f16<N> (values, words)
//   fd_opaque<N>(words)       hides where they came from: the compiler cannot compute them again,
//                             nor keep what was derived from them
#define FDI_UNPACK(name, pair)                                                                  \
  FD void name##_pair(const u32* w, f32* v) {                                                   \
    asm("{.reg .b16 l,h;" pair("%0", "%1", "%2") "}" : "=&f"(v[0]), "=&f"(v[1]) : "r"(w[0]));   \
  }                                                                                             \
  FD void name##_pairs(const u32* w, f32* v) {                                                  \
    asm("{.reg .b16 l,h;" pair("%0", "%1", "%8") pair("%2", "%3", "%9") pair("%4", "%5", "%10") \
            pair("%6", "%7", "%11") "}"                                                         \
        : "=&f"(v[0]), "=&f"(v[1]), "=&f"(v[2]), "=&f"(v[3]), "=&f"(v[4]), "=&f"(v[5]),         \
          "=&f"(v[6]), "=&f"(v[7])                                                              \
        : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]));                                          \
  }                                                                                             \
  template <int N>                                                                              \
  FD void name(const u32* w, f32* v) {                                                          \
    if constexpr (N == 4) {                                                                     \
      name##_pairs(w, v);                                                                       \
    } else {                                                                                    \
      _Pragma("unroll") for (int i = 0; i < N; i++) name##_pair(w + i, v + 2 * i);              \
    }                                                                                           \
  }
#define FDI_BF16(lo, hi, w) "shl.b32 " lo "," w ",16;and.b32 " hi "," w ",0xffff0000;"
#define FDI_BF16_AGAIN(lo, hi, w) "prmt.b32 " lo "," w ",0,0x1044;prmt.b32 " hi "," w ",0,0x3244;"
#define FDI_F16(lo, hi, w) "mov.b32 {l,h}," w ";cvt.f32.f16 " lo ",l;cvt.f32.f16 " hi ",h;"
FDI_UNPACK(fd_unpack_bf16, FDI_BF16)
FDI_UNPACK(fd_unpack_bf16_again, FDI_BF16_AGAIN)
FDI_UNPACK(fd_unpack_f16, FDI_F16)

#define FDI_PACK(name, cvt)                                                              \
  template <int N>                                                                       \
  FD void name(const f32* v, u32* w) {                                                   \
    if constexpr (N == 4) {                                                              \
      asm(cvt " %0,%5,%4;" cvt " %1,%7,%6;" cvt " %2,%9,%8;" cvt " %3,%11,%10;"          \
          : "=&r"(w[0]), "=&r"(w[1]), "=&r"(w[2]), "=&r"(w[3])                           \
          : "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "f"(v[4]), "f"(v[5]), "f"(v[6]), \
            "f"(v[7]));                                                                  \
    } else {                                                                             \
      _Pragma("unroll") for (int i = 0; i < N; i++) w[i] = name(v[2 * i], v[2 * i + 1]); \
    }                                                                                    \
  }
FDI_PACK(fd_pack_bf16, "cvt.rn.bf16x2.f32")
FDI_PACK(fd_pack_f16, "cvt.rn.f16x2.f32")

template <int N>
FD void fd_opaque(u32* w) {
  if constexpr (N == 4) {
    asm volatile("" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3]));
  } else {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+r"(w[i]));
  }
}

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

// Approximations in full range, subnormals kept (PTX ISA: div.full within 2 ulp, rcp.approx 1).
FD f32 fd_quotient(f32 a, f32 b) {
  f32 r;
  asm("div.full.f32 %0,%1,%2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
FD f32 fd_inverse(f32 a) {
  f32 r;
  asm("rcp.approx.f32 %0,%1;" : "=f"(r) : "f"(a));
  return r;
}
// Of 2^-126 to 2^126: one instruction instead of seven.
FD f32 fd_inverse_normal(f32 a) {
  f32 r;
  asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(r) : "f"(a));
  return r;
}

// a < b and a <= b, false if either is nan. ptxas knows the range of |x|, x * x, e^x and sums of
// them, and forgets that nan is in none: it takes `x * x > -1` for true (12.9, 13.0, 13.5; every
// arch). Of the opposite comparison, which is true of nan, it assumes nothing. NVVM would turn that
// into the first again, if it saw both. One instruction either way.
#define FDI_COMPARE_F32(name, opposite)                                   \
  FD bool name(f32 a, f32 b) {                                            \
    u32 r;                                                                \
    asm("{.reg .pred p;setp." opposite ".f32 p,%1,%2;selp.u32 %0,0,1,p;}" \
        : "=r"(r)                                                         \
        : "f"(a), "f"(b));                                                \
    return r;                                                             \
  }
FDI_COMPARE_F32(fd_less, "geu")
FDI_COMPARE_F32(fd_less_equal, "gtu")
