// Twin of compiler/device/cluster.cuh.
#if __CUDA_ARCH__ >= 900
FD u32 fd_cluster_rank() { return fde_cluster_rank(); }
FD void fd_cluster_arrive(FDE_AT) { fde_cluster_arrive(at); }
FD void fd_cluster_wait(FDE_AT) { fde_cluster_wait(at); }
FD void fd_cluster_sync(FDE_AT) {
  fde_cluster_arrive(at);
  fde_cluster_wait(at);
}
template <class T>
FD T* fd_cluster_map(T* p, u32 rank, FDE_AT) {
  return (T*)fde_cluster_map(p, rank, at);
}
template <class T>
FD void fd_store_remote(T* p, T v, u32 rank, fd_mbarrier* b, FDE_AT) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a remote store takes 4 or 8 bytes");
  fde_store_remote(p, &v, sizeof(T), rank, b, at);
}
#endif
