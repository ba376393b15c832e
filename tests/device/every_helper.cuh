// A body that calls every helper of compiler/device with every type it takes, so that a test can
// see each of them compile for each arch.
template <class T>
FD T any_type(T a, T b, T c) {
  T r = fd_set(fd_segment_set(fd_real(a)));
  r = fd_add(fd_sub(fd_mul(r, b), c), fd_neg(fd_div(a, b)));
  r = fd_add(r, fd_add(fd_mod(a, b), fd_add(fd_fmod(b, c), fd_remainder(a, c))));
  r = fd_maximum(r, fd_minimum(fd_abs(a), fd_sign(b)));
  r = fd_clamp(r, fd_relu(a), fd_frac(b));
  r = fd_threshold(fd_addcmul(r, a, b, c), a, fd_lerp(a, b, c));
  r = fd_where(fd_logical_and(a, b), fd_pow(r, a), fd_where(fd_logical_or(b, c), r, c));
  r = fd_add(fd_add(fd_ceil(r), fd_floor(a)), fd_add(fd_round(b), fd_trunc(c)));
  const bool p = fd_isnan(a) ^ fd_isfinite(b) ^ fd_isinf(c) ^ fd_isneginf(a) ^ fd_isposinf(b) ^
                 fd_isreal(c) ^ fd_signbit(a) ^ fd_logical_not(b);
  const bool q = fd_eq(a, b) ^ fd_ne(b, c) ^ fd_lt(a, c) ^ fd_le(a, b) ^ fd_gt(b, c) ^ fd_ge(a, c);
  return p ^ q ? r : c;
}
template <class T>
FD T whole_numbers(T a, T b) {
  return fd_bitwise_and(fd_bitwise_or(a, b), fd_bitwise_xor(a, fd_bitwise_not(b)));
}
template <class T>
FD T integers(T a, T b) {
  return fd_gcd(fd_bitwise_left_shift(a, b),
                fd_add(fd_bitwise_right_shift(a, b), fd_logical_right_shift(b, a)));
}
template <class T>
FD T floats(T a, T b) {
  T r = fd_acos(a) + fd_acosh(a) + fd_asin(a) + fd_asinh(a) + fd_atan(a) + fd_atanh(a);
  r += fd_cos(a) + fd_cosh(a) + fd_sin(a) + fd_sinh(a) + fd_tan(a) + fd_tanh(a);
  r += fd_erf(a) + fd_erfc(a) + fd_erfcinv(a) + fd_erfinv(a) + fd_lgamma(a);
  r += fd_exp(a) + fd_exp2(a) + fd_expm1(a);
  r += fd_log(a) + fd_log10(a) + fd_log1p(a) + fd_log2(a);
  r += fd_rsqrt(a) + fd_sqrt(a) + fd_reciprocal(a) + fd_sigmoid(a) + fd_silu(a);
  return r + fd_truediv(a, b) + fd_atan2(a, b) + fd_nextafter(a, b);
}
template <class T>
FD T warp(T v) {
  T k[2] = {v, fd_shuffle(v, 3)};
  fd_warp_reduce<fd_sum, 32>(k);
  fd_warp_reduce<fd_prod, 16>(k);
  fd_warp_reduce<fd_max, 8>(k);
  fd_warp_reduce<fd_min, 4>(k);
  k[0] = fd_add(k[0], fd_add(fd_sum::identity<T>(), fd_prod::identity<T>()));
  k[1] = fd_add(k[1], fd_add(fd_max::identity<T>(), fd_min::identity<T>()));
  return fd_add(k[0], fd_shuffle_xor(k[1], 1));
}
template <class T>
FD T moments(const T* p) {
  fd_welford<T> s = {0, 0, 0};
  fd_welford_add(s, p[fd_thread()]);
  s = fd_welford_warp<32>(s);
  return s.mean + s.m2 + s.count;
}
template <class To, class From>
FD void cast(const From* from, To* to) {
  const fd_vec<From, 4> v = fd_load<From, 4>(from);
  fd_store(to, fd_cast<To>(v));
  to[5] = fd_cast<To>(from[5]);
}
template <class To>
FD void cast_all(To* to, const bf16* a, const f16* b, const f32* c, const f64* d, const i32* e,
                 const i64* f, const b8* g, const bool* h) {
  cast(a, to), cast(b, to), cast(c, to), cast(d, to), cast(e, to), cast(f, to), cast(g, to);
  cast(h, to);
}
template <class T, int N>
FD void move(const T* from, T* to) {
  fd_store(to, fd_load<T, N>(from));
  fd_store_stream(to + 64, fd_load_stream<T, N>(from));
  fd_store(to + 128, fd_load_nc<T, N>(from + 64));
  fd_store(to + 192, fd_load_nc_stream<T, N>(from));
  fd_store(to + 256, fd_load_l2<T, N>(from));
  fd_store_part(to + 320, fd_load_part<T, N>(from, N - 1), N - 1);
  fd_store_apart(to + 384, fd_load_apart<T, N>(from, 2), 2);
  fd_store_pieces<T, N, 1>(to + 448, fd_load_pieces<T, N, 1>(from));
  fd_store(to + 512, fd_load_nc_pieces<T, N, 1>(from));
  fd_store(to + 576, fd_load_nc_stream_pieces<T, N, 1>(from));
  fd_store_range(to + 640, fd_load_range<T, N>(from, 2, 0, N - 1), 2, 0, N - 1);
}

extern "C" __global__ void __launch_bounds__(128)
    every_pointwise(bool* a, i32* b, i64* c, f32* d, f64* e) {
  const u32 i = fd_cta() * fd_threads() + fd_thread(), n = fd_ctas() * fd_ctas_y() + fd_cta_y();
  a[i] = any_type(a[i], a[i + n], a[i + 9]) ^ whole_numbers(a[i], a[i + 1]);
  b[i] = any_type(b[i], b[i + n], b[i + 9]) ^ whole_numbers(b[i], b[i + 1]) ^ integers(b[i], b[0]);
  c[i] = any_type(c[i], c[i + n], c[i + 9]) ^ whole_numbers(c[i], c[i + 1]) ^ integers(c[i], c[0]);
  d[i] = any_type(d[i], d[i + n], d[i + 9]) + floats(d[i], d[0]);
  e[i] = any_type(e[i], e[i + n], e[i + 9]) + floats(e[i], e[0]);
}

extern "C" __global__ void __launch_bounds__(128)
    every_conversion(bf16* a, f16* b, f32* c, f64* d, i32* e, i64* f, b8* g, bool* h) {
  cast_all(a, a, b, c, d, e, f, g, h);
  cast_all(b, a, b, c, d, e, f, g, h);
  cast_all(c, a, b, c, d, e, f, g, h);
  cast_all(d, a, b, c, d, e, f, g, h);
  cast_all(e, a, b, c, d, e, f, g, h);
  cast_all(f, a, b, c, d, e, f, g, h);
  cast_all(g, a, b, c, d, e, f, g, h);
  fd_store(c, fd_cast_again(fd_load<bf16, 8>(a)));
  fd_vec<bf16, 8> hidden = fd_load<bf16, 8>(a);
  fd_opaque(hidden);
  fd_store(c, fd_cast<f32>(hidden));
  fd_store(c + 8, fd_cast_again(fd_load<f16, 8>(b)));
  fd_store(c, fd_cast_again(fd_load<bf16, 4>(a))), fd_store(c, fd_cast<f32>(fd_load<f16, 2>(b)));
  fd_store(a, fd_cast<bf16>(fd_load<f32, 4>(c))), fd_store(b, fd_cast<f16>(fd_load<f32, 2>(c)));
  move<bf16, 8>(a, a), move<bf16, 1>(a, a), move<f16, 4>(b, b), move<f16, 2>(b, b);
  move<f32, 1>(c, c), move<f32, 3>(c, c), move<f32, 8>(c, c), move<f64, 4>(d, d);
  move<i32, 4>(e, e), move<i64, 1>(f, f), move<b8, 8>(g, g), move<b8, 1>(g, g);
}

template <class T>
FD T team(const T* p, T* shared) {
  T chains[4] = {p[0], p[1], p[2], p[3]};
  T v[2] = {fd_fold<fd_sum>(chains), fd_fold<fd_max>(chains)};
  fd_put_partials<4>(v, shared);
  fd_sync();
  fd_take_partials<fd_prod, 4>(v, shared);
  fd_sync();
  return fd_add(v[0], v[1]);
}

template <class State, class T>
FD T online(State s, T* p, State* shared) {
  fd_online_add(s, fd_load<T, 4>(p));
  fd_online_add(s, fd_load<T, 4>(p), 1, 3);
  fd_put_online(s, shared);
  fd_sync();
  s = fd_take_online<4>(shared);
  fd_store_online(p, s);
  return fd_online_result(s);
}

extern "C" __global__ void __launch_bounds__(128)
    every_exchange(bool* a, i32* b, i64* c, f32* d, f64* e) {
  a[fd_thread()] = warp(a[fd_lane()]) ^ fd_any(a[3]) ^ fd_all(a[4]);
  b[fd_thread()] = warp(b[fd_lane()]) + fd_ballot(a[5]);
  fd_sync();
  c[fd_thread()] = warp(c[fd_lane()]);
  fd_sync_warp();
  d[fd_thread()] = warp(d[fd_warp()]) + moments(d);
  fd_sync_arrive(1, 128);
  fd_sync_named(1, 128);
  e[fd_thread()] = warp(e[fd_lane()]) + moments(e);
  a[0] = team(a, fd_smem<bool>(0, 8));
  b[0] = team(b, fd_smem<i32>(16, 8));
  c[0] = team(c, fd_smem<i64>(64, 8));
  d[0] = team(d, fd_smem<f32>(128, 8));
  e[0] = team(e, fd_smem<f64>(192, 8));
  a[0] = fd_combine_partials<fd_max, 1, bool>((const b8*)a);
  b[0] = fd_combine_partials<fd_min, 32, i32>(b);
  c[0] = fd_combine_partials<fd_prod, 40, i64>(c);
  d[0] = fd_combine_partials<fd_sum, 64, f32>(d);
  e[0] = fd_combine_partials<fd_sum, 90, f64>(e);
  d[0] = online(fd_welford<f32>{}, d, fd_smem<fd_welford<f32>>(256, 4)) +
         fd_online_result(fd_combine_online<fd_welford, 40>(d));
  e[0] = online(fd_exp_sum<f64>{}, e, fd_smem<fd_exp_sum<f64>>(512, 4)) +
         fd_online_result(fd_combine_online<fd_exp_sum, 6>(e));
}

extern "C" __global__ void __launch_bounds__(128) every_copy(const f32* from, f32* to) {
  fd_mbarrier* const bar = fd_smem<fd_mbarrier>(0, 2);
  f32* const s = fd_smem<f32>(128, 512);
  if (fd_thread() == 0) {
    fd_mbarrier_init(bar, 128);
    fd_mbarrier_init_fence();
  }
  fd_sync();
  fd_wait_primary();
  fd_copy16(s + 4 * fd_thread(), from + 4 * fd_thread());
  fd_copy_commit();
  fd_copy16_partial(s + 4 * fd_thread(), from + 4 * fd_thread(), 12);
  fd_copy_commit();
  fd_copy_wait<1>();
  fd_copy_wait<0>();
  fd_mbarrier_arrive(bar);
  fd_mbarrier_wait(bar, 0);
  to[fd_thread()] = s[fd_thread() ^ 1];
  fd_launch_dependents();
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __launch_bounds__(128) every_cluster(const f32* from, f32* to, f64* d) {
  fd_mbarrier* const bar = fd_smem<fd_mbarrier>(0, 2);
  f32* const s = fd_smem<f32>(128, 512);
  f64* const t = fd_smem<f64>(4096, 2);
  if (fd_thread() == 0) {
    fd_mbarrier_init(bar, 1);
    fd_mbarrier_init(bar + 1, 1);
    fd_mbarrier_init_fence();
  }
  fd_cluster_sync();
  if (fd_thread() == 0) {
    fd_mbarrier_expect(bar, 2048);
    fd_copy_bulk(s, from, 2048, bar);
    fd_mbarrier_expect(bar + 1, 12 + 2 * 2 * 4 * 4);
    fd_store_remote(s, 1.0f, fd_cluster_rank() ^ 1, bar + 1);
    fd_store_remote(t, 1.0, fd_cluster_rank() ^ 1, bar + 1);
  }
  f32 v[2] = {(f32)fd_thread(), 1.0f};
  fd_send_partials<2, 4>(v, fd_smem<f32>(4224, 16), bar + 1);
  fd_mbarrier_wait(bar, 0);
  fd_mbarrier_wait_cluster(bar + 1, 0);
  to[fd_thread()] = *fd_cluster_map(s + fd_thread(), fd_cluster_rank() ^ 1);
  d[0] = t[0];
  fd_cluster_arrive();
  fd_cluster_wait();
}
#endif
