// Vectors of elements to and from memory.
//
// Addresses must be aligned to the vector: its size, at most 16 bytes (one element when the size is
// no power of two). fd_load and fd_store take global or shared memory, the others global memory
// only. A vector of more than 16 bytes moves in pieces of 16.
//
//   fd_load           the default cache policy
//   fd_load_stream    bytes that nobody reads again: allocates no L1 line
//   fd_load_nc        through the read-only path; only for buffers that no thread of the grid
//   fd_load_nc_stream   writes, which the guards of the executable must exclude
//   fd_load_l2        past L1: bytes that other CTAs wrote
//   fd_store          the default cache policy
//   fd_store_stream   bytes that nobody reads soon: evicted first
// Needs: types.cuh
template <int Bytes>
struct fdi_raw;
template <>
struct fdi_raw<1> {
  u8 v;
};
template <>
struct fdi_raw<2> {
  u16 v;
};
template <>
struct fdi_raw<4> {
  u32 v;
};
template <>
struct alignas(8) fdi_raw<8> {
  u32 x, y;
};
template <>
struct alignas(16) fdi_raw<16> {
  u32 x, y, z, w;
};

#define FDI_RAW_LOADS(name, op)                                                           \
  FD void name(fdi_raw<1>& r, const void* p) {                                            \
    u32 v;                                                                                \
    asm volatile("ld.global" op ".u8 %0,[%1];" : "=r"(v) : "l"(p));                       \
    r.v = (u8)v;                                                                          \
  }                                                                                       \
  FD void name(fdi_raw<2>& r, const void* p) {                                            \
    asm volatile("ld.global" op ".u16 %0,[%1];" : "=h"(r.v) : "l"(p));                    \
  }                                                                                       \
  FD void name(fdi_raw<4>& r, const void* p) {                                            \
    asm volatile("ld.global" op ".u32 %0,[%1];" : "=r"(r.v) : "l"(p));                    \
  }                                                                                       \
  FD void name(fdi_raw<8>& r, const void* p) {                                            \
    asm volatile("ld.global" op ".v2.u32 {%0,%1},[%2];" : "=r"(r.x), "=r"(r.y) : "l"(p)); \
  }                                                                                       \
  FD void name(fdi_raw<16>& r, const void* p) {                                           \
    asm volatile("ld.global" op ".v4.u32 {%0,%1,%2,%3},[%4];"                             \
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)                             \
                 : "l"(p));                                                               \
  }
FDI_RAW_LOADS(fdi_raw_load_stream, ".L1::no_allocate")
FDI_RAW_LOADS(fdi_raw_load_nc, ".nc")
FDI_RAW_LOADS(fdi_raw_load_nc_stream, ".nc.L1::no_allocate")
FDI_RAW_LOADS(fdi_raw_load_l2, ".cg")

template <int Bytes>
FD void fdi_raw_load(fdi_raw<Bytes>& r, const void* p) {
  r = *(const fdi_raw<Bytes>*)p;
}
template <int Bytes>
FD void fdi_raw_store(void* p, const fdi_raw<Bytes>& r) {
  *(fdi_raw<Bytes>*)p = r;
}
FD void fdi_raw_store_stream(void* p, const fdi_raw<1>& r) {
  asm volatile("st.global.cs.u8 [%0],%1;" ::"l"(p), "r"((u32)r.v) : "memory");
}
FD void fdi_raw_store_stream(void* p, const fdi_raw<2>& r) {
  asm volatile("st.global.cs.u16 [%0],%1;" ::"l"(p), "h"(r.v) : "memory");
}
FD void fdi_raw_store_stream(void* p, const fdi_raw<4>& r) {
  asm volatile("st.global.cs.u32 [%0],%1;" ::"l"(p), "r"(r.v) : "memory");
}
FD void fdi_raw_store_stream(void* p, const fdi_raw<8>& r) {
  asm volatile("st.global.cs.v2.u32 [%0],{%1,%2};" ::"l"(p), "r"(r.x), "r"(r.y) : "memory");
}
FD void fdi_raw_store_stream(void* p, const fdi_raw<16>& r) {
  asm volatile("st.global.cs.v4.u32 [%0],{%1,%2,%3,%4};" ::"l"(p), "r"(r.x), "r"(r.y), "r"(r.z),
               "r"(r.w)
               : "memory");
}

template <class T, int N>
struct fdi_pieces {
  static constexpr int bytes = alignof(fd_vec<T, N>), count = sizeof(fd_vec<T, N>) / bytes;
  fdi_raw<bytes> piece[count];
};

#define FDI_LOAD(name, raw)                               \
  template <class T, int N>                               \
  FD fd_vec<T, N> name(const T* p) {                      \
    fdi_pieces<T, N> r;                                   \
    if constexpr (r.count == 1) {                         \
      raw(r.piece[0], p);                                 \
    } else {                                              \
      _Pragma("unroll") for (int i = 0; i < r.count; i++) \
          raw(r.piece[i], (const char*)p + i * r.bytes);  \
    }                                                     \
    return fd_bit_cast<fd_vec<T, N>>(r);                  \
  }
#define FDI_STORE(name, raw)                                                                       \
  template <class T, int N>                                                                        \
  FD void name(T* p, const fd_vec<T, N>& v) {                                                      \
    const fdi_pieces<T, N> r = fd_bit_cast<fdi_pieces<T, N>>(v);                                   \
    if constexpr (r.count == 1) {                                                                  \
      raw(p, r.piece[0]);                                                                          \
    } else {                                                                                       \
      _Pragma("unroll") for (int i = 0; i < r.count; i++) raw((char*)p + i * r.bytes, r.piece[i]); \
    }                                                                                              \
  }
FDI_LOAD(fd_load, fdi_raw_load)
FDI_LOAD(fd_load_stream, fdi_raw_load_stream)
FDI_LOAD(fd_load_nc, fdi_raw_load_nc)
FDI_LOAD(fd_load_nc_stream, fdi_raw_load_nc_stream)
FDI_LOAD(fd_load_l2, fdi_raw_load_l2)
FDI_STORE(fd_store, fdi_raw_store)
FDI_STORE(fd_store_stream, fdi_raw_store_stream)
