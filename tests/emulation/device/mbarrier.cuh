// Twin of compiler/device/mbarrier.cuh.
struct alignas(8) fd_mbarrier {
  u64 state;
};
FD void fd_mbarrier_init(fd_mbarrier* b, u32 arrivals, FDE_AT) {
  fde_mbarrier_init(b, arrivals, at);
}
FD void fd_mbarrier_init_fence() { fde_mbarrier_init_fence(); }
FD void fd_mbarrier_arrive(fd_mbarrier* b, FDE_AT) { fde_mbarrier_arrive(b, 0, at); }
FD bool fd_mbarrier_ended(fd_mbarrier* b, u32 parity, FDE_AT) {
  return fde_mbarrier_ended(b, parity, at);
}
FD void fd_mbarrier_wait(fd_mbarrier* b, u32 parity, FDE_AT) { fde_mbarrier_wait(b, parity, at); }
#if __CUDA_ARCH__ >= 900
FD void fd_mbarrier_expect(fd_mbarrier* b, u32 bytes, FDE_AT) { fde_mbarrier_arrive(b, bytes, at); }
FD void fd_mbarrier_wait_cluster(fd_mbarrier* b, u32 parity, FDE_AT) {
  fde_mbarrier_wait(b, parity, at);
}
#endif
