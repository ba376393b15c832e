// Partial results that the CTAs of the kernel ahead left in memory, `Count` of them side by side.
//
// Each warp combines them for itself, every one in the same order: all threads of all CTAs that do
// so get the same bits, and none waits for another.
// Needs: types.cuh, convert.cuh, load_store.cuh, sync.cuh, reduce.cuh
template <class Op, int Count, class T, class M>
FD T fd_combine_partials(const M* p) {
  T v[1] = {Op::template identity<T>()};
#pragma unroll
  for (int i = 0; i < Count; i += 32) {
    const int k = i + (int)fd_lane();
    if (i + 32 <= Count || k < Count)
      v[0] = Op::combine(v[0], fd_cast<T>(fd_load_l2<M, 1>(p + k)[0]));
  }
  fd_warp_reduce<Op, 32>(v);
  return v[0];
}
