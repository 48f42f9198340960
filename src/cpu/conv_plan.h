// How a convolution is cut: blocks of pixels, panels of filters, and who does them.
//
// Why (no twin on the GPU side): a convolution here is a matrix product whose rows of A are pixels found through
// pointers (conv_kernels.h). forward gathers through the taps of the filter; backward_data is the same over dy, one
// small stride-1 convolution for each of the stride*stride places that a pixel of dx can have between the windows;
// backward_weights is a sum of outer products over pixels. Nothing the size of a batch is unfolded: a thread copies one
// block of padded rows at a time into memory that stays in its second-level cache, or reads the image where it lies.
// Promises: images are [N,H,W,C], filters [K,R,S,C]; the first call with a spec allocates, later ones don't; sums are
// added in an order that depends on the spec only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/device/ops.h"
#include "cpu/conv_kernels.h"
#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace dlbench::cpu {

/// Output pixel (i, j) of a class reads input pixel (in_step*i + row, in_step*j + column) times filter place `filter`.
struct ConvTap {
  int64_t row, column, filter;
};

/// Output pixels (row + out_step*i, column + out_step*j), i < rows, j < columns, that share their taps.
struct ConvClass {
  int64_t row = 0, column = 0, rows = 0, columns = 0;
  std::vector<ConvTap> taps = {};
  std::vector<int64_t> offsets = {};  ///< of the taps in a block, elements
  int64_t first_depth = 0;            ///< where its part of a packed panel begins
};

/// forward and backward_data.
struct GatherPlan {
  bool backward = false;
  int type = kF32;
  int64_t element_bytes = 4, wide_bytes = 4, tile_columns = 32;
  int64_t n = 0, in_h = 0, in_w = 0, in_c = 0, out_h = 0, out_w = 0, out_c = 0;
  int64_t in_step = 1, out_step = 1;
  std::vector<ConvClass> classes;
  int64_t first_row = 0, last_row = 0, first_column = 0, last_column = 0;  ///< extent of all taps
  int64_t grid_rows = 0, grid_columns = 0;                                 ///< of the largest class
  int64_t tap_depth = 0, panel_depth = 0, panels = 0;
  bool direct = false;               ///< the image is read where it lies
  int64_t sampling = 1;              ///< every so manieth pixel is copied into a block
  int64_t pitch = 0, row_pitch = 0;  ///< elements from pixel to pixel and from row to row of a block
  int64_t block_rows = 0, blocks = 0, groups = 1;
  int64_t panel_bytes = 0, block_bytes = 0, thread_bytes = 0;
  int64_t workspace_bytes = 0;
};

/// backward_weights: dw[k, tap, c] = sum over pixels of dy[pixel, k] * x[pixel of tap, c].
struct WeightsPlan {
  int type = kF32, wide_type = kF32;
  int64_t element_bytes = 4, wide_bytes = 4, tile_columns = 32;
  int64_t images = 0, h = 0, w = 0, c = 0, k = 0, p = 0, q = 0;  ///< a 1x1 filter sees one image of width 1
  bool merged = false;                            ///< few channels: a tap is a row of the filter, S*C wide
  int64_t taps = 0, tap_columns = 0, panels = 0;  ///< panels per tap
  std::vector<int64_t> offsets;                   ///< of the taps in a panel of a block, elements
  /// A block is block_rows rows of one image, or all rows of block_images images.
  int64_t block_rows = 0, row_blocks = 0, block_images = 1, blocks = 0;
  int64_t sampling = 1, stride = 1, pad = 0;
  int64_t x_rows = 0, x_columns = 0, x_pixel = 0;  ///< of the padded copy, per image; elements of a pixel in a panel
  int64_t panel_elements = 0;
  int64_t splits = 1, groups = 1;  ///< of blocks, which follows from the spec alone, and of filters
  int64_t x_bytes = 0, dy_bytes = 0, lines_bytes = 0, thread_bytes = 0, sums_bytes = 0, workspace_bytes = 0;
};

class ConvEngine {
 public:
  ConvEngine(Team& team, const IsaKernels& isa, int64_t& allocations);

  /// Specs here have layout nhwc.
  int64_t workspace_bytes(const Conv2dSpec& spec, ConvPass pass);
  void forward(const Conv2dSpec& spec, const void* x, const void* w, const void* bias, void* y, void* workspace);
  void backward_data(const Conv2dSpec& spec, const void* dy, const void* w, void* dx, void* workspace);
  /// Without the gradient of the bias.
  void backward_weights(const Conv2dSpec& spec, const void* x, const void* dy, void* dw, void* workspace);

 private:
  struct Key {
    Conv2dSpec spec;
    ConvPass pass;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };

  const GatherPlan& gather_plan(const Conv2dSpec& spec, ConvPass pass);
  const WeightsPlan& weights_plan(const Conv2dSpec& spec);
  GatherPlan make_gather_plan(const Conv2dSpec& spec, ConvPass pass) const;
  void choose_blocks(GatherPlan& plan) const;
  WeightsPlan make_weights_plan(const Conv2dSpec& spec) const;

  void gather(const Conv2dSpec& spec, const GatherPlan& plan, const void* in, const void* w, const void* bias,
              bool relu, void* out, void* workspace);
  void pack_filter(const Conv2dSpec& spec, const GatherPlan& plan, const void* w, char* panels);
  void copy_block(const GatherPlan& plan, const char* image, int64_t first_row, int64_t rows, char* block) const;
  void gather_block(const GatherPlan& plan, const char* in, const char* panels, const char* bias, bool relu, char* out,
                    int64_t task, char* memory) const;
  void weights_task(const WeightsPlan& plan, const char* x, const char* dy, char* sums, int64_t split, int64_t group,
                    char* memory) const;
  void weights_block(const WeightsPlan& plan, const char* x, const char* dy, char* sums, int64_t block, int64_t filter,
                     int64_t filters, bool add, char* memory) const;
  void copy_weights_rows(const WeightsPlan& plan, const char* image, int64_t first_row, int64_t rows, char* out) const;

  Team& team_;
  const IsaKernels& isa_;
  const ConvKernels& kernels_;
  int64_t& allocations_;
  std::unordered_map<Key, GatherPlan, Hash> gather_plans_;
  std::unordered_map<Key, WeightsPlan, Hash> weights_plans_;
};

}  // namespace dlbench::cpu
