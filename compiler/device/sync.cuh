// Barriers of a CTA and exchanges inside a warp.
//
// `mask` names the lanes that take part; each of them must make the same call.
// Needs: types.cuh
FD void fd_sync() { __syncthreads(); }
// Named barriers 1 to 15; `threads` counts those that sync or arrive, a multiple of 32.
// fd_sync_arrive does not wait, and does not order what other threads wrote.
FD void fd_sync_named(u32 id, u32 threads) {
  asm volatile("barrier.sync %0,%1;" ::"r"(id), "r"(threads) : "memory");
}
FD void fd_sync_arrive(u32 id, u32 threads) {
  asm volatile("barrier.arrive %0,%1;" ::"r"(id), "r"(threads) : "memory");
}
FD void fd_sync_warp(u32 mask = ~0u) { __syncwarp(mask); }

// The value of lane `lane` ^ `bits`; that of lane `source`. T: bool, i32, u32, i64, u64, f32, f64.
template <class T>
FD T fd_shuffle_xor(T v, u32 bits, u32 mask = ~0u) {
  return __shfl_xor_sync(mask, v, bits);
}
template <class T>
FD T fd_shuffle(T v, u32 source, u32 mask = ~0u) {
  return __shfl_sync(mask, v, source);
}
FD bool fd_any(bool v, u32 mask = ~0u) { return __any_sync(mask, v); }
FD bool fd_all(bool v, u32 mask = ~0u) { return __all_sync(mask, v); }
FD u32 fd_ballot(bool v, u32 mask = ~0u) { return __ballot_sync(mask, v); }
