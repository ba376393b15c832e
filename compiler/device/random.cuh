// Words of Philox4x32-10 (Salmon et al., SC 2011) as 32-bit unsigned numbers.
//
//   fd_random_bits(index, seed, offset)        one word; neighbours share a block where the
//   compiler
//                                              sees that they do
//   fd_random_word(index, seed, offset)        the same by a call, for those that share nothing
//   fd_random_vector<N>(index, seed, offset)   words index … index + N - 1, a block for each four;
//                                              N and index are multiples of 4
//
// Calls, because blocks that are computed side by side take a lane's registers.
// Needs: types.cuh
struct fdi_block {
  u32 a, b, c, d;
};
FD fdi_block fdi_philox(u64 number, u64 seed) {
  fdi_block w = {(u32)number, (u32)(number >> 32), 0, 0};
  u32 k = (u32)seed, l = (u32)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const u64 p = (u64)0xd2511f53u * w.a, q = (u64)0xcd9e8d57u * w.c;
    w = {(u32)(q >> 32) ^ w.b ^ k, (u32)q, (u32)(p >> 32) ^ w.d ^ l, (u32)p};
    k += 0x9e3779b9u;
    l += 0xbb67ae85u;
  }
  return w;
}
template <class T>
FD T fd_random_bits(T index, T seed, T offset) {
  const fdi_block w = fdi_philox(((u64)index >> 2) + ((u64)offset >> 2), (u64)seed);
  const u32 low = index & 1 ? w.b : w.a, high = index & 1 ? w.d : w.c;
  return (T)(index & 2 ? high : low);
}
template <class T>
FDI_CALLED T fd_random_word(T index, T seed, T offset) {
  return fd_random_bits(index, seed, offset);
}
FDI_CALLED fdi_block fdi_block_of_vector(u64 number, u64 seed) { return fdi_philox(number, seed); }
template <int N>
FD fd_vec<i64, N> fd_random_vector(i64 index, i64 seed, i64 offset) {
  fd_vec<i64, N> words;
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    const u64 number = ((u64)index >> 2) + i / 4 + ((u64)offset >> 2);
    const fdi_block w = fdi_block_of_vector(number, (u64)seed);
    words[i] = w.a, words[i + 1] = w.b, words[i + 2] = w.c, words[i + 3] = w.d;
  }
  return words;
}
