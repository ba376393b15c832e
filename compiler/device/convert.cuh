// fd_cast<To>(value) and fd_cast<To>(vector): conversions between all element types.
//
// Rounding is to nearest even; what a 16-bit type cannot reach becomes infinite. f64 and integers
// reach 16-bit types by way of f32. Floats are truncated to integers as fd_to_i32 says; i64 to i32
// keeps the low bits. Conversion to bool is "not 0", so nan is true.
// Needs: types.cuh, primitive.cuh
template <class A, class B>
constexpr bool fd_same = false;
template <class A>
constexpr bool fd_same<A, A> = true;
template <class T>
constexpr bool fd_is_float = fd_same<T, f32> || fd_same<T, f64>;

template <class To, class From>
FD To fd_cast(From v) {
  if constexpr (fd_same<To, From>) {
    return v;
  } else if constexpr (fd_same<From, bf16>) {
    return fd_cast<To>(fd_bit_cast<f32>((u32)v.bits << 16));
  } else if constexpr (fd_same<From, f16>) {
    return fd_cast<To>(fd_f16_to_f32(v.bits));
  } else if constexpr (fd_same<From, b8>) {
    return fd_cast<To>(v.bits != 0);
  } else if constexpr (fd_same<To, bf16>) {
    return bf16{(u16)fd_pack_bf16((f32)v, 0)};
  } else if constexpr (fd_same<To, f16>) {
    return f16{(u16)fd_pack_f16((f32)v, 0)};
  } else if constexpr (fd_same<To, b8>) {
    return b8{(u8)(v != 0)};
  } else if constexpr (fd_same<To, bool>) {
    return v != 0;
  } else if constexpr (fd_same<To, i32> && fd_is_float<From>) {
    return fd_to_i32(v);
  } else if constexpr (fd_same<To, i64> && fd_is_float<From>) {
    return fd_to_i64(v);
  } else {
    return (To)v;
  }
}

// The pairs of a vector of 16-bit elements.
template <int N>
struct fdi_words {
  u32 w[N];
};

template <class To, class From, int N>
FD fd_vec<To, N> fd_cast(const fd_vec<From, N>& v) {
  constexpr bool bf = fd_same<From, bf16> || fd_same<To, bf16>;
  constexpr bool half = bf || fd_same<From, f16> || fd_same<To, f16>;
  fd_vec<To, N> r;
  if constexpr (fd_same<To, From>) {
    r = v;
  } else if constexpr (N % 2 == 0 && half && fd_same<To, f32>) {
    const fdi_words<N / 2> pairs = fd_bit_cast<fdi_words<N / 2>>(v);
    if constexpr (bf) {
      fd_unpack_bf16<N / 2>(pairs.w, r.v);
    } else {
      fd_unpack_f16<N / 2>(pairs.w, r.v);
    }
  } else if constexpr (N % 2 == 0 && half && fd_same<From, f32>) {
    fdi_words<N / 2> pairs;
    if constexpr (bf) {
      fd_pack_bf16<N / 2>(v.v, pairs.w);
    } else {
      fd_pack_f16<N / 2>(v.v, pairs.w);
    }
    r = fd_bit_cast<fd_vec<To, N>>(pairs);
  } else {
#pragma unroll
    for (int i = 0; i < N; i++) r[i] = fd_cast<To>(v[i]);
  }
  return r;
}

// fd_opaque for a whole vector: what is computed from it is computed again, not kept.
template <class T, int N>
FD void fd_opaque(fd_vec<T, N>& v) {
  constexpr int words = sizeof(v) / 4;
  static_assert(sizeof(v) % 4 == 0, "fd_opaque hides words");
  fdi_words<words> hidden = fd_bit_cast<fdi_words<words>>(v);
  fd_opaque<words>(hidden.w);
  v = fd_bit_cast<fd_vec<T, N>>(hidden);
}

// fd_cast<f32>(v) by other instructions, for a second use of a packed vector: the compiler then
// does not keep the first use's f32 copies in registers (or spill them) instead of unpacking again.
template <class From, int N>
FD fd_vec<f32, N> fd_cast_again(fd_vec<From, N> v) {
  if constexpr (N % 2 == 0 && fd_same<From, bf16>) {
    const fdi_words<N / 2> pairs = fd_bit_cast<fdi_words<N / 2>>(v);
    fd_vec<f32, N> r;
    fd_unpack_bf16_again<N / 2>(pairs.w, r.v);
    return r;
  } else {
    if constexpr (N % 2 == 0 && fd_same<From, f16>) fd_opaque(v);
    return fd_cast<f32>(v);
  }
}
