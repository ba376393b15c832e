// CUDA's words as a C++ compiler for the host understands them. Stands second in every emulated
// text.
#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define threadIdx (fde_self->thread)
#define blockDim (fde_self->threads)
#define blockIdx (fde_self->cta)
#define gridDim (fde_self->ctas)

// Calls a kernel with arguments of its own types, found at `arguments`.
template <int... I>
struct fde_indices {};
template <int N, int... I>
struct fde_count : fde_count<N - 1, N - 1, I...> {};
template <int... I>
struct fde_count<0, I...> {
  typedef fde_indices<I...> type;
};
template <class... A, int... I>
inline void fde_call_indexed(void (*kernel)(A...), void** arguments, fde_indices<I...>) {
  kernel(*(A*)arguments[I]...);
}
template <class... A>
inline void fde_call(void (*kernel)(A...), void** arguments) {
  fde_call_indexed(kernel, arguments, typename fde_count<sizeof...(A)>::type());
}

// The last parameter of a helper whose faults are reported with the caller's place.
#define FDE_AT fde_site at = {__builtin_FILE(), __builtin_LINE()}
