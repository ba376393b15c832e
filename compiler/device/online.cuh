// Reductions whose terms depend on another reduction of the same row, in one pass: a state goes
// over the row with both, and states of vectors, threads, warps and CTAs are merged, always in the
// same order.
//
//   fd_welford   sum of squares around the mean (Chan)
//   fd_exp_sum   sum of exponentials of what an element lies above the maximum
//
//   fd_online_add                      the elements of a vector, or those from `begin` to `end` - 1
//   fd_put_online, fd_take_online      of a CTA of Warps warps: as the partials of team.cuh
//   fd_store_online, fd_combine_online between kernels: the state's numbers, one after another
//   fd_online_result                   what the reduction gives
// Needs: types.cuh, math.cuh, load_store.cuh, sync.cuh, reduce.cuh
template <class T>
FD fd_welford<T> fd_online_merge(const fd_welford<T>& a, const fd_welford<T>& b) {
  return fd_welford_merge(a, b);
}
template <class T, int N>
FD void fd_online_add(fd_welford<T>& s, const fd_vec<T, N>& v) {
  // The vector's own mean first: one division for all of its elements.
  fd_welford<T> block = {v[0], 0, N};
#pragma unroll
  for (int i = 1; i < N; i++) block.mean += v[i];
  block.mean *= (T)(1.0 / N);
#pragma unroll
  for (int i = 0; i < N; i++) block.m2 += (v[i] - block.mean) * (v[i] - block.mean);
  s = fd_welford_merge(s, block);
}
template <class T, int N>
FD void fd_online_add(fd_welford<T>& s, const fd_vec<T, N>& v, int begin, int end) {
  fd_welford<T> block = {0, 0, (T)(end - begin)};
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i >= begin && i < end) block.mean += v[i];
  block.mean /= block.count;
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i >= begin && i < end) block.m2 += (v[i] - block.mean) * (v[i] - block.mean);
  s = fd_welford_merge(s, block);
}
template <class T>
FD T fd_online_result(const fd_welford<T>& s) {
  return s.m2;
}

// Empty: maximum -inf, sum 0. A row of nothing but -inf has no sum: nan, as -inf - -inf.
template <class T>
struct fd_exp_sum {
  T max = fd_lowest<T>(), sum = 0;
};
template <class T>
FD fd_exp_sum<T> fd_online_merge(const fd_exp_sum<T>& a, const fd_exp_sum<T>& b) {
  fd_exp_sum<T> r;
  r.max = fd_maximum(a.max, b.max);
  r.sum = (a.max == r.max ? a.sum : a.sum * fd_exp(a.max - r.max)) +
          (b.max == r.max ? b.sum : b.sum * fd_exp(b.max - r.max));
  return r;
}
template <class T, int N>
FD void fd_online_add(fd_exp_sum<T>& s, const fd_vec<T, N>& v) {
  T max = s.max;
#pragma unroll
  for (int i = 0; i < N; i++) max = fd_maximum(max, v[i]);
  if (s.max != max) s.sum *= fd_exp(s.max - max);
  s.max = max;
  const T above = max == fd_lowest<T>() ? 0 : max;
#pragma unroll
  for (int i = 0; i < N; i++) s.sum += fd_exp(v[i] - above);
}
template <class T, int N>
FD void fd_online_add(fd_exp_sum<T>& s, fd_vec<T, N> v, int begin, int end) {
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i < begin || i >= end) v[i] = fd_lowest<T>();
  fd_online_add(s, v);
}
template <class T>
FD T fd_online_result(const fd_exp_sum<T>& s) {
  return s.max == fd_lowest<T>() ? s.max - s.max : s.sum;
}

// Merged over a warp. The lower lane's part goes first, so that all lanes round alike.
template <class T>
FD fd_welford<T> fd_online_warp(const fd_welford<T>& s) {
  return fd_welford_warp<32>(s);
}
template <class T>
FD fd_exp_sum<T> fd_online_warp(fd_exp_sum<T> s) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) {
    const fd_exp_sum<T> o = {fd_shuffle_xor(s.max, bits), fd_shuffle_xor(s.sum, bits)};
    s = fd_lane() & bits ? fd_online_merge(o, s) : fd_online_merge(s, o);
  }
  return s;
}
template <class State>
FD void fd_put_online(const State& s, State* shared) {
  const State warp = fd_online_warp(s);
  if (fd_lane() == 0) shared[fd_warp()] = warp;
}
template <int Warps, class State>
FD State fd_take_online(const State* shared) {
  State s = shared[0];
#pragma unroll
  for (int w = 1; w < Warps; w++) s = fd_online_merge(s, shared[w]);
  return s;
}

template <template <class> class State, class T>
FD void fd_store_online(T* p, const State<T>& s) {
  constexpr int numbers = sizeof(s) / sizeof(T);
  const auto v = fd_bit_cast<fd_vec<T, numbers>>(s);
#pragma unroll
  for (int i = 0; i < numbers; i++) p[i] = v[i];
}
// By each warp for itself, `Count` states.
template <template <class> class State, int Count, class T>
FD State<T> fd_combine_online(const T* p) {
  constexpr int numbers = sizeof(State<T>) / sizeof(T);
  State<T> s = {};
#pragma unroll
  for (int i = 0; i < Count; i += 32) {
    const int k = i + (int)fd_lane();
    if (i + 32 > Count && k >= Count) continue;
    fd_vec<T, numbers> v;
#pragma unroll
    for (int n = 0; n < numbers; n++) v[n] = fd_load_l2<T, 1>(p + k * numbers + n)[0];
    s = fd_online_merge(s, fd_bit_cast<State<T>>(v));
  }
  return fd_online_warp(s);
}
