// y[i] = x[127 - i] in each row of 128, rows brought 16 bytes a thread, two rows ahead.
extern "C" __global__ void __launch_bounds__(32) pipeline(const f32* x, f32* y, u32 rows) {
  constexpr u32 kColumns = 128, kStages = 3;
  f32* const stage = fd_smem<f32>(0, kStages * kColumns);
  const u32 t = fd_thread();
  auto fetch = [&](u32 k) {
    const u32 row = fd_cta() + k * fd_ctas();
    if (row < rows)
      fd_copy16(stage + k % kStages * kColumns + t * 4, x + (u64)row * kColumns + t * 4);
    fd_copy_commit();
  };
  fetch(0);
  fetch(1);
  for (u32 k = 0; fd_cta() + k * fd_ctas() < rows; k++) {
    fetch(k + 2);
    fd_copy_wait<2>();
    fd_sync();  // everyone's pieces are there
    for (u32 i = 0; i < 4; i++) {
      y[(u64)(fd_cta() + k * fd_ctas()) * kColumns + i * 32 + t] =
          stage[k % kStages * kColumns + 127 - (i * 32 + t)];
    }
    fd_sync();  // everyone has read them
  }
}
