// The strict tier's f32 forms of what math.cuh approximates: IEEE quotients, libdevice's sines.
// Needs: types.cuh, primitive.cuh, convert.cuh, math.cuh
FD f32 fd_strict_div(f32 a, f32 b) { return a / b; }
FD f32 fd_strict_truediv(f32 a, f32 b) { return a / b; }
FD f32 fd_strict_reciprocal(f32 a) { return 1 / a; }
FD f32 fd_strict_sigmoid(f32 a) {
  const f32 e = fd_exp(-fd_abs(a));
  return (fd_lt(a, 0.0f) ? e : 1) / (1 + e);
}
FD f32 fd_strict_silu(f32 a) { return a * fd_strict_sigmoid(a); }
FDI_CALLED f32 fd_strict_sin(f32 a) { return sinf(a); }
FDI_CALLED f32 fd_strict_cos(f32 a) { return cosf(a); }
FDI_CALLED f32 fd_strict_tan(f32 a) { return tanf(a); }
