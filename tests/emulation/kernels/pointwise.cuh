// y = silu(x) + b, vectors of 8 and a scalar tail; `b` has one value a column of 8.
extern "C" __global__ void __launch_bounds__(64)
    pointwise(const bf16* x, const bf16* b, bf16* y, u32 n) {
  for (u32 i = (fd_cta() * 64 + fd_thread()) * 8; i < n; i += fd_ctas() * 64 * 8) {
    if (i + 8 <= n) {
      const fd_vec<f32, 8> u = fd_cast<f32>(fd_load_stream<bf16, 8>(x + i));
      const fd_vec<f32, 8> v = fd_cast<f32>(fd_load<bf16, 8>(b));
      fd_vec<f32, 8> r;
      for (int k = 0; k < 8; k++) r[k] = fd_add(fd_silu(u[k]), v[k]);
      fd_store_stream(y + i, fd_cast<bf16>(r));
    } else {
      for (u32 k = 0; i + k < n; k++)
        y[i + k] = fd_cast<bf16>(fd_add(fd_silu(fd_cast<f32>(x[i + k])), fd_cast<f32>(b[k])));
    }
  }
}
