// Fixed-width names, element types, vectors of elements, and where a thread stands in its grid.
// Every other device file needs this one.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;

#define FD __device__ __forceinline__
#define FDI_CALLED inline __device__ __noinline__

// Element types as they lie in memory. Arithmetic is done in bool, i32, i64, f32 and f64; bf16, f16
// and b8 are storage that convert.cuh turns into them.
struct bf16 {
  u16 bits;
};
struct f16 {
  u16 bits;
};
struct b8 {
  u8 bits;
};

template <class To, class From>
FD To fd_bit_cast(From v) {
  static_assert(sizeof(To) == sizeof(From), "fd_bit_cast keeps the size");
  return __builtin_bit_cast(To, v);
}

// What a vector of `bytes` bytes is aligned to: its size, at most 16; that of one element when the
// size is no power of two.
FD constexpr int fdi_alignment(int bytes, int element) {
  return (bytes & (bytes - 1)) ? element : bytes < 16 ? bytes : 16;
}

// N elements, in registers or in memory.
template <class T, int N>
struct alignas(fdi_alignment(sizeof(T) * N, sizeof(T))) fd_vec {
  T v[N];
  FD T& operator[](int i) { return v[i]; }
  FD const T& operator[](int i) const { return v[i]; }
};

// CTAs have one dim, a multiple of 32 threads; grids have up to two.
FD u32 fd_thread() { return threadIdx.x; }
FD u32 fd_threads() { return blockDim.x; }
FD u32 fd_lane() { return threadIdx.x & 31; }
FD u32 fd_warp() { return threadIdx.x >> 5; }
FD u32 fd_cta() { return blockIdx.x; }
FD u32 fd_cta_y() { return blockIdx.y; }
FD u32 fd_ctas() { return gridDim.x; }
FD u32 fd_ctas_y() { return gridDim.y; }
