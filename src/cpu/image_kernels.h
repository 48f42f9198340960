// The innermost loops of pooling and batch normalization, as a table of functions per instruction set (see kernels.h).
//
// Promises: one thread each, no allocation; arithmetic in the wide type T (fp64 for fp64, else fp32), rounded once;
// coefficients are arrays of T, one per column. Rows are row_length elements apart, columns contiguous.
#pragma once

#include <cstdint>

#include "cpu/kernels.h"

namespace dlbench::cpu {

/// Columns that the loops over rows take at most.
inline constexpr int64_t kMaxImageColumns = 512;

struct NormalizeArgs {
  const void* x = nullptr;
  const void* residual = nullptr;  ///< null: none
  void* y = nullptr;
  int64_t rows = 0, row_length = 0, columns = 0;
  const void *mean = nullptr, *scale = nullptr, *shift = nullptr;
  bool relu = false;
};

struct NormalizeBackwardArgs {
  const void* dy = nullptr;
  const void* x = nullptr;
  const void* y = nullptr;  ///< not null: dy passes where y > 0
  void* masked = nullptr;   ///< not null: dy behind the activation is written here (sums only)
  void* dx = nullptr;       ///< (gradient only)
  int64_t rows = 0, row_length = 0, columns = 0;
  const void* mean = nullptr;
  const void *dy_factor = nullptr, *x_factor = nullptr, *shift = nullptr;  ///< (gradient only)
};

/// A rectangle of rows x columns pixels, each `channels` contiguous elements.
struct WindowArgs {
  const void* x = nullptr;
  const uint8_t* index_in = nullptr;  ///< backward of max: laid out like x
  int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0, channels = 0;
  int place = 0, place_row_step = 0, place_column_step = 0;  ///< of the first pixel in its window, and of the next ones
  double factor = 1;
  void* y = nullptr;
  uint8_t* index_out = nullptr;
};

struct ImageKernels {
  /// mean[j] and squares[j] = sum (x - mean[j])^2 over `rows` rows, columns <= kMaxImageColumns.
  void (*moments[kElementTypes])(const void* x, int64_t rows, int64_t row_length, int64_t columns, void* mean,
                                 void* squares);
  /// y = activation((x - mean) * scale + shift + residual); y may be x.
  void (*normalize[kElementTypes])(const NormalizeArgs& args);
  /// sum_dy[j] = sum dy, sum_dyx[j] = sum dy * (x - mean[j]), columns <= kMaxImageColumns.
  void (*backward_sums[kElementTypes])(const NormalizeBackwardArgs& args, void* sum_dy, void* sum_dyx);
  /// dx = dy * dy_factor + (x - mean) * x_factor + shift; dx may be dy.
  void (*backward_gradient[kElementTypes])(const NormalizeBackwardArgs& args);
  /// y = largest of the window, the first of equal ones, NaN before all; index_out its place.
  void (*window_max[kElementTypes])(const WindowArgs& args);
  /// y = factor * sum of the window; with index_in only of elements whose index is the place of their pixel.
  void (*window_sum[kElementTypes])(const WindowArgs& args);
};

const ImageKernels& image_kernels();  ///< the widest that runs here

}  // namespace dlbench::cpu
