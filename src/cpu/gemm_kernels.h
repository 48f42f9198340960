// The innermost loops of the matrix product, as a table of functions per instruction set (see kernels.h).
//
// Why not OpenBLAS alone: it packs the whole of B on every call, which costs 4 to 13 times the product itself when m is
// small, it stops at 89 % of the peak when m is large, and it has no epilogue. The register blocking is that of Goto &
// van de Geijn 2008 ("Anatomy of high-performance matrix multiplication"), the panel layout that of BLIS (Van Zee & van
// de Geijn 2015). Promises: one thread each, no allocation; products and sums in fp32 whatever the element type;
// nothing is read or written beyond the given extents, except that packed panels are padded with zeros to whole
// columns.
#pragma once

#include <cstdint>

#include "cpu/kernels.h"

namespace dlbench::cpu {

inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxTileColumns = 256;

/// acc[rows, columns] = A B over `depth`, then C = alpha*acc + beta*C.
struct TileArgs {
  int rows = 0;
  int64_t columns = 0;  ///< at most the kernel's width; fewer only when B is packed (padded)
  int64_t depth = 0;
  const float* a = nullptr;  ///< packed panel [depth][a_stride]
  int64_t a_stride = 0;
  const float* b = nullptr;  ///< [depth][columns] with row stride b_stride
  int64_t b_stride = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  float alpha = 1, beta = 0;
};

/// Epilogue of ops.h, by the same names; ops.h isn't included, so that no library code is compiled per ISA.
enum class TileEpilogue : int { none, bias, bias_relu, bias_gelu };

struct GemmKernels {
  const char* name;
  int tile_rows;     ///< rows of a full tile: A is packed in panels of so many
  int tile_columns;  ///< columns of a full tile: B is packed in panels of so many
  /// Width of the tile that `narrow_tile` computes for `rows` rows; wider than tile_columns when rows are few.
  int (*narrow_columns)(int rows);

  /// out[panel][p][row] = A(row, p); A(row, p) = a[row * row_stride + p * depth_stride]
  void (*pack_a[kElementTypes])(const void* a, int64_t row_stride, int64_t depth_stride, int64_t rows, int64_t depth,
                                float* out);
  /// out[panel][p][column] = B(p, column), padded with zeros; B(p, column) = b[p * depth_stride + column *
  /// column_stride]
  void (*pack_b[kElementTypes])(const void* b, int64_t depth_stride, int64_t column_stride, int64_t depth,
                                int64_t columns, float* out);
  /// A tile of up to tile_rows x tile_columns from packed A and B.
  void (*tile)(const TileArgs& args);
  /// A tile of `rows` x narrow_columns(rows) from packed A and B as it lies in memory (rows contiguous).
  void (*narrow_tile)(const TileArgs& args);

  /// c[m, n] (fp32, row stride c_stride) = alpha * A B^T + beta * c, both with contiguous rows, without packing: for
  /// few rows of A.
  void (*dot_rows[kElementTypes])(const void* a, int64_t lda, const void* b, int64_t ldb, int64_t m, int64_t n,
                                  int64_t depth, float* c, int64_t c_stride, float alpha, float beta);

  /// For a tile of fp32 sums: + bias, stored to `pre` if given, activation, stored to `c`. `sums` may be `c` in fp32.
  void (*epilogue[kElementTypes])(const float* sums, int64_t sums_stride, int64_t rows, int64_t columns,
                                  TileEpilogue epilogue, const void* bias, void* pre, void* c, int64_t c_stride,
                                  int64_t pre_stride);
  /// Widens a tile of C (beta != 0 with 16-bit storage).
  void (*widen[kElementTypes])(const void* c, int64_t c_stride, int64_t rows, int64_t columns, float* out,
                               int64_t out_stride);
};

const GemmKernels& gemm_kernels();  ///< the widest that runs here

}  // namespace dlbench::cpu
