// How partial results of reductions meet: an operator has identity<T>() and combine(a, b), T a type
// of math.cuh.
// Needs: types.cuh, primitive.cuh, convert.cuh, math.cuh, sync.cuh
template <class T>
FD T fd_lowest() {
  if constexpr (fd_same<T, f32>) {
    return fd_bit_cast<f32>(0xff800000u);
  } else if constexpr (fd_same<T, f64>) {
    return fd_bit_cast<f64>(0xfff0000000000000ull);
  } else if constexpr (fd_same<T, bool>) {
    return false;
  } else {
    return (T)((fdi_modular_t<T>)1 << (sizeof(T) * 8 - 1));
  }
}
template <class T>
FD T fd_highest() {
  if constexpr (fd_is_float<T>) {
    return -fd_lowest<T>();
  } else {
    return fd_bitwise_not(fd_lowest<T>());
  }
}
struct fd_sum {
  template <class T>
  FD static T identity() {
    return 0;
  }
  template <class T>
  FD static T combine(T a, T b) {
    return fd_add(a, b);
  }
};
struct fd_prod {
  template <class T>
  FD static T identity() {
    return 1;
  }
  template <class T>
  FD static T combine(T a, T b) {
    return fd_mul(a, b);
  }
};
struct fd_max {
  template <class T>
  FD static T identity() {
    return fd_lowest<T>();
  }
  template <class T>
  FD static T combine(T a, T b) {
    return fd_maximum(a, b);
  }
};
struct fd_min {
  template <class T>
  FD static T identity() {
    return fd_highest<T>();
  }
  template <class T>
  FD static T combine(T a, T b) {
    return fd_minimum(a, b);
  }
};

// K reductions over each group of Lanes lanes (a power of two) at once; every lane of a group gets
// the same bits.
template <class Op, int Lanes, class T, int K>
FD void fd_warp_reduce(T (&v)[K]) {
#pragma unroll
  for (int bits = Lanes / 2; bits > 0; bits /= 2) {
#pragma unroll
    for (int k = 0; k < K; k++) v[k] = Op::combine(v[k], fd_shuffle_xor(v[k], bits));
  }
}

// Mean and sum of squared deviations of `count` values.
template <class T>
struct fd_welford {
  T mean, m2, count;
};
template <class T>
FD void fd_welford_add(fd_welford<T>& s, T value) {
  s.count += 1;
  const T d = value - s.mean;
  s.mean += d / s.count;
  s.m2 += d * (value - s.mean);
}
template <class T>
FD fd_welford<T> fd_welford_merge(const fd_welford<T>& a, const fd_welford<T>& b) {
  const T n = a.count + b.count, d = b.mean - a.mean, f = n == 0 ? 0 : b.count / n;
  return {a.mean + d * f, a.m2 + b.m2 + d * d * a.count * f, n};
}
// As fd_warp_reduce. The lower lane's part goes first, so that all lanes round alike.
template <int Lanes, class T>
FD fd_welford<T> fd_welford_warp(fd_welford<T> s) {
#pragma unroll
  for (int bits = Lanes / 2; bits > 0; bits /= 2) {
    const fd_welford<T> o = {fd_shuffle_xor(s.mean, bits), fd_shuffle_xor(s.m2, bits),
                             fd_shuffle_xor(s.count, bits)};
    s = fd_lane() & bits ? fd_welford_merge(o, s) : fd_welford_merge(s, o);
  }
  return s;
}
