// y = x - mean(x) of each row of 256, rows brought by bulk copies through a ring of 3 stages; two
// warps take 4 columns a lane, and a row's sums meet on an mbarrier.
extern "C" __global__ void __launch_bounds__(64) ring(const f32* x, f32* y, u32 rows) {
  constexpr u32 kColumns = 256, kStages = 3;
  fd_mbarrier* const full = fd_smem<fd_mbarrier>(0, kStages);
  fd_mbarrier* const met = fd_smem<fd_mbarrier>(64, 2);
  f32* const part = fd_smem<f32>(128, 4);
  f32* const stage = fd_smem<f32>(256, kStages * kColumns);
  const u32 t = fd_thread();
  if (t == 0) {
    for (u32 s = 0; s < kStages; s++) fd_mbarrier_init(full + s, 1);
    for (u32 s = 0; s < 2; s++) fd_mbarrier_init(met + s, 2);
    fd_mbarrier_init_fence();
  }
  fd_sync();
  const u32 mine = fd_cta() < rows ? (rows - fd_cta() + fd_ctas() - 1) / fd_ctas() : 0;
  auto refill = [&](u32 k) {
    fd_mbarrier_expect(full + k % kStages, kColumns * 4);
    fd_copy_bulk(stage + k % kStages * kColumns, x + (u64)(fd_cta() + k * fd_ctas()) * kColumns,
                 kColumns * 4, full + k % kStages);
  };
  if (t == 0) {
    for (u32 k = 0; k < kStages && k < mine; k++) refill(k);
  }
  for (u32 k = 0; k < mine; k++) {
    fd_mbarrier_wait(full + k % kStages, k / kStages & 1);
    const fd_vec<f32, 4> v = fd_load<f32, 4>(stage + k % kStages * kColumns + t * 4);
    f32 sum[1] = {v[0] + v[1] + (v[2] + v[3])};
    fd_warp_reduce<fd_sum, 32>(sum);
    fd_sync_warp();  // lane 0 arrives for all: their reads of the stage come first
    if (fd_lane() == 0) {
      part[k % 2 * 2 + fd_warp()] = sum[0];
      fd_mbarrier_arrive(met + k % 2);
    }
    fd_mbarrier_wait(met + k % 2, k / 2 & 1);
    if (t == 0 && k + kStages < mine) refill(k + kStages);  // both warps hold the row now
    const f32 mean = (part[k % 2 * 2] + part[k % 2 * 2 + 1]) * (1.0f / kColumns);
    fd_vec<f32, 4> r;
    for (int i = 0; i < 4; i++) r[i] = fd_sub(v[i], mean);
    fd_store_stream(y + (u64)(fd_cta() + k * fd_ctas()) * kColumns + t * 4, r);
  }
}
