// Twin of compiler/device/primitive.cuh.
FD f32 fd_f16_to_f32(u16 h) {
  const u32 sign = (u32)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
  if (exponent == 31) return fd_bit_cast<f32>(sign | 0x7f800000u | fraction << 13);
  const f32 magnitude = exponent == 0 ? (f32)fraction * 0x1p-24f
                                      : fd_bit_cast<f32>((exponent + 112) << 23 | fraction << 13);
  return sign ? -magnitude : magnitude;
}
FD u32 fde_bf16(f32 f) {
  const u32 u = fd_bit_cast<u32>(f);
  if (f != f) return 0x7fff;
  return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
FD u32 fde_f16(f32 f) {
  const u32 u = fd_bit_cast<u32>(f), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
  if (f != f) return 0x7fff;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // from 65520 on
  // Below 2^-14 the spacing is 2^-24: adding 0.5 rounds to it. Else the exponent is rebased.
  if (magnitude < 0x38800000)
    return sign | (fd_bit_cast<u32>(fd_bit_cast<f32>(magnitude) + 0.5f) - 0x3f000000);
  return sign | (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
}
FD u32 fd_pack_bf16(f32 lo, f32 hi) { return fde_bf16(lo) | fde_bf16(hi) << 16; }
FD u32 fd_pack_f16(f32 lo, f32 hi) { return fde_f16(lo) | fde_f16(hi) << 16; }
template <int N>
FD void fd_unpack_bf16(const u32* w, f32* v) {
  for (int i = 0; i < N; i++) {
    v[2 * i] = fd_bit_cast<f32>(w[i] << 16);
    v[2 * i + 1] = fd_bit_cast<f32>(w[i] & 0xffff0000u);
  }
}
template <int N>
FD void fd_unpack_bf16_again(const u32* w, f32* v) {
  fd_unpack_bf16<N>(w, v);
}
template <int N>
FD void fd_unpack_f16(const u32* w, f32* v) {
  for (int i = 0; i < N; i++) {
    v[2 * i] = fd_f16_to_f32((u16)w[i]);
    v[2 * i + 1] = fd_f16_to_f32((u16)(w[i] >> 16));
  }
}
template <int N>
FD void fd_pack_bf16(const f32* v, u32* w) {
  for (int i = 0; i < N; i++) w[i] = fd_pack_bf16(v[2 * i], v[2 * i + 1]);
}
template <int N>
FD void fd_pack_f16(const f32* v, u32* w) {
  for (int i = 0; i < N; i++) w[i] = fd_pack_f16(v[2 * i], v[2 * i + 1]);
}
template <int N>
FD void fd_opaque(u32*) {}

template <class To, class From>
FD To fde_truncate(From v, From limit, To lowest, To of_nan) {
  if (v != v) return of_nan;
  if (v >= limit) return ~lowest;
  return v <= -limit ? lowest : (To)v;
}
FD i32 fd_to_i32(f32 v) { return fde_truncate(v, 0x1p31f, (i32)(1u << 31), 0); }
FD i64 fd_to_i64(f32 v) {
  const i64 lowest = (i64)(1ull << 63);
  return fde_truncate(v, 0x1p63f, lowest, lowest);
}
FD i32 fd_to_i32(f64 v) {
  const i32 lowest = (i32)(1u << 31);
  return fde_truncate(v, 0x1p31, lowest, lowest);
}
FD i64 fd_to_i64(f64 v) {
  const i64 lowest = (i64)(1ull << 63);
  return fde_truncate(v, 0x1p63, lowest, lowest);
}

FD f32 fde_larger(f32 a, f32 b) {
  return a == b ? (fd_bit_cast<u32>(a) >> 31 ? b : a) : a > b ? a : b;
}
FD f32 fd_max_nan(f32 a, f32 b) {
  return a != a || b != b ? fd_bit_cast<f32>(0x7fffffffu) : fde_larger(a, b);
}
FD f32 fd_min_nan(f32 a, f32 b) {
  return a != a || b != b ? fd_bit_cast<f32>(0x7fffffffu) : -fde_larger(-a, -b);
}

FD f32 fd_quotient(f32 a, f32 b) { return a / b; }
FD f32 fd_inverse(f32 a) { return 1 / a; }
FD f32 fd_inverse_normal(f32 a) { return 1 / a; }
FD bool fd_less(f32 a, f32 b) { return a < b; }
FD bool fd_less_equal(f32 a, f32 b) { return a <= b; }
