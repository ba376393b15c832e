// Shared memory: one arena a CTA, sized at launch and laid out by the code generator.
//
// fd_smem<T>(offset, count) is `count` elements at byte `offset`, which is a multiple of 16 (of 128
// for the target of a bulk copy). Two buffers may not overlap: where lifetimes let bytes be used
// twice, declare one buffer of u8 and cast its pointer.
// Needs: types.cuh
extern __shared__ __align__(1024) unsigned char fdi_arena[];

template <class T>
FD T* fd_smem(u32 offset, u32 count) {
  return (T*)(fdi_arena + offset);
}
// The address that PTX's shared-memory instructions take.
FD u32 fdi_smem_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
