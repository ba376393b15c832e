// Asynchronous copies from global to shared memory.
//
// On every arch: 16-byte pieces, grouped by each thread. fd_copy_wait<N>() returns when all but the
// thread's N latest groups have landed; a barrier must follow before other threads read them.
// Needs: types.cuh, smem.cuh, mbarrier.cuh
FD void fd_copy16(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(fdi_smem_address(shared)),
               "l"(global)
               : "memory");
}
// Copies the first `bytes` (0 to 16) and clears the rest.
FD void fd_copy16_partial(void* shared, const void* global, u32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(fdi_smem_address(shared)),
               "l"(global), "r"(bytes)
               : "memory");
}
FD void fd_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
FD void fd_copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#if __CUDA_ARCH__ >= 900
// By one thread: `bytes` bytes, announced on `b` by fd_mbarrier_expect. Both addresses and `bytes`
// are multiples of 16.
FD void fd_copy_bulk(void* shared, const void* global, u32 bytes, fd_mbarrier* b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(
          fdi_smem_address(shared)),
      "l"(global), "r"(bytes), "r"(fdi_smem_address(b))
      : "memory");
}
#endif
