// Means and sums of squared deviations, online: vectors join a thread's state, states of threads,
// warps and CTAs are merged (Chan), always in the same order.
//
//   fd_moments_add                      elements, or those from `begin` to `end` - 1
//   fd_put_moments, fd_take_moments     of a CTA of Warps warps: as the partials of team.cuh
//   fd_store_moments, fd_combine_moments   between kernels, three numbers a state
// Needs: types.cuh, load_store.cuh, sync.cuh, reduce.cuh
template <class T, int N>
FD void fd_moments_add(fd_welford<T>& s, const fd_vec<T, N>& v) {
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
FD void fd_moments_add(fd_welford<T>& s, const fd_vec<T, N>& v, int begin, int end) {
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
FD void fd_put_moments(const fd_welford<T>& s, fd_welford<T>* shared) {
  const fd_welford<T> warp = fd_welford_warp<32>(s);
  if (fd_lane() == 0) shared[fd_warp()] = warp;
}
template <int Warps, class T>
FD fd_welford<T> fd_take_moments(const fd_welford<T>* shared) {
  fd_welford<T> s = shared[0];
#pragma unroll
  for (int w = 1; w < Warps; w++) s = fd_welford_merge(s, shared[w]);
  return s;
}

template <class T>
FD void fd_store_moments(T* p, const fd_welford<T>& s) {
  p[0] = s.mean, p[1] = s.m2, p[2] = s.count;
}
// By each warp for itself, `Count` states.
template <int Count, class T>
FD fd_welford<T> fd_combine_moments(const T* p) {
  fd_welford<T> s = {};
#pragma unroll
  for (int i = 0; i < Count; i += 32) {
    const int k = 3 * (i + (int)fd_lane());
    if (i + 32 > Count && k >= 3 * Count) continue;
    s = fd_welford_merge(s, {fd_load_l2<T, 1>(p + k)[0], fd_load_l2<T, 1>(p + k + 1)[0],
                             fd_load_l2<T, 1>(p + k + 2)[0]});
  }
  return fd_welford_warp<32>(s);
}
