// y = Σ x of each row, a row a cluster: sums travel by asynchronous stores; each CTA then reads its
// right neighbour's first value from that CTA's shared memory into z.
extern "C" __global__ void __launch_bounds__(64)
    cluster(const f32* x, f32* y, f32* z, u32 columns, u32 size) {
  fd_mbarrier* const met = fd_smem<fd_mbarrier>(0, 1);
  f32* const part = fd_smem<f32>(64, 32);
  f32* const first = fd_smem<f32>(256, 4);
  const u32 rank = fd_cluster_rank(), row = fd_cta() / size, t = fd_thread();
  const f32* const from = x + (u64)row * columns;
  if (t == 0) {
    fd_mbarrier_init(met, 1);
    fd_mbarrier_init_fence();
    *first = from[rank];
  }
  fd_cluster_sync();  // barriers are there, and first values
  if (t == 0) fd_mbarrier_expect(met, size * 2 * 4);
  f32 sum[1] = {0};
  for (u32 c = rank * 64 + t; c < columns; c += size * 64) sum[0] = fd_add(sum[0], from[c]);
  fd_warp_reduce<fd_sum, 32>(sum);
  if (fd_lane() < size) fd_store_remote(part + rank * 2 + fd_warp(), sum[0], fd_lane(), met);
  fd_mbarrier_wait_cluster(met, 0);
  f32 total = 0;
  for (u32 i = 0; i < size * 2; i++) total = fd_add(total, part[i]);
  if (rank == 0 && t == 0) y[row] = total;
  if (t == 0) z[fd_cta()] = *fd_cluster_map(first, (rank + 1) % size);
  fd_cluster_sync();  // nobody reads here any more
}
