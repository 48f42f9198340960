// One-thread tiles of convolution, compiled once per instruction set (see conv_kernels.h, CMakeLists.txt).
//
// Registers as in gemm_kernels.cpp: rows x 2 vectors of accumulators, 14 rows with 32 registers and 6 with 16.
#include <cstring>
#include <type_traits>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/math/float_types.h"
#include "cpu/conv_kernels.h"
#include "cpu/gemm_kernels.h"

#if defined(__AVX512F__)
#define DLB_ISA_NAME "avx512"
#define DLB_ISA_FUNCTION conv_kernels_avx512
#define DLB_GEMM_KERNELS gemm_kernels_avx512
#elif defined(__AVX2__)
#define DLB_ISA_NAME "avx2"
#define DLB_ISA_FUNCTION conv_kernels_avx2
#define DLB_GEMM_KERNELS gemm_kernels_avx2
#else
#define DLB_ISA_NAME DLB_PORTABLE_NAME
#define DLB_ISA_FUNCTION conv_kernels_portable
#define DLB_GEMM_KERNELS gemm_kernels_portable
#endif

#define DLB_ALWAYS_INLINE inline __attribute__((always_inline))

namespace dlbench::cpu {

const GemmKernels& DLB_GEMM_KERNELS();

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kTileRows = 14;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kTileRows = 6;
#else
constexpr int kVectorBytes = 16, kTileRows = 6;
#endif
constexpr int kTileVectors = 2;

template <typename S>
using Wide = std::conditional_t<std::is_same_v<S, double>, double, float>;
template <typename T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
template <typename T>
constexpr int kTileColumns = kTileVectors* kLanes<T>;

template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  typedef T Unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
};
template <typename T>
using Vector = typename VectorOf<T>::Type;

template <typename T>
DLB_ALWAYS_INLINE Vector<T> load(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::Unaligned*>(p);
}
template <typename T>
DLB_ALWAYS_INLINE void store(T* p, Vector<T> v) {
  *reinterpret_cast<typename VectorOf<T>::Unaligned*>(p) = v;
}

/// x in every lane. Subtracting zero changes no value, which the compiler knows; adding it would make -0 to 0.
template <typename T>
DLB_ALWAYS_INLINE Vector<T> splat(T x) {
  return x - Vector<T>{};
}

DLB_ALWAYS_INLINE Vector<float> multiply_add(Vector<float> a, Vector<float> b, Vector<float> c) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector<float>>(
      _mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif defined(__AVX2__)
  return reinterpret_cast<Vector<float>>(
      _mm256_fmadd_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#else
  return a * b + c;
#endif
}
DLB_ALWAYS_INLINE Vector<double> multiply_add(Vector<double> a, Vector<double> b, Vector<double> c) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector<double>>(
      _mm512_fmadd_pd(reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(b), reinterpret_cast<__m512d>(c)));
#elif defined(__AVX2__)
  return reinterpret_cast<Vector<double>>(
      _mm256_fmadd_pd(reinterpret_cast<__m256d>(a), reinterpret_cast<__m256d>(b), reinterpret_cast<__m256d>(c)));
#else
  return a * b + c;
#endif
}

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

// Tiles ----------------------------------------------------------------------------------------------------------

template <typename S, int kRows>
DLB_ALWAYS_INLINE void store_tile(const Vector<Wide<S>> (&acc)[kRows][kTileVectors], const ConvTileArgs& t) {
  using T = Wide<S>;
  const S* bias = static_cast<const S*>(t.bias);
  T added[kTileColumns<T>] = {};
  if (bias != nullptr) {
    for (int64_t j = 0; j < t.columns; ++j) added[j] = widened(bias[j]);
  }
  const Vector<T> zero{};
  const T floor = t.relu ? T(0) : -__builtin_huge_val();
  const bool whole = t.columns == kTileColumns<T>;
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i) {
    S* out = static_cast<S*>(t.out[i]) + t.out_column;
    T sums[kTileColumns<T>];
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) {
      Vector<T> sum = acc[i][v] + load(added + v * kLanes<T>);
      sum = sum < zero + floor ? zero : sum;
      if constexpr (std::is_same_v<S, T>) {
        if (whole) {
          store(out + v * kLanes<T>, sum);
          continue;
        }
      }
      store(sums + v * kLanes<T>, sum);
    }
    if (!std::is_same_v<S, T> && whole) {
      for (int j = 0; j < kTileColumns<T>; ++j) out[j] = narrowed<S>(sums[j]);
    } else if (!whole) {
      for (int64_t j = 0; j < t.columns; ++j) out[j] = narrowed<S>(sums[j]);
    }
  }
}

template <typename S, int kRows>
void tile_of(const ConvTileArgs& t) {
  using T = Wide<S>;
  Vector<T> acc[kRows][kTileVectors] = {};
  const T* a[kRows];
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i) a[i] = static_cast<const T*>(t.a[i]);
  const T* b = static_cast<const T*>(t.b);
  for (int64_t tap = 0; tap < t.tap_count; ++tap) {
    const int64_t end = t.taps[tap] + t.depth;
    for (int64_t at = t.taps[tap]; at < end; ++at) {
      // Keeps the compiler from turning one index into a pointer per row, to be advanced one by one.
      __asm__("" : "+r"(at));
      Vector<T> row[kTileVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) row[v] = load(b + v * kLanes<T>);
#pragma GCC unroll 14
      for (int i = 0; i < kRows; ++i) {
        const Vector<T> factor = splat(a[i][at]);
#pragma GCC unroll 2
        for (int v = 0; v < kTileVectors; ++v) acc[i][v] = multiply_add(factor, row[v], acc[i][v]);
      }
      b += kTileColumns<T>;
    }
  }
  store_tile<S, kRows>(acc, t);
}

template <typename T, int kRows>
void outer_of(const ConvOuterArgs& t) {
  Vector<T> acc[kRows][kTileVectors] = {};
  const T* a = static_cast<const T*>(t.a);
  for (int64_t line = 0; line < t.line_count; ++line) {
    const T* b = static_cast<const T*>(t.b) + t.lines[line];
    for (int64_t x = 0; x < t.line_length; ++x) {
      Vector<T> row[kTileVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) row[v] = load(b + v * kLanes<T>);
#pragma GCC unroll 14
      for (int i = 0; i < kRows; ++i) {
        const Vector<T> factor = splat(a[i]);
#pragma GCC unroll 2
        for (int v = 0; v < kTileVectors; ++v) acc[i][v] = multiply_add(factor, row[v], acc[i][v]);
      }
      a += kRows;
      b += t.b_step;
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i) {
    T* c = static_cast<T*>(t.c) + i * t.c_stride;
    if (t.columns == kTileColumns<T>) {
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v)
        store(c + v * kLanes<T>, t.add ? acc[i][v] + load(c + v * kLanes<T>) : acc[i][v]);
    } else {
      T sums[kTileColumns<T>];
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) store(sums + v * kLanes<T>, acc[i][v]);
      for (int64_t j = 0; j < t.columns; ++j) c[j] = t.add ? c[j] + sums[j] : sums[j];
    }
  }
}

template <typename S, int... kRows>
struct Table {
  static constexpr void (*tile[])(const ConvTileArgs&) = {tile_of<S, kRows + 1>...};
  static constexpr void (*outer[])(const ConvOuterArgs&) = {outer_of<Wide<S>, kRows + 1>...};
};
#if defined(__AVX512F__)
template <typename S>
using Tiles = Table<S, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13>;
#else
template <typename S>
using Tiles = Table<S, 0, 1, 2, 3, 4, 5>;
#endif

template <typename S>
void tile(const ConvTileArgs& args) {
  Tiles<S>::tile[args.rows - 1](args);
}
template <typename T>
void outer(const ConvOuterArgs& args) {
  Tiles<T>::outer[args.rows - 1](args);
}

// Packing --------------------------------------------------------------------------------------------------------

template <typename S>
void pack_panel(const void* w, int64_t depth_stride, int64_t column_stride, int64_t depth, int64_t columns, void* out) {
  if constexpr (std::is_same_v<S, double>) {
    constexpr int kColumns = kTileColumns<double>;
    const double* from = static_cast<const double*>(w);
    double* to = static_cast<double*>(out);
    for (int64_t d = 0; d < depth; ++d) {
      for (int64_t j = 0; j < kColumns; ++j)
        to[d * kColumns + j] = j < columns ? from[d * depth_stride + j * column_stride] : 0.0;
    }
  } else {
    constexpr int type = std::is_same_v<S, float> ? kF32 : std::is_same_v<S, bfloat16> ? kBF16 : kF16;
    DLB_GEMM_KERNELS().pack_b[type](w, depth_stride, column_stride, depth, columns, static_cast<float*>(out));
  }
}

template <typename S>
DLB_ALWAYS_INLINE void widen(const S* x, int64_t n, Wide<S>* out) {
  if constexpr (std::is_same_v<S, Wide<S>>) {
    std::memcpy(out, x, static_cast<size_t>(n) * sizeof(S));
  } else {
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) {
      const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
      if constexpr (std::is_same_v<S, bfloat16>)
        _mm512_storeu_ps(out + i, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16)));
      else
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(half));
    }
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8) {
      const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
      if constexpr (std::is_same_v<S, bfloat16>)
        _mm256_storeu_ps(out + i, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16)));
      else
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(half));
    }
#endif
    for (; i < n; ++i) out[i] = to_float(x[i]);
  }
}

template <typename S, int kRows>
void pack_rows_of(const S* x, int64_t pixels, int64_t pixel_stride, Wide<S>* out) {
  for (int64_t p = 0; p < pixels; ++p) {
#pragma GCC unroll 14
    for (int i = 0; i < kRows; ++i) out[p * kRows + i] = widened(x[p * pixel_stride + i]);
  }
}

template <typename S, int... kRows>
struct RowPackers {
  static constexpr void (*pack[])(const S*, int64_t, int64_t, Wide<S>*) = {pack_rows_of<S, kRows + 1>...};
};
#if defined(__AVX512F__)
template <typename S>
using PackersOf = RowPackers<S, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13>;
#else
template <typename S>
using PackersOf = RowPackers<S, 0, 1, 2, 3, 4, 5>;
#endif

template <typename S>
void pack_rows(const void* x, int64_t pixels, int64_t pixel_stride, int rows, void* out) {
  PackersOf<S>::pack[rows - 1](static_cast<const S*>(x), pixels, pixel_stride, static_cast<Wide<S>*>(out));
}

template <typename S>
void pack_columns(const void* x_void, int64_t pixels, int64_t pixel_stride, int64_t channels, int64_t panel_stride,
                  void* out_void) {
  using T = Wide<S>;
  const S* x = static_cast<const S*>(x_void);
  T* out = static_cast<T*>(out_void);
  for (int64_t p = 0; p < pixels; ++p) {
    T* to = out + p * kTileColumns<T>;
    int64_t c = 0;
    for (; c + kTileColumns<T> <= channels; c += kTileColumns<T>, to += panel_stride)
      widen(x + p * pixel_stride + c, kTileColumns<T>, to);
    if (c < channels) {
      for (int64_t j = 0; j < kTileColumns<T>; ++j)
        to[j] = c + j < channels ? widened(x[p * pixel_stride + c + j]) : T(0);
    }
  }
}

template <typename S>
void pack_pixels(const void* x_void, int64_t pixels, int64_t pixel_stride, int64_t channels, int64_t pitch,
                 void* out_void) {
  const S* x = static_cast<const S*>(x_void);
  Wide<S>* out = static_cast<Wide<S>*>(out_void);
  if (pixel_stride == channels && pitch == channels) return widen(x, pixels * channels, out);
  for (int64_t p = 0; p < pixels; ++p) widen(x + p * pixel_stride, channels, out + p * pitch);
}

constexpr ConvKernels kTable = {
    DLB_ISA_NAME,
    kTileRows,
    kTileVectors* kVectorBytes,
    {tile<double>, tile<float>, tile<bfloat16>, tile<float16>},
    {outer<double>, outer<float>, nullptr, nullptr},
    {pack_panel<double>, pack_panel<float>, pack_panel<bfloat16>, pack_panel<float16>},
    {pack_rows<double>, pack_rows<float>, pack_rows<bfloat16>, pack_rows<float16>},
    {pack_columns<double>, pack_columns<float>, pack_columns<bfloat16>, pack_columns<float16>},
    {pack_pixels<double>, pack_pixels<float>, pack_pixels<bfloat16>, pack_pixels<float16>},
};

}  // namespace

const ConvKernels& DLB_ISA_FUNCTION() {
  return kTable;
}

}  // namespace dlbench::cpu
