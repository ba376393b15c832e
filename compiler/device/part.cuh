// Vectors that one load or store does not move: cut ones, ones of weak alignment, ones whose
// elements lie apart.
//
//   fd_load_part, fd_store_part         the first `count` elements; what is not loaded is 0
//   fd_load_apart, fd_store_apart       elements `stride` elements apart
//   <load>_pieces<T, N, W>, fd_store_pieces<T, N, W>   addresses aligned for vectors of W elements
// Needs: types.cuh, load_store.cuh
template <class T, int N, class Index>
FD fd_vec<T, N> fd_load_part(const T* p, Index count) {
  fd_vec<T, N> r{};
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i < count) r[i] = p[i];
  return r;
}
template <class T, int N, class Index>
FD void fd_store_part(T* p, const fd_vec<T, N>& v, Index count) {
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i < count) p[i] = v[i];
}
template <class T, int N, class Index>
FD fd_vec<T, N> fd_load_apart(const T* p, Index stride) {
  fd_vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; i++) r[i] = p[i * stride];
  return r;
}
template <class T, int N, class Index>
FD void fd_store_apart(T* p, const fd_vec<T, N>& v, Index stride) {
#pragma unroll
  for (int i = 0; i < N; i++) p[i * stride] = v[i];
}

#define FD_LOAD_PIECES(load)                                             \
  template <class T, int N, int W>                                       \
  FD fd_vec<T, N> load##_pieces(const T* p) {                            \
    fd_vec<T, N> r;                                                      \
    _Pragma("unroll") for (int i = 0; i < N; i += W) {                   \
      const fd_vec<T, W> piece = load<T, W>(p + i);                      \
      _Pragma("unroll") for (int j = 0; j < W; j++) r[i + j] = piece[j]; \
    }                                                                    \
    return r;                                                            \
  }
FD_LOAD_PIECES(fd_load)
FD_LOAD_PIECES(fd_load_nc)
FD_LOAD_PIECES(fd_load_nc_stream)
template <class T, int N, int W>
FD void fd_store_pieces(T* p, const fd_vec<T, N>& v) {
#pragma unroll
  for (int i = 0; i < N; i += W) {
    fd_vec<T, W> piece;
#pragma unroll
    for (int j = 0; j < W; j++) piece[j] = v[i + j];
    fd_store(p + i, piece);
  }
}
