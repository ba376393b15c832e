// What the warps of a cluster that share a row do together. Empty below sm_90.
//
// Partial results of Ctas CTAs of Warps warps each: each warp reduces its own (fd_warp_reduce) and
// sends them to the place of `shared`, K * Ctas * Warps elements of 4 or 8 bytes, in every CTA of
// the cluster. One thread of each CTA announces their bytes on its own `b`; behind
// fd_mbarrier_wait_cluster, fd_take_partials<Op, Ctas * Warps> gives every thread of the cluster
// the same bits.
// Needs: types.cuh, cluster.cuh
#if __CUDA_ARCH__ >= 900
template <int Ctas, int Warps, class T, int K>
FD void fd_send_partials(T (&v)[K], T* shared, fd_mbarrier* b) {
  if (fd_lane() < Ctas) {
    const u32 at = fd_cluster_rank() * Warps + fd_warp();
#pragma unroll
    for (int k = 0; k < K; k++) fd_store_remote(shared + k * Ctas * Warps + at, v[k], fd_lane(), b);
  }
}
#endif
