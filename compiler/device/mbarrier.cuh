// Barriers in shared memory that count arrivals and bytes.
//
// A phase ends when `arrivals` threads have arrived and every byte announced has landed; the next
// one begins at once. fd_mbarrier_wait(b, parity) returns when the phase of that parity has ended:
// 0 for the first, 1 for the second, and so on in turn. A waiter must not fall two phases behind.
// Needs: types.cuh, smem.cuh
struct alignas(8) fd_mbarrier {
  u64 state;
};

// By one thread, before a barrier of the CTA (or cluster) that precedes the first use; then
// fd_mbarrier_init_fence() once, which makes the new barriers known to copies and other CTAs.
FD void fd_mbarrier_init(fd_mbarrier* b, u32 arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0],%1;" ::"r"(fdi_smem_address(b)), "r"(arrivals)
               : "memory");
}
FD void fd_mbarrier_init_fence() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
FD void fd_mbarrier_arrive(fd_mbarrier* b) {
  asm volatile("{.reg .b64 t; mbarrier.arrive.shared.b64 t,[%0];}" ::"r"(fdi_smem_address(b))
               : "memory");
}
FD bool fd_mbarrier_ended(fd_mbarrier* b, u32 parity) {
  u32 ok;
#if __CUDA_ARCH__ >= 900
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p,[%1],%2; selp.u32 %0,1,0,p;}"
               : "=r"(ok)
               : "r"(fdi_smem_address(b)), "r"(parity)
               : "memory");
#else
  asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p,[%1],%2; selp.u32 %0,1,0,p;}"
               : "=r"(ok)
               : "r"(fdi_smem_address(b)), "r"(parity)
               : "memory");
#endif
  return ok;
}
// By whole warps: every lane asks, then the warp votes. A loop of one lane, or of each lane by
// itself, makes ptxas emit a second, divergent copy of the code that follows.
FD void fd_mbarrier_wait(fd_mbarrier* b, u32 parity) {
  while (!__all_sync(~0u, fd_mbarrier_ended(b, parity))) {
  }
}

#if __CUDA_ARCH__ >= 900
// Announces `bytes` that copies will bring in this phase, and arrives.
FD void fd_mbarrier_expect(fd_mbarrier* b, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _,[%0],%1;" ::"r"(fdi_smem_address(b)),
               "r"(bytes)
               : "memory");
}
// fd_mbarrier_wait for phases that other CTAs of the cluster complete (fd_store_remote).
FD void fd_mbarrier_wait_cluster(fd_mbarrier* b, u32 parity) {
  u32 ok;
  do {
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p,[%1],%2; "
        "selp.u32 %0,1,0,p;}"
        : "=r"(ok)
        : "r"(fdi_smem_address(b)), "r"(parity)
        : "memory");
  } while (!__all_sync(~0u, ok));
}
#endif
