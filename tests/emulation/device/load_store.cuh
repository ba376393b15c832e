// Twin of compiler/device/load_store.cuh: checks the alignment; one policy for all.
template <class T, int N>
FD void fde_check_alignment(const T* p, fde_site at) {
  if ((u64)p % alignof(fd_vec<T, N>)) fde_fail("an address is not aligned to its vector", at);
}
#define FDE_LOAD(name)                       \
  template <class T, int N>                  \
  FD fd_vec<T, N> name(const T* p, FDE_AT) { \
    fde_check_alignment<T, N>(p, at);        \
    return *(const fd_vec<T, N>*)p;          \
  }
#define FDE_STORE(name)                               \
  template <class T, int N>                           \
  FD void name(T* p, const fd_vec<T, N>& v, FDE_AT) { \
    fde_check_alignment<T, N>(p, at);                 \
    *(fd_vec<T, N>*)p = v;                            \
  }
FDE_LOAD(fd_load)
FDE_LOAD(fd_load_stream)
FDE_LOAD(fd_load_nc)
FDE_LOAD(fd_load_nc_stream)
FDE_LOAD(fd_load_l2)
FDE_STORE(fd_store)
FDE_STORE(fd_store_stream)
