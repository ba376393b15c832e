// Reads n × 16 bytes, so that the L2 cache holds clean lines of nothing else afterwards. The sum is
// stored where it is an impossible value, so that no read can be dropped.
extern "C" __global__ void fd_bench_read_memory(const uint4* from, unsigned long long n,
                                                unsigned* sink) {
  unsigned sum = 0;
  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    const uint4 v = from[i];
    sum += v.x | v.y | v.z | v.w;
  }
  if (sum != 0) *sink = sum;  // the memory is zero
}
