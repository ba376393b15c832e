// Twin of compiler/device/approximate.cuh: rounded once.
FD f32 fd_ex2_approx(f32 a) { return (f32)exp2((f64)a); }
FD f32 fd_lg2_approx(f32 a) { return (f32)log2((f64)a); }
FD f32 fd_sin_approx(f32 a) { return (f32)sin((f64)a); }
FD f32 fd_cos_approx(f32 a) { return (f32)cos((f64)a); }
FD f32 fd_sqrt_approx(f32 a) { return (f32)sqrt((f64)a); }
FD f32 fd_tanh_approx(f32 a) { return (f32)tanh((f64)a); }
