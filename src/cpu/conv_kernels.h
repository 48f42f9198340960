// The innermost loops of convolution, as a table of functions per instruction set (see kernels.h).
//
// Why not the loops of gemm_kernels.h: rows of A are pixels that lie anywhere, one pointer each, and the sum runs over
// the taps of a filter without leaving the registers; nothing is unfolded (im2col) in memory. The idea of a pointer per
// row is that of Dukhan 2019, "The indirect convolution algorithm". Promises: one thread each, no allocation; products
// and sums in the wide type (fp64 for fp64, else fp32), rounded once; nothing is read or written beyond the given
// extents, except that packed panels are padded with zeros to whole columns.
#pragma once

#include <cstdint>

#include "cpu/kernels.h"

namespace dlbench::cpu {

inline constexpr int kMaxConvTileRows = 14;

/// out[row][columns] = activation(sum over taps and depth of a[row][tap + d] * b[tap, d][column] + bias[column]).
/// `T` in the comments: the wide type.
struct ConvTileArgs {
  int rows = 0;                    ///< at most tile_rows
  int64_t columns = 0;             ///< at most tile_columns; fewer only because b is padded
  const void* const* a = nullptr;  ///< a pointer to T per row
  const int64_t* taps = nullptr;   ///< elements added to every pointer, one after another
  int64_t tap_count = 0;
  int64_t depth = 0;           ///< contiguous elements per tap
  const void* b = nullptr;     ///< packed T [tap_count][depth][tile_columns]
  void* const* out = nullptr;  ///< a pointer per row, storage type
  int64_t out_column = 0;      ///< elements added to every pointer of out
  const void* bias = nullptr;  ///< storage type, of these columns; may be null
  bool relu = false;
};

/// c[row][column] (+)= sum over the pixels of all lines of a[pixel][row] * b[line + x*b_step][column].
struct ConvOuterArgs {
  int rows = 0;
  int64_t columns = 0;
  const void* a = nullptr;         ///< T [lines * line_length][rows]
  const void* b = nullptr;         ///< T; whole tile_columns are readable wherever a pixel begins
  const int64_t* lines = nullptr;  ///< where a line of pixels begins, elements from b
  int64_t line_count = 0, line_length = 0, b_step = 0;
  void* c = nullptr;  ///< T
  int64_t c_stride = 0;
  bool add = false;
};

struct ConvKernels {
  const char* name;
  int tile_rows;
  int tile_bytes;                                         ///< of a row of a tile: tile_columns = tile_bytes / sizeof(T)
  void (*tile[kElementTypes])(const ConvTileArgs& args);  ///< by storage type
  void (*outer[kElementTypes])(const ConvOuterArgs& args);  ///< by wide type: kF64, kF32
  /// A panel of a filter: out[d][tile_columns], B(d, column) = w[d * depth_stride + column * column_stride].
  void (*pack_panel[kElementTypes])(const void* w, int64_t depth_stride, int64_t column_stride, int64_t depth,
                                    int64_t columns, void* out);
  /// out[pixel][rows] = x[pixel * pixel_stride + row], rows <= tile_rows
  void (*pack_rows[kElementTypes])(const void* x, int64_t pixels, int64_t pixel_stride, int rows, void* out);
  /// out[panel][pixel][tile_columns] = x[pixel * pixel_stride + channel], panels panel_stride elements apart, padded
  /// with zeros.
  void (*pack_columns[kElementTypes])(const void* x, int64_t pixels, int64_t pixel_stride, int64_t channels,
                                      int64_t panel_stride, void* out);
  /// out[pixel * pitch + channel] = x[pixel * pixel_stride + channel]
  void (*pack_pixels[kElementTypes])(const void* x, int64_t pixels, int64_t pixel_stride, int64_t channels,
                                     int64_t pitch, void* out);
};

const ConvKernels& conv_kernels();  ///< the widest that runs here

}  // namespace dlbench::cpu
