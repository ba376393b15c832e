// y = x · 2^steps: one warp writes a value for three others, which hand it back, over two named
// barriers.
extern "C" __global__ void __launch_bounds__(128) relay(const f32* x, f32* y, u32 steps) {
  f32* const slot = fd_smem<f32>(0, 96);
  const u32 lane = fd_lane();
  if (fd_warp() == 0) {
    f32 v[3];
    for (u32 w = 0; w < 3; w++) v[w] = x[w * 32 + lane];
    for (u32 s = 0; s < steps; s++) {
      for (u32 w = 0; w < 3; w++) slot[w * 32 + lane] = v[w];
      fd_sync_arrive(1, 128);  // full
      fd_sync_named(2, 128);   // empty
      for (u32 w = 0; w < 3; w++) v[w] = slot[w * 32 + lane];
    }
    for (u32 w = 0; w < 3; w++) y[w * 32 + lane] = v[w];
  } else {
    f32* const mine = slot + (fd_warp() - 1) * 32 + lane;
    for (u32 s = 0; s < steps; s++) {
      fd_sync_named(1, 128);  // full
      *mine = fd_mul(*mine, 2.0f);
      fd_sync_arrive(2, 128);  // empty
    }
  }
}
