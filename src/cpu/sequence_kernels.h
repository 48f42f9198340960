// The innermost loops of normalization, softmax, attention, embedding and the optimizers, per instruction set (see
// kernels.h).
//
// Promises: one thread each, no allocation; formulas are those of training_specs.h, sums in the accumulate type W of
// the element type (float, or double for fp64), added in an order that depends on the extents only. `stream`: results
// are written past the caches; then they are aligned to a cache line, row by row.
#pragma once

#include <cstdint>

#include "cpu/kernels.h"

namespace dlbench::cpu {

struct LayerNormArgs {
  const void *x = nullptr, *residual = nullptr, *gamma = nullptr, *beta = nullptr;
  void *sum = nullptr, *y = nullptr;
  void *mean = nullptr, *rstd = nullptr;  ///< W, one per row
  int64_t rows = 0, columns = 0;
  float epsilon = 0;
  bool stream = false;
};

struct LayerNormBackwardArgs {
  const void *dy = nullptr, *x = nullptr, *gamma = nullptr, *mean = nullptr, *rstd = nullptr, *dx_add = nullptr;
  void* dx = nullptr;
  void *dgamma = nullptr, *dbeta = nullptr;  ///< W, sums over these rows, overwritten
  int64_t rows = 0, columns = 0;
  bool stream = false;
};

struct CrossEntropyArgs {
  const void* logits = nullptr;
  const int32_t* targets = nullptr;
  void* losses = nullptr;   ///< W
  void* dlogits = nullptr;  ///< null: not wanted
  int64_t rows = 0, columns = 0, row_stride = 0;
  double gradient_scale = 1;
};

/// w, m (SGD: momentum), v in W; `parameter` in the element type or null.
struct UpdateArgs {
  const void* gradient = nullptr;
  void *w = nullptr, *m = nullptr, *v = nullptr, *parameter = nullptr;
  int64_t n = 0;
  float gradient_factor = 1, lr = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  double correction1 = 1, correction2 = 1;
  bool first = false;
};

struct SequenceKernels {
  void (*layer_norm_forward)(const LayerNormArgs& args);
  void (*layer_norm_backward)(const LayerNormBackwardArgs& args);
  void (*softmax_forward)(const void* x, void* y, int64_t rows, int64_t columns, int64_t row_stride, bool stream);
  void (*softmax_backward)(const void* dy, const void* y, void* dx, int64_t rows, int64_t columns, int64_t row_stride,
                           bool stream);
  void (*cross_entropy)(const CrossEntropyArgs& args);
  void (*sgd)(const UpdateArgs& args);
  void (*adamw)(const UpdateArgs& args);
  double (*square_sum)(const void* x, int64_t n);  ///< in double, whatever the element type
  /// out[j] (+)= the sum over i < count of x[row[i] * row_length + j], j < columns.
  void (*gather_sum)(const void* x, int64_t row_length, const int32_t* row, int64_t count, int64_t columns,
                     bool accumulate, void* out);
  /// out[r] (W) = sum over j of a[r * stride + j] * b[r * stride + j].
  void (*row_dots)(const void* a, const void* b, int64_t rows, int64_t columns, int64_t stride, void* out);
  /// out[r * out_stride + j] (element type) = factor[r] (W) * x[r * x_stride + j] (W); no factor: 1.
  void (*scale_rows)(const void* x, int64_t x_stride, const void* factor, int64_t rows, int64_t columns, void* out,
                     int64_t out_stride);

  // Attention; W only, so that the entries of 16-bit types are those of fp32. `lead` is the first query less the first
  // key of a block: with `causal` a key is seen when key <= lead + query, both counted within the block.
  /// scores[key][query] -> exp(score - maximum of the query so far), 0 where unseen. maximum, total [queries] are
  /// carried from block to block of keys; correction[query] is what earlier sums are to be multiplied by.
  void (*attention_block)(void* scores, int64_t stride, int64_t keys, int64_t queries, bool causal, int64_t lead,
                          void* maximum, void* total, void* correction);
  /// scores[query][key] -> probabilities exp(score - log_sum_exp[query]); d_scores holds the gradients of the
  /// probabilities and receives probability * (gradient - delta[query]) * scale. Both 0 where unseen.
  void (*attention_gradient)(void* scores, void* d_scores, int64_t stride, int64_t queries, int64_t keys, bool causal,
                             int64_t lead, const void* log_sum_exp, const void* delta, double scale);
};

/// The widest that runs here, for an element type.
const SequenceKernels& sequence_kernels(ElementIndex type);

}  // namespace dlbench::cpu
