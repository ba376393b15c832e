// Column sums in two launches: partials of each CTA's rows, then their sum by a dependent grid.
extern "C" __global__ void __launch_bounds__(64)
    partials(const f32* x, f32* partial, u32 rows, u32 columns) {
  for (u32 c = fd_thread(); c < columns; c += 64) {
    f32 sum = 0;
    for (u32 row = fd_cta(); row < rows; row += fd_ctas()) {
      sum = fd_add(sum, x[(u64)row * columns + c]);
      if (row == fd_cta()) fd_launch_dependents();
    }
    partial[(u64)fd_cta() * columns + c] = sum;
  }
}
extern "C" __global__ void __launch_bounds__(32)
    finalise(const f32* partial, f32* y, u32 count, u32 columns) {
  fd_wait_primary();
  const u32 c = fd_cta() * 32 + fd_thread();
  if (c >= columns) return;
  f32 sum = 0;
  for (u32 i = 0; i < count; i++) sum = fd_add(sum, partial[(u64)i * columns + c]);
  y[c] = sum;
}
