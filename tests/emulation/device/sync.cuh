// Twin of compiler/device/sync.cuh.
FD void fd_sync(FDE_AT) { fde_sync(at); }
FD void fd_sync_named(u32 id, u32 threads, FDE_AT) { fde_sync_named(id, threads, true, at); }
FD void fd_sync_arrive(u32 id, u32 threads, FDE_AT) { fde_sync_named(id, threads, false, at); }
FD void fd_sync_warp(u32 mask = ~0u, FDE_AT) { fde_sync_warp(mask, at); }

template <class T>
FD T fd_shuffle(T v, u32 source, u32 mask = ~0u, FDE_AT) {
  u64 bits = 0;
  __builtin_memcpy(&bits, &v, sizeof(T));
  bits = fde_shuffle(bits, source & 31, mask, at);
  __builtin_memcpy(&v, &bits, sizeof(T));
  return v;
}
template <class T>
FD T fd_shuffle_xor(T v, u32 bits, u32 mask = ~0u, FDE_AT) {
  return fd_shuffle(v, fd_lane() ^ bits, mask, at);
}
FD u32 fd_ballot(bool v, u32 mask = ~0u, FDE_AT) { return fde_ballot(v, mask, at); }
FD bool fd_any(bool v, u32 mask = ~0u, FDE_AT) { return fde_ballot(v, mask, at) != 0; }
FD bool fd_all(bool v, u32 mask = ~0u, FDE_AT) { return fde_ballot(v, mask, at) == mask; }
