// One-thread loops of pooling and batch normalization, compiled once per instruction set (see image_kernels.h).
#include <cstring>
#include <type_traits>

#include "core/math/float_types.h"
#include "cpu/image_kernels.h"

#if defined(__AVX512F__)
#define DLB_ISA_FUNCTION image_kernels_avx512
#elif defined(__AVX2__)
#define DLB_ISA_FUNCTION image_kernels_avx2
#else
#define DLB_ISA_FUNCTION image_kernels_portable
#endif

#define DLB_ALWAYS_INLINE inline __attribute__((always_inline))

namespace dlbench::cpu {
namespace {

template <typename S>
using Wide = std::conditional_t<std::is_same_v<S, double>, double, float>;

template <typename S>
DLB_ALWAYS_INLINE Wide<S> widened(S x) {
  if constexpr (std::is_same_v<S, Wide<S>>)
    return x;
  else
    return to_float(x);
}
template <typename S>
DLB_ALWAYS_INLINE S narrowed(Wide<S> x) {
  if constexpr (std::is_same_v<S, Wide<S>>)
    return x;
  else
    return from_float<S>(x);
}

template <typename S>
const S* in(const void* p) {
  return static_cast<const S*>(p);
}

/// Calls add(r0, r1, r2, r3) for rows four at a time and add_one(r) for the rest: four terms are added to each other
/// before the running sum, which makes it a quarter as long.
template <typename Four, typename One>
DLB_ALWAYS_INLINE void four_rows(int64_t rows, const Four& four, const One& one) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) four(r);
  for (; r < rows; ++r) one(r);
}

template <typename S>
void moments(const void* x_void, int64_t rows, int64_t row_length, int64_t columns, void* mean_void,
             void* squares_void) {
  using T = Wide<S>;
  const S* x = in<S>(x_void);
  T sum[kMaxImageColumns], square[kMaxImageColumns];
  for (int64_t j = 0; j < columns; ++j) sum[j] = square[j] = T(0);
  four_rows(
      rows,
      [&](int64_t r) {
        const S *a = x + r * row_length, *b = a + row_length, *c = b + row_length, *d = c + row_length;
        for (int64_t j = 0; j < columns; ++j)
          sum[j] += (widened(a[j]) + widened(b[j])) + (widened(c[j]) + widened(d[j]));
      },
      [&](int64_t r) {
        for (int64_t j = 0; j < columns; ++j) sum[j] += widened(x[r * row_length + j]);
      });
  const T inverse = T(1) / static_cast<T>(rows > 0 ? rows : 1);
  for (int64_t j = 0; j < columns; ++j) sum[j] *= inverse;
  four_rows(
      rows,
      [&](int64_t r) {
        const S *a = x + r * row_length, *b = a + row_length, *c = b + row_length, *d = c + row_length;
        for (int64_t j = 0; j < columns; ++j) {
          const T m = sum[j], p = widened(a[j]) - m, q = widened(b[j]) - m, s = widened(c[j]) - m,
                  t = widened(d[j]) - m;
          square[j] += (p * p + q * q) + (s * s + t * t);
        }
      },
      [&](int64_t r) {
        for (int64_t j = 0; j < columns; ++j) {
          const T p = widened(x[r * row_length + j]) - sum[j];
          square[j] += p * p;
        }
      });
  std::memcpy(mean_void, sum, static_cast<size_t>(columns) * sizeof(T));
  std::memcpy(squares_void, square, static_cast<size_t>(columns) * sizeof(T));
}

template <typename S, bool kResidual, bool kRelu>
void normalize_rows(const NormalizeArgs& t) {
  using T = Wide<S>;
  const T *mean = in<T>(t.mean), *scale = in<T>(t.scale), *shift = in<T>(t.shift);
  for (int64_t r = 0; r < t.rows; ++r) {
    const S* x = in<S>(t.x) + r * t.row_length;
    const S* residual = kResidual ? in<S>(t.residual) + r * t.row_length : nullptr;
    S* y = static_cast<S*>(t.y) + r * t.row_length;
#pragma GCC ivdep
    for (int64_t j = 0; j < t.columns; ++j) {
      T value = (widened(x[j]) - mean[j]) * scale[j] + shift[j];
      if constexpr (kResidual) value += widened(residual[j]);
      if constexpr (kRelu) value = value < T(0) ? T(0) : value;
      y[j] = narrowed<S>(value);
    }
  }
}

template <typename S>
void normalize(const NormalizeArgs& t) {
  if (t.residual != nullptr) return t.relu ? normalize_rows<S, true, true>(t) : normalize_rows<S, true, false>(t);
  return t.relu ? normalize_rows<S, false, true>(t) : normalize_rows<S, false, false>(t);
}

template <typename S, bool kRelu, bool kWrite>
void backward_sums_of(const NormalizeBackwardArgs& t, void* sum_dy, void* sum_dyx) {
  using T = Wide<S>;
  T sum[kMaxImageColumns], product[kMaxImageColumns];
  for (int64_t j = 0; j < t.columns; ++j) sum[j] = product[j] = T(0);
  const T* mean = in<T>(t.mean);
  const auto gradient = [&](int64_t r, int64_t j) __attribute__((always_inline)) {
    const int64_t at = r * t.row_length + j;
    S dy = in<S>(t.dy)[at];
    T wide = widened(dy);
    if constexpr (kRelu) wide = widened(in<S>(t.y)[at]) > T(0) ? wide : T(0);
    if constexpr (kWrite) static_cast<S*>(t.masked)[at] = narrowed<S>(wide);
    return wide;
  };
  four_rows(
      t.rows,
      [&](int64_t r) {
        const S *a = in<S>(t.x) + r * t.row_length, *b = a + t.row_length, *c = b + t.row_length, *d = c + t.row_length;
#pragma GCC ivdep
        for (int64_t j = 0; j < t.columns; ++j) {
          const T g0 = gradient(r, j), g1 = gradient(r + 1, j), g2 = gradient(r + 2, j), g3 = gradient(r + 3, j);
          const T m = mean[j];
          sum[j] += (g0 + g1) + (g2 + g3);
          product[j] += (g0 * (widened(a[j]) - m) + g1 * (widened(b[j]) - m)) +
                        (g2 * (widened(c[j]) - m) + g3 * (widened(d[j]) - m));
        }
      },
      [&](int64_t r) {
#pragma GCC ivdep
        for (int64_t j = 0; j < t.columns; ++j) {
          const T g = gradient(r, j);
          sum[j] += g;
          product[j] += g * (widened(in<S>(t.x)[r * t.row_length + j]) - mean[j]);
        }
      });
  std::memcpy(sum_dy, sum, static_cast<size_t>(t.columns) * sizeof(T));
  std::memcpy(sum_dyx, product, static_cast<size_t>(t.columns) * sizeof(T));
}

template <typename S>
void backward_sums(const NormalizeBackwardArgs& t, void* sum_dy, void* sum_dyx) {
  if (t.masked != nullptr) {
    return t.y != nullptr ? backward_sums_of<S, true, true>(t, sum_dy, sum_dyx)
                          : backward_sums_of<S, false, true>(t, sum_dy, sum_dyx);
  }
  return t.y != nullptr ? backward_sums_of<S, true, false>(t, sum_dy, sum_dyx)
                        : backward_sums_of<S, false, false>(t, sum_dy, sum_dyx);
}

template <typename S, bool kRelu>
void backward_gradient_rows(const NormalizeBackwardArgs& t) {
  using T = Wide<S>;
  const T *mean = in<T>(t.mean), *dy_factor = in<T>(t.dy_factor), *x_factor = in<T>(t.x_factor),
          *shift = in<T>(t.shift);
  for (int64_t r = 0; r < t.rows; ++r) {
    const S *dy = in<S>(t.dy) + r * t.row_length, *x = in<S>(t.x) + r * t.row_length;
    const S* y = kRelu ? in<S>(t.y) + r * t.row_length : nullptr;
    S* dx = static_cast<S*>(t.dx) + r * t.row_length;
#pragma GCC ivdep
    for (int64_t j = 0; j < t.columns; ++j) {
      T g = widened(dy[j]);
      if constexpr (kRelu) g = widened(y[j]) > T(0) ? g : T(0);
      dx[j] = narrowed<S>(g * dy_factor[j] + ((widened(x[j]) - mean[j]) * x_factor[j] + shift[j]));
    }
  }
}

template <typename S>
void backward_gradient(const NormalizeBackwardArgs& t) {
  return t.y != nullptr ? backward_gradient_rows<S, true>(t) : backward_gradient_rows<S, false>(t);
}

// Windows --------------------------------------------------------------------------------------------------------

constexpr int64_t kBlock = 64;

template <typename S>
void window_max(const WindowArgs& t) {
  using T = Wide<S>;
  for (int64_t first = 0; first < t.channels; first += kBlock) {
    const int64_t width = t.channels - first < kBlock ? t.channels - first : kBlock;
    const S* x = in<S>(t.x) + first;
    T best[kBlock];
    int32_t place[kBlock];
    for (int64_t j = 0; j < width; ++j) best[j] = widened(x[j]), place[j] = t.place;
    for (int64_t r = 0; r < t.rows; ++r) {
      for (int64_t c = 0; c < t.columns; ++c) {
        const S* pixel = x + r * t.row_stride + c * t.column_stride;
        const int32_t here =
            t.place + static_cast<int32_t>(r) * t.place_row_step + static_cast<int32_t>(c) * t.place_column_step;
        for (int64_t j = 0; j < width; ++j) {
          const T value = widened(pixel[j]);
          const bool wins = (value > best[j]) | ((value != value) & (best[j] == best[j]));
          best[j] = wins ? value : best[j];
          place[j] = wins ? here : place[j];
        }
      }
    }
    S* y = static_cast<S*>(t.y) + first;
    for (int64_t j = 0; j < width; ++j) y[j] = narrowed<S>(best[j]);
    for (int64_t j = 0; j < width; ++j) t.index_out[first + j] = static_cast<uint8_t>(place[j]);
  }
}

template <typename S>
void window_sum(const WindowArgs& t) {
  using T = Wide<S>;
  const T factor = static_cast<T>(t.factor);
  for (int64_t first = 0; first < t.channels; first += kBlock) {
    const int64_t width = t.channels - first < kBlock ? t.channels - first : kBlock;
    T sum[kBlock];
    for (int64_t j = 0; j < width; ++j) sum[j] = T(0);
    for (int64_t r = 0; r < t.rows; ++r) {
      for (int64_t c = 0; c < t.columns; ++c) {
        const int64_t at = r * t.row_stride + c * t.column_stride + first;
        const S* pixel = in<S>(t.x) + at;
        if (t.index_in == nullptr) {
          for (int64_t j = 0; j < width; ++j) sum[j] += widened(pixel[j]);
        } else {
          const int32_t here =
              t.place + static_cast<int32_t>(r) * t.place_row_step + static_cast<int32_t>(c) * t.place_column_step;
          const uint8_t* index = t.index_in + at;
          for (int64_t j = 0; j < width; ++j)
            sum[j] += static_cast<int32_t>(index[j]) == here ? widened(pixel[j]) : T(0);
        }
      }
    }
    S* y = static_cast<S*>(t.y) + first;
    for (int64_t j = 0; j < width; ++j) y[j] = narrowed<S>(sum[j] * factor);
  }
}

constexpr ImageKernels kTable = {
    {moments<double>, moments<float>, moments<bfloat16>, moments<float16>},
    {normalize<double>, normalize<float>, normalize<bfloat16>, normalize<float16>},
    {backward_sums<double>, backward_sums<float>, backward_sums<bfloat16>, backward_sums<float16>},
    {backward_gradient<double>, backward_gradient<float>, backward_gradient<bfloat16>, backward_gradient<float16>},
    {window_max<double>, window_max<float>, window_max<bfloat16>, window_max<float16>},
    {window_sum<double>, window_sum<float>, window_sum<bfloat16>, window_sum<float16>},
};

}  // namespace

const ImageKernels& DLB_ISA_FUNCTION() {
  return kTable;
}

}  // namespace dlbench::cpu
