// The hardware's approximations, as PTX names them (PTX ISA, "Floating Point Instructions"):
// subnormals are kept. Errors: ex2 and lg2 2^-22, of 1 where lg2's argument is near 1; sin and cos
// 2^-20.5 within half a turn of 0; tanh 2^-11 of its value; sqrt 2^-23 of its.
// Needs: types.cuh
#define FDI_APPROXIMATE(instruction)                        \
  f32 r;                                                    \
  asm(instruction ".approx.f32 %0,%1;" : "=f"(r) : "f"(a)); \
  return r
FD f32 fd_ex2_approx(f32 a) { FDI_APPROXIMATE("ex2"); }
FD f32 fd_lg2_approx(f32 a) { FDI_APPROXIMATE("lg2"); }
FD f32 fd_sin_approx(f32 a) { FDI_APPROXIMATE("sin"); }
FD f32 fd_cos_approx(f32 a) { FDI_APPROXIMATE("cos"); }
FD f32 fd_sqrt_approx(f32 a) { FDI_APPROXIMATE("sqrt"); }
FD f32 fd_tanh_approx(f32 a) { FDI_APPROXIMATE("tanh"); }
