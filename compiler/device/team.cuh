// What threads that share a row do together, and rows whose ends fall inside vectors.
//
// Partial results of a team of Warps warps, one of several in a CTA: each warp reduces its own
// (fd_warp_reduce), fd_put_partials writes them to the team's `shared`, K * Warps elements, a
// barrier follows, and in fd_take_partials every warp combines them by a tree, so that every thread
// gets the same bits. Warps is a power of two or at least 32. `shared` is free again after the next
// barrier.
// Needs: types.cuh, load_store.cuh, reduce.cuh
template <int Warps, class T, int K>
FD void fd_put_partials(T (&v)[K], T* shared) {
  if (fd_lane() == 0) {
#pragma unroll
    for (int k = 0; k < K; k++) shared[k * Warps + fd_warp() % Warps] = v[k];
  }
}
template <class Op, int Warps, class T, int K>
FD void fd_take_partials(T (&v)[K], const T* shared) {
#pragma unroll
  for (int k = 0; k < K; k++) v[k] = shared[k * Warps + fd_lane() % Warps];
#pragma unroll
  for (int w = 32; w < Warps; w += 32) {
#pragma unroll
    for (int k = 0; k < K; k++)
      if (w + fd_lane() < Warps) v[k] = Op::combine(v[k], shared[k * Warps + w + fd_lane()]);
  }
  fd_warp_reduce<Op, (Warps < 32 ? Warps : 32)>(v);
}

// The N chains of one thread's reduction, a power of two, in a fixed tree.
template <class Op, class T, int N>
FD T fd_fold(T (&chains)[N]) {
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; i++) chains[i] = Op::combine(chains[i], chains[i + half]);
  }
  return chains[0];
}

// Elements `begin` to `end` - 1 of N, `stride` elements apart; what is not loaded is 0.
template <class T, int N, class Index>
FD fd_vec<T, N> fd_load_range(const T* p, Index stride, int begin, int end) {
  fd_vec<T, N> r{};
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i >= begin && i < end) r[i] = p[i * stride];
  return r;
}
template <class T, int N, class Index>
FD void fd_store_range(T* p, const fd_vec<T, N>& v, Index stride, int begin, int end) {
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i >= begin && i < end) p[i * stride] = v[i];
}
