// Twin of compiler/device/copy.cuh.
FD void fd_copy16(void* shared, const void* global, FDE_AT) { fde_copy16(shared, global, 16, at); }
FD void fd_copy16_partial(void* shared, const void* global, u32 bytes, FDE_AT) {
  fde_copy16(shared, global, bytes, at);
}
FD void fd_copy_commit() { fde_copy_commit(); }
template <int N>
FD void fd_copy_wait(FDE_AT) {
  fde_copy_wait(N, at);
}
#if __CUDA_ARCH__ >= 900
FD void fd_copy_bulk(void* shared, const void* global, u32 bytes, fd_mbarrier* b, FDE_AT) {
  fde_copy_bulk(shared, global, bytes, b, at);
}
#endif
