// y = x / Σ|x| of each row. A CTA a row; sums meet in shared memory.
extern "C" __global__ void __launch_bounds__(128)
    row_scale(const f32* x, f32* y, u32 rows, u32 columns) {
  f32* const part = fd_smem<f32>(0, 4);
  for (u32 row = fd_cta(); row < rows; row += fd_ctas()) {
    const f32* const from = x + (u64)row * columns;
    f32* const to = y + (u64)row * columns;
    f32 sum[1] = {0};
    for (u32 c = fd_thread(); c < columns; c += 128) sum[0] = fd_add(sum[0], fd_abs(from[c]));
    fd_warp_reduce<fd_sum, 32>(sum);
    if (fd_lane() == 0) part[fd_warp()] = sum[0];
    fd_sync();  // the sums are there
    f32 total = 0;
    for (u32 i = 0; i < 4; i++) total = fd_add(total, part[i]);
    for (u32 c = fd_thread(); c < columns; c += 128) to[c] = fd_div(from[c], total);
    fd_sync();  // the sums have been read
  }
}
