// Clusters of CTAs. Empty below sm_90.
//
// No CTA may touch another's shared memory before the first fd_cluster_sync, nor return while
// others may still touch its own.
// Needs: types.cuh, smem.cuh, mbarrier.cuh
#if __CUDA_ARCH__ >= 900
FD u32 fd_cluster_rank() {
  u32 r;
  asm("mov.u32 %0,%%cluster_ctarank;" : "=r"(r));
  return r;
}
FD void fd_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
FD void fd_cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
FD void fd_cluster_sync() {
  fd_cluster_arrive();
  fd_cluster_wait();
}
// Where the CTA of rank `rank` has the shared object `p`.
template <class T>
FD T* fd_cluster_map(T* p, u32 rank) {
  u64 r;
  asm("mapa.u64 %0,%1,%2;" : "=l"(r) : "l"(p), "r"(rank));
  return (T*)r;
}
// Stores `v`, 4 or 8 bytes, to the place of `p` in the CTA of rank `rank`, and counts its bytes on
// that CTA's barrier `b` once they have landed. `p` and `b` are addresses of this CTA.
template <class T>
FD void fd_store_remote(T* p, T v, u32 rank, fd_mbarrier* b) {
  u32 to, bar;
  asm("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(to) : "r"(fdi_smem_address(p)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(bar) : "r"(fdi_smem_address(b)), "r"(rank));
  if constexpr (sizeof(T) == 4) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0],%1,[%2];" ::"r"(to),
        "r"(fd_bit_cast<u32>(v)), "r"(bar)
        : "memory");
  } else {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%0],%1,[%2];" ::"r"(to),
        "l"(fd_bit_cast<u64>(v)), "r"(bar)
        : "memory");
  }
}
#endif
