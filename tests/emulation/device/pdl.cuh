// Twin of compiler/device/pdl.cuh.
FD void fd_wait_primary(FDE_AT) {
#if __CUDA_ARCH__ >= 900
  fde_wait_primary(at);
#endif
}
FD void fd_launch_dependents(FDE_AT) {
#if __CUDA_ARCH__ >= 900
  fde_launch_dependents(at);
#endif
}
