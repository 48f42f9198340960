// One-thread loops of the memory-bound ops, compiled once per instruction set (see kernels.h, CMakeLists.txt).
//
// Why no intrinsics for the arithmetic: the formulas are the functors of core/math, which every device shares; a block
// of kBlock elements goes through a functor at a time, in a loop that the compiler vectorises for the ISA at hand. Only
// conversions of fp16 and stores past the caches need intrinsics.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/math/activation.h"
#include "core/math/elementwise.h"
#include "core/math/float_types.h"
#include "cpu/kernel_blocks.h"
#include "cpu/kernels.h"

#if defined(__AVX512F__)
#define DLB_ISA_NAME "avx512"
#define DLB_ISA_FUNCTION vector_kernels_avx512
#elif defined(__AVX2__)
#define DLB_ISA_NAME "avx2"
#define DLB_ISA_FUNCTION vector_kernels_avx2
#else
#define DLB_ISA_NAME DLB_PORTABLE_NAME
#define DLB_ISA_FUNCTION vector_kernels_portable
#endif

namespace dlbench::cpu {
namespace {

// Element-wise loops ---------------------------------------------------------------------------------------------

/// out[i] = f(x[i]...) for element types with a plain loop, blockwise for 16-bit types and for streaming stores.
template <typename T, typename F, typename... In>
DLB_ALWAYS_INLINE void map(int64_t n, T* out, bool stream, const F& f, const In*... in) {
  using W = Wide<T>;
  if constexpr (std::is_same_v<T, W>) {
    if (!stream || !aligned_to_line(out)) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(in[i]...);
      return;
    }
  }
  int64_t i = 0;
  const bool past_caches = stream && aligned_to_line(out);
  for (; i + kBlock <= n; i += kBlock) {
    W result[kBlock];
    const auto apply = [&](const auto&... wide) {
      for (int j = 0; j < kBlock; ++j) result[j] = f(wide[j]...);
    };
    if constexpr (std::is_same_v<T, W>) {
      apply((in + i)...);
      stream_bytes(result, out + i, kBlock * static_cast<int64_t>(sizeof(T)));
    } else {
      struct Wider {
        alignas(64) W value[kBlock];
        explicit Wider(const T* from) { widen(from, value); }
        DLB_ALWAYS_INLINE const W& operator[](int j) const { return value[j]; }
      };
      apply(Wider(in + i)...);
      if (past_caches) {
        alignas(64) T narrowed[kBlock];
        narrow(result, narrowed);
        stream_bytes(narrowed, out + i, kBlock * static_cast<int64_t>(sizeof(T)));
      } else {
        narrow(result, out + i);
      }
    }
  }
  if (past_caches) end_stream();
  for (; i < n; ++i) {
    if constexpr (std::is_same_v<T, W>)
      out[i] = f(in[i]...);
    else
      out[i] = from_float<T>(f(to_float(in[i])...));
  }
}

template <typename W>
struct FusedTriad {
  W a;
  DLB_ALWAYS_INLINE W operator()(W x, W y) const { return multiply_add(a, y, x); }
};
template <typename W>
struct FusedAxpy {
  W a;
  DLB_ALWAYS_INLINE W operator()(W x, W y) const { return multiply_add(a, x, y); }
};

void copy(const void* x, void* y, int64_t bytes, bool stream) {
  // Not memcpy: that of glibc goes past the caches by the size of one call, which knows nothing of the other threads,
  // and loses to this loop from a few thousand bytes up (cpu_stream in bench/micro).
  const char* from = in<char>(x);
  char* to = out<char>(y);
  constexpr int64_t kLine = 64;
  int64_t i = 0;
  if (stream) {
    const int64_t head = (kLine - static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLine)) % kLine;
    i = head < bytes ? head : bytes;
    std::memcpy(to, from, static_cast<size_t>(i));
    for (; i + 4 * kLine <= bytes; i += 4 * kLine) stream_bytes(from + i, to + i, 4 * kLine);
    end_stream();
  } else {
    for (; i + kLine <= bytes; i += kLine) {
      char line[kLine];
      std::memcpy(line, from + i, kLine);
      std::memcpy(to + i, line, kLine);
    }
  }
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}

template <typename T>
void triad(const void* x, const void* y, void* z, float a, int64_t n, bool stream) {
  map<T>(n, out<T>(z), stream, FusedTriad<Wide<T>>{static_cast<Wide<T>>(a)}, in<T>(x), in<T>(y));
}
template <typename T>
void axpy(const void* x, void* y, float a, int64_t n) {
  map<T>(n, out<T>(y), false, FusedAxpy<Wide<T>>{static_cast<Wide<T>>(a)}, in<T>(x), static_cast<const T*>(y));
}
template <typename T>
void bias(const void* x, const void* b, void* y, int64_t rows, int64_t columns, int64_t row_length) {
  for (int64_t r = 0; r < rows; ++r) {
    map<T>(columns, out<T>(y) + r * row_length, false, AddBias{}, in<T>(x) + r * row_length, in<T>(b));
  }
}
template <typename T>
void relu_forward(const void* x, void* y, int64_t n, bool stream) {
  map<T>(n, out<T>(y), stream, ReluForward{}, in<T>(x));
}
template <typename T>
void relu_backward(const void* dy, const void* y, void* dx, int64_t n, bool stream) {
  map<T>(n, out<T>(dx), stream, ReluBackward{}, in<T>(dy), in<T>(y));
}
template <typename T>
void gelu_forward(const void* x, void* y, int64_t n) {
  map<T>(n, out<T>(y), false, GeluForward{}, in<T>(x));
}
template <typename T>
void gelu_backward(const void* dy, const void* x, void* dx, int64_t n) {
  map<T>(n, out<T>(dx), false, GeluBackward{}, in<T>(dy), in<T>(x));
}

// Reductions -----------------------------------------------------------------------------------------------------

/// Elements summed lane by lane before the lanes are added: bounds the length of any chain of additions.
constexpr int64_t kSumBlock = 4096;

template <typename W>
DLB_ALWAYS_INLINE W add_lanes(W* lane) {
  for (int width = kBlock / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lane[j] += lane[j + width];
  }
  return lane[0];
}

/// Sums of blocks of 2^level blocks, kept like the bits of a counter: pairwise summation without a stack.
template <typename W>
struct PairwiseSum {
  W level[64];
  uint64_t count = 0;
  void add(W value) {
    int l = 0;
    for (uint64_t c = count++; c & 1; c >>= 1) value += level[l++];
    level[l] = value;
  }
  W total() const {
    W sum = 0;
    int l = 0;
    for (uint64_t c = count; c != 0; c >>= 1, ++l) {
      if (c & 1) sum += level[l];
    }
    return sum;
  }
};

/// step(lanes, wide...) for each block of elements of each input; the ragged end is padded with zeros.
template <typename T, typename Step, typename... In>
DLB_ALWAYS_INLINE double sum_blocks(int64_t n, const Step& step, const In*... x) {
  using W = Wide<T>;
  PairwiseSum<W> total;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t end = begin + kSumBlock < n ? begin + kSumBlock : n;
    W lane[kBlock] = {};
    int64_t i = begin;
    for (; i + kBlock <= end; i += kBlock) {
      if constexpr (std::is_same_v<T, W>) {
        step(lane, (x + i)...);
      } else {
        struct Wider {
          alignas(64) W value[kBlock];
          explicit Wider(const T* from) { widen(from, value); }
        };
        step(lane, static_cast<const W*>(Wider(x + i).value)...);
      }
    }
    if (i < end) {
      struct Padded {
        alignas(64) W value[kBlock];
        Padded(const T* from, int64_t count) { widen_part(from, count, value); }
      };
      step(lane, static_cast<const W*>(Padded(x + i, end - i).value)...);
    }
    total.add(add_lanes(lane));
  }
  return static_cast<double>(total.total());
}

template <typename T>
double sum(const void* x, int64_t n) {
  using W = Wide<T>;
  return sum_blocks<T>(
      n,
      [](W* lane, const W* v) {
        for (int j = 0; j < kBlock; ++j) lane[j] += v[j];
      },
      in<T>(x));
}

template <typename T>
double dot(const void* x, const void* y, int64_t n) {
  using W = Wide<T>;
  return sum_blocks<T>(
      n,
      [](W* lane, const W* v, const W* w) {
        for (int j = 0; j < kBlock; ++j) lane[j] = multiply_add(v[j], w[j], lane[j]);
      },
      in<T>(x), in<T>(y));
}

template <typename T>
double max(const void* x, int64_t n) {
  using W = Wide<T>;
  W lane[kBlock];
  for (int j = 0; j < kBlock; ++j) lane[j] = -std::numeric_limits<W>::infinity();
  int64_t i = 0;
  const T* p = in<T>(x);
  alignas(64) W value[kBlock];
  for (; i + kBlock <= n; i += kBlock) {
    widen(p + i, value);
    for (int j = 0; j < kBlock; ++j) lane[j] = MaxOfTwo{}(lane[j], value[j]);
  }
  for (; i < n; ++i) {
    W one;
    if constexpr (std::is_same_v<T, W>)
      one = p[i];
    else
      one = to_float(p[i]);
    lane[0] = MaxOfTwo{}(lane[0], one);
  }
  for (int j = 1; j < kBlock; ++j) lane[0] = MaxOfTwo{}(lane[0], lane[j]);
  return static_cast<double>(lane[0]);
}

/// combine(total, widened row, row number) over whole blocks of columns, then over the ragged last block.
template <typename T, typename Combine>
DLB_ALWAYS_INLINE void for_columns(const T* x, int64_t rows, int64_t row_length, int64_t columns, Wide<T>* total,
                                   Wide<T> start, const Combine& combine) {
  using W = Wide<T>;
  for (int64_t j = 0; j < columns; j += kBlock) {
    const int64_t width = columns - j < kBlock ? columns - j : kBlock;
    W lane[kBlock];
    for (int l = 0; l < kBlock; ++l) lane[l] = start;
    alignas(64) W value[kBlock];
    if (width == kBlock) {
      for (int64_t r = 0; r < rows; ++r) {
        widen(x + r * row_length + j, value);
        for (int l = 0; l < kBlock; ++l) lane[l] = combine(lane[l], value[l], r);
      }
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        widen_part(x + r * row_length + j, width, value);
        for (int l = 0; l < kBlock; ++l) lane[l] = combine(lane[l], value[l], r);
      }
    }
    std::memcpy(total + j, lane, static_cast<size_t>(width) * sizeof(W));
  }
}

template <typename T>
void column_sum(const void* x, int64_t rows, int64_t row_length, int64_t columns, void* total) {
  using W = Wide<T>;
  for_columns(in<T>(x), rows, row_length, columns, out<W>(total), W(0),
              [](W sum_so_far, W v, int64_t) { return sum_so_far + v; });
}
template <typename T>
void column_max(const void* x, int64_t rows, int64_t row_length, int64_t columns, void* total) {
  using W = Wide<T>;
  for_columns(in<T>(x), rows, row_length, columns, out<W>(total), -std::numeric_limits<W>::infinity(),
              [](W largest, W v, int64_t) { return MaxOfTwo{}(largest, v); });
}

template <typename T>
void vector_matrix(const void* x, const void* a, int64_t rows, int64_t row_length, int64_t columns, void* total) {
  using W = Wide<T>;
  const T* factor = in<T>(x);
  for_columns(in<T>(a), rows, row_length, columns, out<W>(total), W(0), [factor](W sum_so_far, W v, int64_t r) {
    if constexpr (std::is_same_v<T, W>)
      return multiply_add(factor[r], v, sum_so_far);
    else
      return multiply_add(to_float(factor[r]), v, sum_so_far);
  });
}

template <typename T>
void round(const void* total, void* y, int64_t n) {
  using W = Wide<T>;
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, W>)
      out<T>(y)[i] = in<W>(total)[i];
    else
      out<T>(y)[i] = from_float<T>(in<W>(total)[i]);
  }
}

template <typename T>
void matrix_vector(const void* a, const void* x, void* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    const double total = dot<T>(in<T>(a) + r * columns, x, columns);
    if constexpr (std::is_same_v<T, double>)
      out<T>(y)[r] = total;
    else
      out<T>(y)[r] = from_float<T>(static_cast<float>(total));
  }
}

// Conversions ----------------------------------------------------------------------------------------------------

/// A double to float, inexact results with the last bit set: rounding that to 16 bits then rounds the double once
/// (Boldo & Melquiond 2008, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd").
DLB_ALWAYS_INLINE float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const uint32_t bits = dlbench::detail::float_bits(nearest);
  if (static_cast<double>(nearest) == value || value != value || (bits & 0x7FFFFFFFu) == 0x7F800000u) return nearest;
  const bool away =
      (nearest < 0 ? -static_cast<double>(nearest) : static_cast<double>(nearest)) > (value < 0 ? -value : value);
  return dlbench::detail::bits_float((away ? bits - 1u : bits) | 1u);
}

template <typename From, typename To>
void convert(const void* x, void* y, int64_t n) {
  const From* from = in<From>(x);
  To* to = out<To>(y);
  if constexpr (std::is_same_v<From, To>) {
    copy(x, y, n * static_cast<int64_t>(sizeof(From)), false);
  } else if constexpr (std::is_same_v<From, double>) {
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<To, float>)
        to[i] = static_cast<float>(from[i]);
      else
        to[i] = from_float<To>(round_to_odd(from[i]));
    }
  } else if constexpr (std::is_same_v<To, double>) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<double>(to_float(from[i]));
  } else {
    int64_t i = 0;
    for (; i + kBlock <= n; i += kBlock) {
      alignas(64) float block[kBlock];
      widen(from + i, block);
      narrow(block, to + i);
    }
    for (; i < n; ++i) to[i] = from_float<To>(to_float(from[i]));
  }
}

template <typename T>
constexpr VectorKernels kernels_of() {
  return {triad<T>,        axpy<T>,          bias<T>,          relu_forward<T>,  relu_backward<T>,
          gelu_forward<T>, gelu_backward<T>, sum<T>,           max<T>,           dot<T>,
          column_sum<T>,   column_max<T>,    matrix_vector<T>, vector_matrix<T>, round<T>};
}

constexpr IsaKernels kTable = {
    DLB_ISA_NAME,
    copy,
    {kernels_of<double>(), kernels_of<float>(), kernels_of<bfloat16>(), kernels_of<float16>()},
    {{convert<double, double>, convert<double, float>, convert<double, bfloat16>, convert<double, float16>},
     {convert<float, double>, convert<float, float>, convert<float, bfloat16>, convert<float, float16>},
     {convert<bfloat16, double>, convert<bfloat16, float>, convert<bfloat16, bfloat16>, convert<bfloat16, float16>},
     {convert<float16, double>, convert<float16, float>, convert<float16, bfloat16>, convert<float16, float16>}}};

}  // namespace

const IsaKernels& DLB_ISA_FUNCTION() {
  return kTable;
}

}  // namespace dlbench::cpu
