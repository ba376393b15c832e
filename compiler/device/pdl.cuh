// Dependent launch. Nothing below sm_90, where a launch waits for the one before.
//
// A grid launched as a dependent may start once every CTA of the grid before it has called
// fd_launch_dependents or returned; fd_wait_primary returns when that grid has ended and its writes
// are visible. Every read of them, and every write to what it reads, comes after.
// Needs: types.cuh
FD void fd_wait_primary() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
FD void fd_launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
