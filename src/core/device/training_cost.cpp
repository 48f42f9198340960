// What the ops of training declare. Operations are counted as in the formulas of training_specs.h, written with the
// fewest operations that need no reordering of sums; exp, log, a square root and a division count as one each.
// Bytes: every tensor of the call once. Statistics (means, optimizer state) have the accumulate type.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/device/cost.h"
#include "core/device/ops.h"

namespace dlbench {

namespace {

double element_bytes(Precision p) {
  return static_cast<double>(size_of(storage_of(p)));
}
double statistics_bytes(Precision p) {
  return static_cast<double>(size_of(accumulate_of(p)));
}
template <typename... Extents>
double product(Extents... extents) {
  return (1.0 * ... * static_cast<double>(extents));
}

constexpr double kTokenBytes = 4;           // int32 ids
constexpr double kTrainingStateBytes = 64;  // core/math/optimizer.h

// Batch norm, per value. Forward: mean 1; variance 3 (subtract, square, add); a*x + b with a and b per channel 2.
constexpr double kBatchNormForward = 6;
// Backward: xhat 2 (subtract, multiply), g*xhat into its sum 2, g into its sum 1, dx = a*(g - b - xhat*c) 4.
constexpr double kBatchNormBackward = 9;
// Layer norm, per value. Forward: mean 1, variance 3, xhat 2, times gamma plus beta 2.
constexpr double kLayerNormForward = 8;
// Backward: xhat 2, dgamma 2, dbeta 1, g = dy*gamma 1, the two sums of the row 1 + 2, dx = rstd*(g - a - xhat*b) 4.
constexpr double kLayerNormBackward = 13;
// Softmax, per value. Forward: max, subtract, exp, add, multiply by 1/sum. Backward: dy*y into its sum 2, y*(dy -
// sum) 2.
constexpr double kSoftmaxForward = 5, kSoftmaxBackward = 4;
// Cross-entropy with its gradient, per value: softmax, and times loss_scale/rows. Per row: the log, two differences,
// -1.
constexpr double kCrossEntropy = 6, kCrossEntropyRow = 4;
// SGD, per parameter: times gradient_factor 1, momentum*v + g 2, w - lr*v 2; a decayed one 2 more.
constexpr double kSgd = 5, kWeightDecay = 2;
// AdamW, per parameter: times gradient_factor 1; m 3 (two products, a sum); v 4; m*lr*c1, sqrt, *c2, +epsilon, /, - 6.
constexpr double kAdamW = 14;

/// What an optimizer step moves: gradient, master weight and `states` arrays of its state, the parameter where it is
/// apart.
Cost update_cost(Precision precision, int64_t n, double flops, double states) {
  const double e = element_bytes(precision), s = statistics_bytes(precision), count = product(n);
  const bool apart = storage_of(precision) != accumulate_of(precision);
  return {.flops = flops,
          .bytes_read = count * (e + s * (1 + states)),
          .bytes_written = count * (s * (1 + states) + (apart ? e : 0))};
}

}  // namespace

Cost cost_of(const Conv2dSpec& s, ConvPass pass) {
  const double e = element_bytes(s.precision), images = product(s.n, s.c, s.h, s.w);
  const double filters = product(s.k, s.c, s.r, s.s), outputs = product(s.n, s.k, s.p(), s.q()), bias = s.bias ? 1 : 0;
  // Taps that fall into the padding count, as in every published figure of convolutions.
  Cost cost{.flops = 2 * outputs * product(s.c, s.r, s.s)};
  switch (pass) {
    case ConvPass::forward:
      cost.flops += outputs * (bias + (s.activation == Activation::relu ? 1 : 0));
      cost.bytes_read = e * (images + filters + bias * product(s.k));
      cost.bytes_written = e * outputs;
      return cost;
    case ConvPass::backward_data:
      cost.bytes_read = e * (outputs + filters);
      cost.bytes_written = e * images;
      return cost;
    case ConvPass::backward_weights:
      cost.flops += outputs * bias;
      cost.bytes_read = e * (images + outputs);
      cost.bytes_written = e * (filters + bias * product(s.k));
      return cost;
  }
  throw std::invalid_argument("not a pass of a convolution");
}

Cost cost_of(const PoolSpec& s, bool backward) {
  const double e = element_bytes(s.precision), places = product(s.r, s.s);
  const double inputs = product(s.n, s.c, s.h, s.w), outputs = product(s.n, s.c, s.p(), s.q());
  const bool max = s.pooling == Pooling::max;
  const double index = max ? outputs : 0;  // one byte each
  // max: places - 1 comparisons, backward one addition. average: places - 1 additions and a product; backward a product
  // and an addition per place.
  if (backward) {
    return {.flops = outputs * (max ? 1 : places + 1), .bytes_read = e * outputs + index, .bytes_written = e * inputs};
  }
  return {
      .flops = outputs * (max ? places - 1 : places), .bytes_read = e * inputs, .bytes_written = e * outputs + index};
}

Cost cost_of(const BatchNormSpec& s, bool backward) {
  const double e = element_bytes(s.precision), statistics = statistics_bytes(s.precision), channels = product(s.c);
  const double values = product(s.n, s.c, s.h, s.w);
  const double residual = s.residual ? 1 : 0, activation = s.activation == Activation::relu ? 1 : 0;
  if (backward) {
    return {.flops = values * (kBatchNormBackward + activation),
            .bytes_read = e * (values * (2 + activation) + channels) + 2 * statistics * channels,
            .bytes_written = e * (values * (1 + residual) + 2 * channels)};
  }
  return {.flops = values * (kBatchNormForward + residual + activation),
          .bytes_read = e * (values * (1 + residual) + 2 * channels) + 2 * statistics * channels,
          .bytes_written = e * values + 4 * statistics * channels};
}

/// Backward with residual: dx_add is given, as a residual branch needs it.
Cost cost_of(const LayerNormSpec& s, bool backward) {
  const double e = element_bytes(s.precision), statistics = 2 * statistics_bytes(s.precision) * product(s.rows);
  const double values = product(s.rows, s.columns), vectors = 2 * product(s.columns), residual = s.residual ? 1 : 0;
  if (backward) {
    return {.flops = values * (kLayerNormBackward + residual),
            .bytes_read = e * (values * (2 + residual) + vectors / 2) + statistics,
            .bytes_written = e * (values + vectors)};
  }
  return {.flops = values * (kLayerNormForward + residual),
          .bytes_read = e * (values * (1 + residual) + vectors),
          .bytes_written = e * values * (1 + residual) + statistics};
}

Cost cost_of(Op op, const RowsSpec& s) {
  const double e = element_bytes(s.precision), rows = product(s.rows), values = product(s.rows, s.columns);
  if (op == Op::softmax_forward) {
    return {.flops = kSoftmaxForward * values, .bytes_read = e * values, .bytes_written = e * values};
  }
  if (op == Op::softmax_backward) {
    return {.flops = kSoftmaxBackward * values, .bytes_read = 2 * e * values, .bytes_written = e * values};
  }
  if (op != Op::cross_entropy) throw std::invalid_argument("cost_of: " + std::string(to_string(op)) + " has no rows");
  const double written = s.row_stride != 0 ? product(s.rows, s.row_stride) : values;
  return {.flops = kCrossEntropy * values + kCrossEntropyRow * rows,
          .bytes_read = e * values + kTokenBytes * rows,
          .bytes_written = e * written + statistics_bytes(s.precision) * rows};
}

/// Only the rows of the token table that are looked up move: as many as there are tokens, or the table where that is
/// smaller. Backward without `accumulate` writes the whole table.
Cost cost_of(const EmbeddingSpec& s, bool backward) {
  const double e = element_bytes(s.precision), values = product(s.tokens, s.channels);
  const double ids = kTokenBytes * product(s.tokens), positions = s.positions ? 1 : 0;
  const double touched = product(std::min(s.tokens, s.vocabulary), s.channels);
  const double position_rows = s.positions && (backward || s.tokens > 0) ? product(s.length, s.channels) : 0;
  if (backward) {
    return {.flops = values * (1 + positions),
            .bytes_read = e * (values + (s.accumulate ? touched : 0)) + ids,
            .bytes_written = e * ((s.accumulate ? touched : product(s.vocabulary, s.channels)) + position_rows)};
  }
  return {.flops = values * positions, .bytes_read = e * (touched + position_rows) + ids, .bytes_written = e * values};
}

/// Products only: q k^T and p v forward; backward q k^T again (only the log-sum-exp is kept), dy v^T, and the gradients
/// of q, k and v: five, the 2.5-fold of forward (Dao 2023, FlashAttention-2, section 4.1).
Cost cost_of(const AttentionSpec& s, bool backward) {
  const double e = element_bytes(s.precision), heads = product(s.batch, s.heads), length = product(s.length);
  const double pairs = s.causal ? length * (length + 1) / 2 : length * length;
  const double values = heads * length * product(s.head_dim);
  const double log_sum_exp = statistics_bytes(s.precision) * heads * length;
  const double one_product = 2 * heads * pairs * product(s.head_dim);
  if (backward) {
    return {.flops = 5 * one_product, .bytes_read = 5 * e * values + log_sum_exp, .bytes_written = 3 * e * values};
  }
  return {.flops = 2 * one_product, .bytes_read = 3 * e * values, .bytes_written = e * values + log_sum_exp};
}

Cost cost_of(const GradientSpec& s) {
  const double n = s.check ? product(s.n) : 0;
  return {.flops = 2 * n,  // a square and a sum
          .bytes_read = element_bytes(s.precision) * n + kTrainingStateBytes,
          .bytes_written = kTrainingStateBytes};
}

Cost cost_of(const SgdSpec& s) {
  return update_cost(s.precision, s.n, kSgd * product(s.n) + kWeightDecay * product(s.decayed), 1);
}

Cost cost_of(const AdamWSpec& s) {
  return update_cost(s.precision, s.n, kAdamW * product(s.n) + kWeightDecay * product(s.decayed), 2);
}

}  // namespace dlbench
