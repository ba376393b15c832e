// Twin of compiler/device/smem.cuh.
template <class T>
FD T* fd_smem(u32 offset, u32 count, FDE_AT) {
  return (T*)fde_smem(offset, (u64)count * sizeof(T), alignof(T), at);
}
