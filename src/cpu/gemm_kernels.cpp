// One-thread tiles of the matrix product, compiled once per instruction set (see gemm_kernels.h, CMakeLists.txt).
//
// Registers: a tile holds rows x vectors accumulators. AVX-512 has 32 registers: 14 x 2 of 16 floats, leaving 2 for B
// and 2 spare. AVX2 has 16: 6 x 2 of 8. Accumulators are an array whose indices are all known at compile time, so that
// they live in registers at -O3.
#include <cstring>
#include <type_traits>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/math/activation.h"
#include "core/math/float_types.h"
#include "cpu/gemm_kernels.h"

#if defined(__AVX512F__)
#define DLB_ISA_NAME "avx512"
#define DLB_ISA_FUNCTION gemm_kernels_avx512
#elif defined(__AVX2__)
#define DLB_ISA_NAME "avx2"
#define DLB_ISA_FUNCTION gemm_kernels_avx2
#else
#define DLB_ISA_NAME DLB_PORTABLE_NAME
#define DLB_ISA_FUNCTION gemm_kernels_portable
#endif

#define DLB_ALWAYS_INLINE inline __attribute__((always_inline))

namespace dlbench::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kTileRows = 14, kTileVectors = 2;
#elif defined(__AVX2__)
constexpr int kLanes = 8, kTileRows = 6, kTileVectors = 2;
#else
constexpr int kLanes = 4, kTileRows = 6, kTileVectors = 2;
#endif
constexpr int kTileColumns = kLanes * kTileVectors;

typedef float Vector __attribute__((vector_size(kLanes * 4)));
typedef float UnalignedVector __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

DLB_ALWAYS_INLINE Vector load(const float* p) {
  return *reinterpret_cast<const UnalignedVector*>(p);
}
DLB_ALWAYS_INLINE void store(float* p, Vector v) {
  *reinterpret_cast<UnalignedVector*>(p) = v;
}
/// Subtracting zero changes no value, which the compiler knows; adding it would make -0 to 0 and costs an addition.
DLB_ALWAYS_INLINE Vector splat(float x) {
  return x - Vector{};
}

DLB_ALWAYS_INLINE Vector multiply_add(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector>(
      _mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif defined(__AVX2__)
  return reinterpret_cast<Vector>(
      _mm256_fmadd_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#else
  return a * b + c;
#endif
}

DLB_ALWAYS_INLINE Vector load(const bfloat16* p) {
#if defined(__AVX512F__)
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return reinterpret_cast<Vector>(_mm512_slli_epi32(wide, 16));
#elif defined(__AVX2__)
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return reinterpret_cast<Vector>(_mm256_slli_epi32(wide, 16));
#else
  Vector v;
  for (int i = 0; i < kLanes; ++i) v[i] = to_float(p[i]);
  return v;
#endif
}
DLB_ALWAYS_INLINE Vector load(const float16* p) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(__F16C__)
  return reinterpret_cast<Vector>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  Vector v;
  for (int i = 0; i < kLanes; ++i) v[i] = to_float(p[i]);
  return v;
#endif
}

DLB_ALWAYS_INLINE void prefetch(const void* p) {
  __builtin_prefetch(p, 0, 3);
}

// Packing --------------------------------------------------------------------------------------------------------

template <typename T>
DLB_ALWAYS_INLINE float widened(T x) {
  return to_float(x);
}

/// Lines that are contiguous along the depth are packed a block of `kLines` lines x kLanes depths at a time: transposed
/// in registers, stored kLanes wide every kStride floats. With kStride < kLanes a store ends in the place of the next
/// one, which follows and overwrites it.
template <typename T, int kLines, int kStride>
DLB_ALWAYS_INLINE void transpose_block(const T* b, int64_t column_stride, float* out) {
  Vector row[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) row[i] = i < kLines ? load(b + i * column_stride) : Vector{};
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
    // Swap the off-diagonal step x step blocks of every 2*step x 2*step block.
    typedef int Index __attribute__((vector_size(kLanes * 4)));
    Index low, high;
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) {
      low[l] = (l & step) ? kLanes + l - step : l;
      high[l] = (l & step) ? kLanes + l : l + step;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (i & step) continue;
      const Vector x = row[i], y = row[i + step];
      row[i] = __builtin_shuffle(x, y, low);
      row[i + step] = __builtin_shuffle(x, y, high);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) store(out + i * kStride, row[i]);
}

template <typename T>
void pack_a(const void* a_void, int64_t row_stride, int64_t depth_stride, int64_t rows, int64_t depth, float* out) {
  const T* a = static_cast<const T*>(a_void);
  for (int64_t r = 0; r < rows; r += kTileRows) {
    const int64_t count = rows - r < kTileRows ? rows - r : kTileRows;
    const T* panel = a + r * row_stride;
    if (row_stride == 1) {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t i = 0; i < count; ++i) out[p * kTileRows + i] = widened(panel[p * depth_stride + i]);
      }
    } else if (depth_stride == 1 && count == kTileRows) {
      constexpr int kLines = kTileRows < kLanes ? kTileRows : kLanes;
      int64_t p = 0;
      for (; p + kLanes <= depth; p += kLanes) {
        transpose_block<T, kLines, kTileRows>(panel + p, row_stride, out + p * kTileRows);
        for (int64_t i = kLines; i < kTileRows; ++i) {
          for (int64_t l = 0; l < kLanes; ++l) out[(p + l) * kTileRows + i] = widened(panel[i * row_stride + p + l]);
        }
      }
      for (; p < depth; ++p) {
        for (int64_t i = 0; i < kTileRows; ++i) out[p * kTileRows + i] = widened(panel[i * row_stride + p]);
      }
    } else {
      for (int64_t i = 0; i < count; ++i) {
        const T* row = panel + i * row_stride;
        if (depth_stride == 1) {
          for (int64_t p = 0; p < depth; ++p) out[p * kTileRows + i] = widened(row[p]);
        } else {
          for (int64_t p = 0; p < depth; ++p) out[p * kTileRows + i] = widened(row[p * depth_stride]);
        }
      }
    }
    out += kTileRows * depth;
  }
}

template <typename T>
void pack_b(const void* b_void, int64_t depth_stride, int64_t column_stride, int64_t depth, int64_t columns,
            float* out) {
  const T* b = static_cast<const T*>(b_void);
  for (int64_t c = 0; c < columns; c += kTileColumns) {
    const int64_t count = columns - c < kTileColumns ? columns - c : kTileColumns;
    const T* panel = b + c * column_stride;
    if (count == kTileColumns && column_stride == 1) {
      for (int64_t p = 0; p < depth; ++p) {
#pragma GCC unroll 2
        for (int v = 0; v < kTileVectors; ++v)
          store(out + p * kTileColumns + v * kLanes, load(panel + p * depth_stride + v * kLanes));
      }
    } else if (count == kTileColumns && depth_stride == 1) {
      int64_t p = 0;
      for (; p + kLanes <= depth; p += kLanes) {
        for (int v = 0; v < kTileVectors; ++v) {
          transpose_block<T, kLanes, kTileColumns>(panel + v * kLanes * column_stride + p, column_stride,
                                                   out + p * kTileColumns + v * kLanes);
        }
      }
      for (; p < depth; ++p) {
        for (int64_t j = 0; j < kTileColumns; ++j) out[p * kTileColumns + j] = widened(panel[p + j * column_stride]);
      }
    } else {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t j = 0; j < kTileColumns; ++j) {
          out[p * kTileColumns + j] = j < count ? widened(panel[p * depth_stride + j * column_stride]) : 0.0f;
        }
      }
    }
    out += kTileColumns * depth;
  }
}

// Tiles ----------------------------------------------------------------------------------------------------------

template <int kRows, int kVectors>
DLB_ALWAYS_INLINE void store_tile(const Vector (&acc)[kRows][kVectors], const TileArgs& t) {
  const Vector alpha = splat(t.alpha);
  if (t.columns == kVectors * kLanes) {
    if (t.beta == 0.0f && t.alpha == 1.0f) {
#pragma GCC unroll 14
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) store(t.c + i * t.c_stride + v * kLanes, acc[i][v]);
      }
    } else if (t.beta == 0.0f) {
#pragma GCC unroll 14
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) store(t.c + i * t.c_stride + v * kLanes, alpha * acc[i][v]);
      }
    } else {
      const Vector beta = splat(t.beta);
#pragma GCC unroll 14
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          float* c = t.c + i * t.c_stride + v * kLanes;
          store(c, multiply_add(alpha, acc[i][v], beta * load(c)));
        }
      }
    }
    return;
  }
  float sums[kRows][kVectors * kLanes];
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store(&sums[i][v * kLanes], alpha * acc[i][v]);
  }
  for (int i = 0; i < kRows; ++i) {
    float* c = t.c + i * t.c_stride;
    if (t.beta == 0.0f) {
      for (int64_t j = 0; j < t.columns; ++j) c[j] = sums[i][j];
    } else {
      for (int64_t j = 0; j < t.columns; ++j) c[j] = sums[i][j] + t.beta * c[j];
    }
  }
}

template <int kRows, int kVectors, int kPrefetchDepth>
void tile_of(const TileArgs& t) {
  Vector acc[kRows][kVectors] = {};
  const float* a = t.a;
  const float* b = t.b;
  for (int64_t p = 0; p < t.depth; ++p) {
    Vector row[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) row[v] = load(b + v * kLanes);
    if constexpr (kPrefetchDepth > 0) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) prefetch(b + kPrefetchDepth * t.b_stride + v * kLanes);
    }
#pragma GCC unroll 14
    for (int i = 0; i < kRows; ++i) {
      const Vector factor = splat(a[i]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[i][v] = multiply_add(factor, row[v], acc[i][v]);
    }
    a += t.a_stride;
    b += t.b_stride;
  }
  store_tile<kRows, kVectors>(acc, t);
}

using TileFunction = void (*)(const TileArgs&);

template <int... kRows>
struct TileTable {
  static constexpr TileFunction packed[] = {tile_of<kRows + 1, kTileVectors, 0>...};
};

/// Vectors per row of a tile with few rows: as many as the registers hold, B's own included.
constexpr int narrow_vectors(int rows) {
#if defined(__AVX512F__)
  return rows <= 2 ? 8 : rows <= 4 ? 5 : rows <= 6 ? 4 : rows <= 9 ? 3 : 2;
#else
  return rows <= 1 ? 6 : rows <= 2 ? 4 : rows <= 3 ? 3 : rows <= 6 ? 2 : 2;
#endif
}

template <int... kRows>
struct NarrowTable {
  static constexpr TileFunction direct[] = {tile_of<kRows + 1, narrow_vectors(kRows + 1), 8>...};
};

#if defined(__AVX512F__)
using Tiles = TileTable<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13>;
using NarrowTiles = NarrowTable<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13>;
#else
using Tiles = TileTable<0, 1, 2, 3, 4, 5>;
using NarrowTiles = NarrowTable<0, 1, 2, 3, 4, 5>;
#endif

void tile(const TileArgs& args) {
  Tiles::packed[args.rows - 1](args);
}
void narrow_tile(const TileArgs& args) {
  NarrowTiles::direct[args.rows - 1](args);
}
int narrow_columns(int rows) {
  return narrow_vectors(rows) * kLanes;
}

// Dot products of rows -------------------------------------------------------------------------------------------

DLB_ALWAYS_INLINE float add_lanes(Vector v) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps(reinterpret_cast<__m512>(v));
#else
  float lane[kLanes];
  store(lane, v);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lane[j] += lane[j + width];
  }
  return lane[0];
#endif
}

/// The last depth % kLanes elements of a row, padded with zeros.
template <typename T>
DLB_ALWAYS_INLINE Vector load_part(const T* p, int64_t count) {
  T part[kLanes] = {};
  std::memcpy(static_cast<void*>(part), p, static_cast<size_t>(count) * sizeof(T));
  return load(part);
}

template <typename T, int kRows, int kColumns>
void dot_tile(const T* a, int64_t lda, const T* b, int64_t ldb, int64_t depth, float* c, int64_t c_stride, float alpha,
              float beta) {
  Vector acc[kRows][kColumns] = {};
  int64_t p = 0;
  const auto step = [&](const auto& fetch) __attribute__((always_inline)) {
    Vector row[kRows];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) row[i] = fetch(a + i * lda + p);
#pragma GCC unroll 16
    for (int j = 0; j < kColumns; ++j) {
      const Vector column = fetch(b + j * ldb + p);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) acc[i][j] = multiply_add(row[i], column, acc[i][j]);
    }
  };
  for (; p + kLanes <= depth; p += kLanes) step([](const T* q) __attribute__((always_inline)) { return load(q); });
  if (p < depth) step([&](const T* q) __attribute__((always_inline)) { return load_part(q, depth - p); });
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kColumns; ++j) {
      float* out = c + i * c_stride + j;
      const float sum = alpha * add_lanes(acc[i][j]);
      *out = beta == 0.0f ? sum : sum + beta * *out;
    }
  }
}

#if defined(__AVX512F__)
constexpr int kDotRows = 8;
constexpr int dot_columns(int rows) {
  return rows == 1 ? 8 : rows == 2 ? 8 : rows <= 4 ? 5 : 3;
}
#else
constexpr int kDotRows = 4;
constexpr int dot_columns(int rows) {
  return rows == 1 ? 6 : rows == 2 ? 4 : 2;
}
#endif

template <typename T, int kRows>
void dot_strip(const T* a, int64_t lda, const T* b, int64_t ldb, int64_t n, int64_t depth, float* c, int64_t c_stride,
               float alpha, float beta) {
  constexpr int kColumns = dot_columns(kRows);
  int64_t j = 0;
#if defined(__AVX512F__)
  // The ten classes of a last layer at once.
  if constexpr (kRows <= 2) {
    if (n == 10) return dot_tile<T, kRows, 10>(a, lda, b, ldb, depth, c, c_stride, alpha, beta);
  }
#endif
  for (; j + kColumns <= n; j += kColumns)
    dot_tile<T, kRows, kColumns>(a, lda, b + j * ldb, ldb, depth, c + j, c_stride, alpha, beta);
  // What is left goes two or four columns at a time: one column of few rows waits for its own additions.
  if constexpr (kColumns > 4) {
    for (; j + 4 <= n; j += 4) dot_tile<T, kRows, 4>(a, lda, b + j * ldb, ldb, depth, c + j, c_stride, alpha, beta);
  }
  if constexpr (kColumns > 2) {
    for (; j + 2 <= n; j += 2) dot_tile<T, kRows, 2>(a, lda, b + j * ldb, ldb, depth, c + j, c_stride, alpha, beta);
  }
  for (; j < n; ++j) dot_tile<T, kRows, 1>(a, lda, b + j * ldb, ldb, depth, c + j, c_stride, alpha, beta);
}

template <typename T>
void dot_rows(const void* a_void, int64_t lda, const void* b_void, int64_t ldb, int64_t m, int64_t n, int64_t depth,
              float* c, int64_t c_stride, float alpha, float beta) {
  const T* a = static_cast<const T*>(a_void);
  const T* b = static_cast<const T*>(b_void);
  // B in strips that stay in the first-level cache while the blocks of rows of A pass.
  constexpr int64_t kStrip = dot_columns(kDotRows);
  const int64_t strip = m <= kDotRows ? n : kStrip;
  for (int64_t j = 0; j < n; j += strip) {
    const int64_t width = n - j < strip ? n - j : strip;
    for (int64_t i = 0; i < m;) {
      const auto run = [&](auto rows) {
        constexpr int kRows = decltype(rows)::value;
        dot_strip<T, kRows>(a + i * lda, lda, b + j * ldb, ldb, width, depth, c + i * c_stride + j, c_stride, alpha,
                            beta);
        i += kRows;
      };
      const int64_t left = m - i;
      if (left >= kDotRows) run(std::integral_constant<int, kDotRows>{});
#if defined(__AVX512F__)
      else if (left == 7)
        run(std::integral_constant<int, 7>{});
      else if (left == 6)
        run(std::integral_constant<int, 6>{});
      else if (left == 5)
        run(std::integral_constant<int, 5>{});
      else if (left == 4)
        run(std::integral_constant<int, 4>{});
#endif
      else if (left == 3)
        run(std::integral_constant<int, 3>{});
      else if (left == 2)
        run(std::integral_constant<int, 2>{});
      else
        run(std::integral_constant<int, 1>{});
    }
  }
}

// Epilogue -------------------------------------------------------------------------------------------------------

template <typename T, typename F>
DLB_ALWAYS_INLINE void epilogue_rows(const float* sums, int64_t sums_stride, int64_t rows, int64_t columns,
                                     const T* bias, T* pre, T* c, int64_t c_stride, int64_t pre_stride,
                                     const F& activation) {
  constexpr int64_t kBlock = 64;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; j += kBlock) {
      const int64_t width = columns - j < kBlock ? columns - j : kBlock;
      const float* sum = sums + i * sums_stride + j;
      float value[kBlock];
      if (bias != nullptr) {
        for (int64_t l = 0; l < width; ++l) value[l] = sum[l] + widened(bias[j + l]);
      } else {
        for (int64_t l = 0; l < width; ++l) value[l] = sum[l];
      }
      if (pre != nullptr) {
        T* to = pre + i * pre_stride + j;
        for (int64_t l = 0; l < width; ++l) to[l] = from_float<T>(value[l]);
      }
      T* to = c + i * c_stride + j;
      for (int64_t l = 0; l < width; ++l) to[l] = from_float<T>(activation(value[l]));
    }
  }
}

template <typename T>
void epilogue(const float* sums, int64_t sums_stride, int64_t rows, int64_t columns, TileEpilogue kind,
              const void* bias, void* pre, void* c, int64_t c_stride, int64_t pre_stride) {
  const T* b = static_cast<const T*>(bias);
  T* p = static_cast<T*>(pre);
  T* out = static_cast<T*>(c);
  switch (kind) {
    case TileEpilogue::none:
    case TileEpilogue::bias:
      return epilogue_rows(sums, sums_stride, rows, columns, b, p, out, c_stride, pre_stride,
                           [](float x) { return x; });
    case TileEpilogue::bias_relu:
      return epilogue_rows(sums, sums_stride, rows, columns, b, p, out, c_stride, pre_stride, ReluForward{});
    case TileEpilogue::bias_gelu:
      return epilogue_rows(sums, sums_stride, rows, columns, b, p, out, c_stride, pre_stride, GeluForward{});
  }
}

template <typename T>
void widen(const void* c, int64_t c_stride, int64_t rows, int64_t columns, float* out, int64_t out_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) out[i * out_stride + j] = widened(static_cast<const T*>(c)[i * c_stride + j]);
  }
}

constexpr GemmKernels kTable = {
    DLB_ISA_NAME,
    kTileRows,
    kTileColumns,
    narrow_columns,
    {nullptr, pack_a<float>, pack_a<bfloat16>, pack_a<float16>},
    {nullptr, pack_b<float>, pack_b<bfloat16>, pack_b<float16>},
    tile,
    narrow_tile,
    {nullptr, dot_rows<float>, dot_rows<bfloat16>, dot_rows<float16>},
    {nullptr, epilogue<float>, epilogue<bfloat16>, epilogue<float16>},
    {nullptr, widen<float>, widen<bfloat16>, widen<float16>},
};

}  // namespace

const GemmKernels& DLB_ISA_FUNCTION() {
  return kTable;
}

}  // namespace dlbench::cpu
