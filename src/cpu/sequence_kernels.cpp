// One-thread loops over rows, compiled once per instruction set (see sequence_kernels.h, CMakeLists.txt).
//
// A row is a few kilobytes: it comes from memory once and is in the first-level cache for the passes after that. Loops
// go by blocks of kBlock elements, whose length the compiler knows; kBlock sums run side by side.
#include "cpu/sequence_kernels.h"

#include <cmath>
#include <limits>

#include "core/math/activation.h"
#include "core/math/optimizer.h"
#include "cpu/kernel_blocks.h"

#if defined(__AVX512F__)
#define DLB_ISA_FUNCTION sequence_kernels_avx512
#elif defined(__AVX2__)
#define DLB_ISA_FUNCTION sequence_kernels_avx2
#else
#define DLB_ISA_FUNCTION sequence_kernels_portable
#endif

namespace dlbench::cpu {
namespace {

using Whole = std::integral_constant<int64_t, kBlock>;

/// f(first element, count) for each block: count is the constant kBlock, then what is left as a plain number.
template <typename F>
DLB_ALWAYS_INLINE void for_blocks(int64_t n, const F& f) {
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) f(i, Whole{});
  if (i < n) f(i, n - i);
}

/// A block of elements in W: where it lies, or widened to memory of its own. Beyond `count` there may be nothing.
template <typename T>
struct Block {
  using W = Wide<T>;
  static constexpr bool kInPlace = std::is_same_v<T, W>;
  alignas(64) W buffer[kInPlace ? 1 : kBlock];
  const W* value;
  template <typename Count>
  DLB_ALWAYS_INLINE Block(const T* x, Count count) {
    if constexpr (kInPlace) {
      value = x;
    } else {
      if constexpr (std::is_same_v<Count, Whole>)
        widen(x, buffer);
      else
        widen_part(x, count, buffer);
      value = buffer;
    }
  }
  DLB_ALWAYS_INLINE W operator[](int64_t j) const { return value[j]; }
};

/// out[j] = f(j) for a block.
template <typename T, typename Count, typename F>
DLB_ALWAYS_INLINE void emit(T* out, Count count, bool stream, const F& f) {
  using W = Wide<T>;
  constexpr bool whole = std::is_same_v<Count, Whole>;
  if constexpr (std::is_same_v<T, W>) {
    if (whole && stream) {
      alignas(64) W result[kBlock];
      for (int64_t j = 0; j < kBlock; ++j) result[j] = f(j);
      stream_bytes(result, out, static_cast<int64_t>(sizeof result));
      return;
    }
    const int64_t n = count;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) out[j] = f(j);
  } else {
    alignas(64) W result[kBlock];
    if constexpr (whole) {
      for (int64_t j = 0; j < kBlock; ++j) result[j] = f(j);
      narrow(result, out);
    } else {
      for (int64_t j = 0; j < kBlock; ++j) result[j] = j < count ? f(j) : W(0);
      narrow_part(result, count, out);
    }
  }
}

/// Rows up to this long keep exponentials or sums in memory of the loop; exponentials of longer ones are in their
/// result, or computed twice where that would round them.
constexpr int64_t kKept = 4096;

template <typename W>
DLB_ALWAYS_INLINE W add_lanes(W* lane) {
#pragma GCC unroll 8
  for (int width = kBlock / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lane[j] += lane[j + width];
  }
  return lane[0];
}

/// e^x for x up to 0 or a little above, as all exponents less their maximum are: exp_float's series (core/math) with
/// fused multiply-adds and one factor 2^n; what would be denormal is 0. Half the instructions of exp_float.
DLB_ALWAYS_INLINE float exp_below_zero(float x) {
  constexpr float kLog2E = 1.44269504088896341f, kLn2High = 0.693359375f, kLn2Low = -2.12194440054690583e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest whole number in the low bits
  constexpr uint32_t kRoundBits = 0x4B400000u;
  const float shifted = multiply_add(x, kLog2E, kRound);
  const float n = shifted - kRound;
  const float r = multiply_add(n, -kLn2Low, multiply_add(n, -kLn2High, x));
  float p = multiply_add(1.0f / 5040.0f, r, 1.0f / 720.0f);
  p = multiply_add(p, r, 1.0f / 120.0f);
  p = multiply_add(p, r, 1.0f / 24.0f);
  p = multiply_add(p, r, 1.0f / 6.0f);
  p = multiply_add(p, r, 0.5f);
  p = multiply_add(p * r, r, r) + 1.0f;
  const float power = dlbench::detail::bits_float((dlbench::detail::float_bits(shifted) - (kRoundBits - 127u)) << 23);
  return x < -87.0f ? 0.0f : p * power;
}
DLB_ALWAYS_INLINE double exp_below_zero(double x) {
  return exp_of(x);
}

template <typename W>
constexpr W kMinusInfinity = -std::numeric_limits<W>::infinity();

template <typename T>
DLB_ALWAYS_INLINE Wide<T> row_max(const T* x, int64_t n) {
  using W = Wide<T>;
  W lane[kBlock];
  for (int j = 0; j < kBlock; ++j) lane[j] = kMinusInfinity<W>;
  for_blocks(
      n, [&](int64_t i, auto count) __attribute__((always_inline)) {
        const Block<T> v(x + i, count);
        for (int64_t j = 0; j < count; ++j) lane[j] = lane[j] < v[j] ? v[j] : lane[j];
      });
#pragma GCC unroll 8
  for (int width = kBlock / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lane[j] = lane[j] < lane[j + width] ? lane[j + width] : lane[j];
  }
  return lane[0];
}

// Layer normalization --------------------------------------------------------------------------------------------

template <typename T>
void layer_norm_forward(const LayerNormArgs& a) {
  using W = Wide<T>;
  const W share = W(1) / static_cast<W>(a.columns);
  const T *gamma = in<T>(a.gamma), *beta = in<T>(a.beta);
  // A sum that goes past the caches is kept here for the passes after it.
  alignas(64) T local[kKept];
  const bool keep = a.stream && a.columns <= kKept;
  for (int64_t r = 0; r < a.rows; ++r) {
    const T* x = in<T>(a.x) + r * a.columns;
    W lane[kBlock] = {};
    if (a.residual != nullptr) {
      const T* residual = in<T>(a.residual) + r * a.columns;
      T* sum = keep ? local : out<T>(a.sum) + r * a.columns;
      for_blocks(
          a.columns, [&](int64_t i, auto count) __attribute__((always_inline)) {
            const Block<T> left(x + i, count), right(residual + i, count);
            emit(
                sum + i, count, false, [&](int64_t j) __attribute__((always_inline)) { return left[j] + right[j]; });
          });
      x = sum;
      if (keep) stream_bytes(local, out<T>(a.sum) + r * a.columns, a.columns * static_cast<int64_t>(sizeof(T)));
    }
    for_blocks(
        a.columns, [&](int64_t i, auto count) __attribute__((always_inline)) {
          const Block<T> v(x + i, count);
          for (int64_t j = 0; j < count; ++j) lane[j] += v[j];
        });
    const W mean = add_lanes(lane) * share;
    for (int j = 0; j < kBlock; ++j) lane[j] = 0;
    for_blocks(
        a.columns, [&](int64_t i, auto count) __attribute__((always_inline)) {
          const Block<T> v(x + i, count);
          for (int64_t j = 0; j < count; ++j) {
            const W d = v[j] - mean;
            lane[j] = multiply_add(d, d, lane[j]);
          }
        });
    const W rstd = W(1) / std::sqrt(add_lanes(lane) * share + static_cast<W>(a.epsilon));
    T* y = out<T>(a.y) + r * a.columns;
    for_blocks(
        a.columns, [&](int64_t i, auto count) __attribute__((always_inline)) {
          const Block<T> v(x + i, count), g(gamma + i, count), b(beta + i, count);
          emit(
              y + i, count, a.stream, [&](int64_t j) __attribute__((always_inline)) {
                return multiply_add((v[j] - mean) * rstd, g[j], b[j]);
              });
        });
    out<W>(a.mean)[r] = mean;
    out<W>(a.rstd)[r] = rstd;
  }
  if (a.stream) end_stream();
}

template <typename T>
void layer_norm_backward(const LayerNormBackwardArgs& a) {
  using W = Wide<T>;
  const W share = W(1) / static_cast<W>(a.columns);
  const T* gamma = in<T>(a.gamma);
  W *dgamma = out<W>(a.dgamma), *dbeta = out<W>(a.dbeta);
  for (int64_t j = 0; j < a.columns; ++j) dgamma[j] = 0, dbeta[j] = 0;
  for (int64_t r = 0; r < a.rows; ++r) {
    const T *dy = in<T>(a.dy) + r * a.columns, *x = in<T>(a.x) + r * a.columns;
    const W mean = in<W>(a.mean)[r], rstd = in<W>(a.rstd)[r];
    W of_g[kBlock] = {}, of_gx[kBlock] = {};
    for_blocks(
        a.columns, [&](int64_t i, auto count) __attribute__((always_inline)) {
          const Block<T> d(dy + i, count), v(x + i, count), g(gamma + i, count);
          const int64_t n = count;
#pragma GCC ivdep
          for (int64_t j = 0; j < n; ++j) {
            const W normal = (v[j] - mean) * rstd, scaled = d[j] * g[j];
            of_g[j] += scaled;
            of_gx[j] = multiply_add(scaled, normal, of_gx[j]);
            dgamma[i + j] = multiply_add(d[j], normal, dgamma[i + j]);
            dbeta[i + j] += d[j];
          }
        });
    const W mean_g = add_lanes(of_g) * share, mean_gx = add_lanes(of_gx) * share;
    const T* add = a.dx_add == nullptr ? nullptr : in<T>(a.dx_add) + r * a.columns;
    T* dx = out<T>(a.dx) + r * a.columns;
    for_blocks(
        a.columns, [&](int64_t i, auto count) __attribute__((always_inline)) {
          const Block<T> d(dy + i, count), v(x + i, count), g(gamma + i, count);
          const auto gradient = [&](int64_t j) __attribute__((always_inline)) {
            const W normal = (v[j] - mean) * rstd;
            return rstd * (d[j] * g[j] - mean_g - normal * mean_gx);
          };
          if (add != nullptr) {
            const Block<T> more(add + i, count);
            emit(
                dx + i, count,
                a.stream, [&](int64_t j) __attribute__((always_inline)) { return gradient(j) + more[j]; });
          } else {
            emit(dx + i, count, a.stream, gradient);
          }
        });
  }
  if (a.stream) end_stream();
}

// Softmax --------------------------------------------------------------------------------------------------------

/// exp(x - maximum) of a row: their sum is returned, they go to `kept` unless that is null.
template <typename T>
DLB_ALWAYS_INLINE Wide<T> exponentials(const T* x, int64_t n, Wide<T> maximum, Wide<T>* kept) {
  using W = Wide<T>;
  W lane[kBlock] = {};
  for_blocks(
      n, [&](int64_t i, auto count) __attribute__((always_inline)) {
        const Block<T> v(x + i, count);
        W e[kBlock];
        for (int64_t j = 0; j < count; ++j) e[j] = exp_below_zero(v[j] - maximum);
        for (int64_t j = 0; j < count; ++j) lane[j] += e[j];
        if (kept != nullptr) {
          for (int64_t j = 0; j < count; ++j) kept[i + j] = e[j];
        }
      });
  return add_lanes(lane);
}

/// y = factor * exp(x - maximum), from kept exponentials where there are some.
template <typename T>
DLB_ALWAYS_INLINE void scaled_exponentials(const T* x, int64_t n, Wide<T> maximum, const Wide<T>* kept, Wide<T> factor,
                                           T* y, bool stream) {
  using W = Wide<T>;
  if (kept != nullptr) {
    for_blocks(
        n, [&](int64_t i, auto count) __attribute__((always_inline)) {
          const W* e = kept + i;
          emit(
              y + i, count, stream, [&](int64_t j) __attribute__((always_inline)) { return e[j] * factor; });
        });
    return;
  }
  for_blocks(
      n, [&](int64_t i, auto count) __attribute__((always_inline)) {
        const Block<T> v(x + i, count);
        emit(
            y + i, count,
            stream, [&](int64_t j) __attribute__((always_inline)) { return exp_below_zero(v[j] - maximum) * factor; });
      });
}

/// Where a row of n keeps its exponentials; null: nowhere.
template <typename T>
DLB_ALWAYS_INLINE Wide<T>* keep_in(Wide<T>* local, T* result, int64_t n) {
  if (n <= kKept) return local;
  if constexpr (std::is_same_v<T, Wide<T>>)
    return result;
  else
    return nullptr;
}

template <typename T>
void softmax_forward(const void* x, void* y, int64_t rows, int64_t columns, int64_t row_stride, bool stream) {
  using W = Wide<T>;
  alignas(64) W local[kKept];
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = in<T>(x) + r * row_stride;
    T* to = out<T>(y) + r * row_stride;
    const W maximum = row_max(from, columns);
    W* kept = keep_in(local, to, columns);
    const W sum = exponentials(from, columns, maximum, kept);
    scaled_exponentials(from, columns, maximum, kept, W(1) / sum, to, stream);
  }
  if (stream) end_stream();
}

template <typename T>
void softmax_backward(const void* dy, const void* y, void* dx, int64_t rows, int64_t columns, int64_t row_stride,
                      bool stream) {
  using W = Wide<T>;
  for (int64_t r = 0; r < rows; ++r) {
    const T *d = in<T>(dy) + r * row_stride, *p = in<T>(y) + r * row_stride;
    T* to = out<T>(dx) + r * row_stride;
    W lane[kBlock] = {};
    for_blocks(
        columns, [&](int64_t i, auto count) __attribute__((always_inline)) {
          const Block<T> left(d + i, count), right(p + i, count);
          for (int64_t j = 0; j < count; ++j) lane[j] = multiply_add(left[j], right[j], lane[j]);
        });
    const W dot = add_lanes(lane);
    for_blocks(
        columns, [&](int64_t i, auto count) __attribute__((always_inline)) {
          const Block<T> left(d + i, count), right(p + i, count);
          emit(
              to + i, count,
              stream, [&](int64_t j) __attribute__((always_inline)) { return right[j] * (left[j] - dot); });
        });
  }
  if (stream) end_stream();
}

template <typename T>
DLB_ALWAYS_INLINE Wide<T> one_wide(T x) {
  if constexpr (std::is_same_v<T, Wide<T>>)
    return x;
  else
    return to_float(x);
}

template <typename T>
DLB_ALWAYS_INLINE T one_narrow(Wide<T> x) {
  if constexpr (std::is_same_v<T, Wide<T>>)
    return x;
  else
    return from_float<T>(x);
}

template <typename T>
void cross_entropy(const CrossEntropyArgs& a) {
  using W = Wide<T>;
  alignas(64) W local[kKept];
  for (int64_t r = 0; r < a.rows; ++r) {
    const T* x = in<T>(a.logits) + r * a.row_stride;
    T* dx = a.dlogits == nullptr ? nullptr : out<T>(a.dlogits) + r * a.row_stride;
    const int64_t target = a.targets[r];
    if (dx != nullptr) {
      for (int64_t j = a.columns; j < a.row_stride; ++j) dx[j] = one_narrow<T>(W(0));
    }
    if (target < 0 || target >= a.columns) {
      out<W>(a.losses)[r] = 0;
      if (dx != nullptr) std::memset(static_cast<void*>(dx), 0, static_cast<size_t>(a.columns) * sizeof(T));
      continue;
    }
    const W maximum = row_max(x, a.columns), of_target = one_wide(x[target]);
    W* kept = dx == nullptr ? nullptr : keep_in(local, dx, a.columns);
    const W sum = exponentials(x, a.columns, maximum, kept);
    out<W>(a.losses)[r] = static_cast<W>(std::log(static_cast<double>(sum)) +
                                         (static_cast<double>(maximum) - static_cast<double>(of_target)));
    if (dx == nullptr) continue;
    const W scale = static_cast<W>(a.gradient_scale);
    scaled_exponentials(x, a.columns, maximum, kept, scale / sum, dx, false);
    // The element of the target again, from what was not rounded to the storage type; x may be gone.
    dx[target] = one_narrow<T>((exp_below_zero(of_target - maximum) / sum - W(1)) * scale);
  }
}

// Updates --------------------------------------------------------------------------------------------------------

/// One pass: step(w, m, v, g) for every element, `parameter` written from w where it is another array.
template <typename T, bool kSecond, typename Step>
DLB_ALWAYS_INLINE void update(const UpdateArgs& a, const Step& step) {
  using W = Wide<T>;
  const T* gradient = in<T>(a.gradient);
  W *w = out<W>(a.w), *m = out<W>(a.m), *v = kSecond ? out<W>(a.v) : nullptr;
  T* parameter = out<T>(a.parameter);
  const W factor = static_cast<W>(a.gradient_factor);
  const auto block = [&](int64_t i, auto count) __attribute__((always_inline)) {
    const Block<T> g(gradient + i, count);
    const int64_t n = count;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      W weight = w[i + j], first = m[i + j], second = kSecond ? v[i + j] : W(0);
      step(weight, first, second, g[j] * factor);
      w[i + j] = weight;
      m[i + j] = first;
      if constexpr (kSecond) v[i + j] = second;
    }
    if (parameter != nullptr) {
      emit(
          parameter + i, count, false, [&](int64_t j) __attribute__((always_inline)) { return w[i + j]; });
    }
  };
  if constexpr (std::is_same_v<T, W>) {
    if (parameter == nullptr) return block(0, a.n);
  }
  for_blocks(a.n, block);
}

template <typename T>
void sgd(const UpdateArgs& a) {
  using W = Wide<T>;
  const W lr = static_cast<W>(a.lr), momentum = static_cast<W>(a.beta1), decay = static_cast<W>(a.weight_decay);
  if (a.first) {
    update<T, false>(
        a, [&](W & w, W & m, W&, W g)
               __attribute__((always_inline)) { sgd_update(w, m, g, lr, momentum, decay, true); });
  } else {
    update<T, false>(
        a, [&](W & w, W & m, W&, W g)
               __attribute__((always_inline)) { sgd_update(w, m, g, lr, momentum, decay, false); });
  }
}

template <typename T>
void adamw(const UpdateArgs& a) {
  using W = Wide<T>;
  const W lr = static_cast<W>(a.lr), beta1 = static_cast<W>(a.beta1), beta2 = static_cast<W>(a.beta2),
          epsilon = static_cast<W>(a.epsilon), decay = static_cast<W>(a.weight_decay),
          correction1 = static_cast<W>(a.correction1), correction2 = static_cast<W>(a.correction2);
  update<T, true>(
      a, [&](W & w, W & m, W & v, W g) __attribute__((always_inline)) {
        adamw_update(w, m, v, g, lr, beta1, beta2, epsilon, decay, correction1, correction2);
      });
}

template <typename T>
double square_sum(const void* x, int64_t n) {
  double lane[kBlock] = {};
  for_blocks(
      n, [&](int64_t i, auto count) __attribute__((always_inline)) {
        const Block<T> v(in<T>(x) + i, count);
        for (int64_t j = 0; j < count; ++j) {
          const double value = static_cast<double>(v[j]);
          lane[j] = multiply_add(value, value, lane[j]);
        }
      });
  return add_lanes(lane);
}

// Rows -----------------------------------------------------------------------------------------------------------

template <typename T>
void gather_sum(const void* x, int64_t row_length, const int32_t* row, int64_t count, int64_t columns, bool accumulate,
                void* to) {
  using W = Wide<T>;
  // Sums of a few dozen rows, then their sum: a frequent token has thousands.
  constexpr int64_t kRows = 32;
  for_blocks(
      columns, [&](int64_t c, auto width) __attribute__((always_inline)) {
        W total[kBlock] = {};
        for (int64_t begin = 0; begin < count; begin += kRows) {
          const int64_t end = count - begin < kRows ? count : begin + kRows;
          W lane[kBlock] = {};
          for (int64_t i = begin; i < end; ++i) {
            const Block<T> v(in<T>(x) + row[i] * row_length + c, width);
            for (int64_t j = 0; j < width; ++j) lane[j] += v[j];
          }
          for (int64_t j = 0; j < width; ++j) total[j] += lane[j];
        }
        T* result = out<T>(to) + c;
        if (accumulate) {
          const Block<T> before(result, width);
          for (int64_t j = 0; j < width; ++j) total[j] += before[j];
        }
        emit(
            result, width, false, [&](int64_t j) __attribute__((always_inline)) { return total[j]; });
      });
}

template <typename T>
void row_dots(const void* a, const void* b, int64_t rows, int64_t columns, int64_t stride, void* to) {
  using W = Wide<T>;
  for (int64_t r = 0; r < rows; ++r) {
    W lane[kBlock] = {};
    for_blocks(
        columns, [&](int64_t i, auto count) __attribute__((always_inline)) {
          const Block<T> left(in<T>(a) + r * stride + i, count), right(in<T>(b) + r * stride + i, count);
          for (int64_t j = 0; j < count; ++j) lane[j] = multiply_add(left[j], right[j], lane[j]);
        });
    out<W>(to)[r] = add_lanes(lane);
  }
}

template <typename T>
void scale_rows(const void* x, int64_t x_stride, const void* factor, int64_t rows, int64_t columns, void* to,
                int64_t to_stride) {
  using W = Wide<T>;
  for (int64_t r = 0; r < rows; ++r) {
    const W* row = in<W>(x) + r * x_stride;
    const W scale = factor == nullptr ? W(1) : in<W>(factor)[r];
    for_blocks(
        columns, [&](int64_t i, auto count) __attribute__((always_inline)) {
          emit(
              out<T>(to) + r * to_stride + i, count,
              false, [&](int64_t j) __attribute__((always_inline)) { return row[i + j] * scale; });
        });
  }
}

// Attention ------------------------------------------------------------------------------------------------------

template <typename W, bool kCausal, typename Count>
DLB_ALWAYS_INLINE void attention_columns(W* scores, int64_t stride, int64_t keys, Count queries, int64_t lead,
                                         W* maximum, W* total, W* correction) {
  const auto seen = [&](int64_t key, int64_t query) __attribute__((always_inline)) {
    return !kCausal || key <= lead + query;
  };
  W largest[kBlock], sum[kBlock];
  for (int64_t j = 0; j < queries; ++j) largest[j] = maximum[j], sum[j] = 0;
  // Keys that no query of these columns sees were not computed.
  const int64_t last = lead + queries, used = !kCausal ? keys : last < 0 ? 0 : last < keys ? last : keys;
  for (int64_t key = 0; key < used; ++key) {
    const W* row = scores + key * stride;
    for (int64_t j = 0; j < queries; ++j) {
      const W value = seen(key, j) ? row[j] : kMinusInfinity<W>;
      largest[j] = largest[j] < value ? value : largest[j];
    }
  }
  for (int64_t j = 0; j < queries; ++j) correction[j] = exp_below_zero(maximum[j] - largest[j]);
  for (int64_t key = 0; key < used; ++key) {
    W* row = scores + key * stride;
    for (int64_t j = 0; j < queries; ++j) {
      const W e = exp_below_zero(row[j] - largest[j]), value = seen(key, j) ? e : W(0);
      row[j] = value;
      sum[j] += value;
    }
  }
  for (int64_t key = used; key < keys; ++key) {
    for (int64_t j = 0; j < queries; ++j) scores[key * stride + j] = 0;
  }
  for (int64_t j = 0; j < queries; ++j) {
    total[j] = multiply_add(total[j], correction[j], sum[j]);
    maximum[j] = largest[j];
  }
}

template <typename W>
void attention_block(void* scores, int64_t stride, int64_t keys, int64_t queries, bool causal, int64_t lead,
                     void* maximum, void* total, void* correction) {
  for_blocks(
      queries, [&](int64_t i, auto count) __attribute__((always_inline)) {
        W *s = out<W>(scores) + i, *m = out<W>(maximum) + i, *t = out<W>(total) + i, *c = out<W>(correction) + i;
        if (causal && lead + i < keys - 1)
          attention_columns<W, true>(s, stride, keys, count, lead + i, m, t, c);
        else
          attention_columns<W, false>(s, stride, keys, count, lead + i, m, t, c);
      });
}

template <typename W>
void attention_gradient(void* scores, void* d_scores, int64_t stride, int64_t queries, int64_t keys, bool causal,
                        int64_t lead, const void* log_sum_exp, const void* delta, double scale) {
  const W factor = static_cast<W>(scale);
  for (int64_t q = 0; q < queries; ++q) {
    const W level = in<W>(log_sum_exp)[q], mean = in<W>(delta)[q];
    const int64_t last = lead + q + 1, seen = !causal ? keys : last < 0 ? 0 : last < keys ? last : keys;
    for_blocks(
        keys, [&](int64_t i, auto count) __attribute__((always_inline)) {
          W *s = out<W>(scores) + q * stride + i, *d = out<W>(d_scores) + q * stride + i;
          const int64_t n = count;
#pragma GCC ivdep
          for (int64_t j = 0; j < n; ++j) {
            const W p = exp_below_zero(s[j] - level), g = p * (d[j] - mean) * factor;
            s[j] = i + j < seen ? p : W(0);
            d[j] = i + j < seen ? g : W(0);
          }
        });
  }
}

template <typename T>
constexpr SequenceKernels kernels_of() {
  using W = Wide<T>;
  return {layer_norm_forward<T>,
          layer_norm_backward<T>,
          softmax_forward<T>,
          softmax_backward<T>,
          cross_entropy<T>,
          sgd<T>,
          adamw<T>,
          square_sum<T>,
          gather_sum<T>,
          row_dots<T>,
          scale_rows<T>,
          attention_block<W>,
          attention_gradient<W>};
}

constexpr SequenceKernels kTable[kElementTypes] = {kernels_of<double>(), kernels_of<float>(), kernels_of<bfloat16>(),
                                                   kernels_of<float16>()};

}  // namespace

const SequenceKernels& DLB_ISA_FUNCTION(ElementIndex type) {
  return kTable[type];
}

}  // namespace dlbench::cpu
