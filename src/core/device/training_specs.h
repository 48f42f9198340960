// Shapes of the ops that only training needs: convolution, pooling, normalization, softmax, attention, optimizers.
//
// Why apart from ops.h: a spec is what plans, costs and caches are keyed by; most of their users call no op.
// Promises: plain values, comparable; extents may be 0 where the op says so; `require_valid` checks one. Letters:
// images N C H W, filters K R S (windows R x S), outputs P Q; sequences B T, channels C, heads NH of HD; vocabulary V.
// "Statistics type" is the accumulate type of the precision (fp32, or fp64 in fp64).
#pragma once

#include <cstdint>

#include "core/tensor/precision.h"

namespace dlbench {

/// Order of image activations in memory. nchw: [N,C,H,W], filters [K,C,R,S]. nhwc: [N,H,W,C], filters [K,R,S,C], what
/// PyTorch calls channels_last. A device does both; `Ops::preferred_image_layout` says which is fast.
enum class ImageLayout : uint8_t { nchw, nhwc };
enum class ConvPass : uint8_t { forward, backward_data, backward_weights };
enum class Pooling : uint8_t { max, average };
enum class Activation : uint8_t { none, relu };

/// y[n,k,p,q] = activation(sum_{c,r,s} x[n, c, p*stride+r-pad, q*stride+s-pad] * w[k,c,r,s] + bias[k]); x is 0 outside.
/// Cross-correlation, as in every framework. P = (H + 2*pad - R) / stride + 1, Q likewise.
struct Conv2dSpec {
  Precision precision = Precision::fp32;
  ImageLayout layout = ImageLayout::nchw;
  int64_t n = 0, c = 0, h = 0, w = 0;
  int64_t k = 0, r = 1, s = 1;
  int64_t stride = 1, pad = 0;
  bool bias = false;                         ///< forward adds it, backward_weights gives its gradient
  Activation activation = Activation::none;  ///< of forward only
  bool operator==(const Conv2dSpec&) const = default;
  int64_t p() const { return (h + 2 * pad - r) / stride + 1; }
  int64_t q() const { return (w + 2 * pad - s) / stride + 1; }
};

/// Windows of r x s. max: padding never wins; the first of equal values, in row order, takes the gradient; NaN wins.
/// average: divides by r*s, padding counted as 0 (PyTorch's count_include_pad). Global: r = h, s = w, stride = 1, pad =
/// 0.
struct PoolSpec {
  Precision precision = Precision::fp32;
  ImageLayout layout = ImageLayout::nchw;
  Pooling pooling = Pooling::max;
  int64_t n = 0, c = 0, h = 0, w = 0;
  int64_t r = 1, s = 1, stride = 1, pad = 0;  ///< pad <= r/2 and s/2; r*s <= 256 for max
  bool operator==(const PoolSpec&) const = default;
  int64_t p() const { return (h + 2 * pad - r) / stride + 1; }
  int64_t q() const { return (w + 2 * pad - s) / stride + 1; }
};

/// Batch normalization in training mode (Ioffe & Szegedy 2015): over the n*h*w values of each channel,
/// y = activation(gamma * (x - mean) / sqrt(var + epsilon) + beta + residual), var biased. Running statistics:
/// running = (1 - momentum) * running + momentum * batch value, with the unbiased variance, as PyTorch does.
struct BatchNormSpec {
  Precision precision = Precision::fp32;
  ImageLayout layout = ImageLayout::nchw;
  int64_t n = 0, c = 0, h = 0, w = 0;  ///< n*h*w >= 2
  float epsilon = 1e-5f, momentum = 0.1f;
  bool residual = false;
  Activation activation = Activation::none;
  bool operator==(const BatchNormSpec&) const = default;
};

/// Layer normalization of rows (Ba et al. 2016): y = gamma * (x - mean) * rstd + beta, variance biased.
struct LayerNormSpec {
  Precision precision = Precision::fp32;
  int64_t rows = 0, columns = 0;  ///< columns >= 1
  float epsilon = 1e-5f;
  bool residual = false;  ///< x is the sum of two inputs, which is written as well
  bool operator==(const LayerNormSpec&) const = default;
};

/// Rows of length `columns`. Cross-entropy: columns is the number of classes; `row_stride` >= columns elements between
/// rows of logits (a padded vocabulary), 0: dense.
struct RowsSpec {
  Precision precision = Precision::fp32;
  int64_t rows = 0, columns = 0;
  int64_t row_stride = 0;
  bool operator==(const RowsSpec&) const = default;
};

/// y[t,:] = token_table[token[t],:] + position_table[t % length,:], rows of `channels`.
struct EmbeddingSpec {
  Precision precision = Precision::fp32;
  int64_t tokens = 0;      ///< B*T rows
  int64_t length = 1;      ///< T: tokens is a multiple of it
  int64_t vocabulary = 0;  ///< rows of the token table; token values are from 0 to vocabulary-1
  int64_t channels = 0;
  bool positions = true;    ///< false: there is no position table
  bool accumulate = false;  ///< backward adds to the gradient of the token table (tied weights) instead of replacing it
  bool operator==(const EmbeddingSpec&) const = default;
};

/// Multi-head scaled dot-product attention (Vaswani et al. 2017), scale 1/sqrt(head_dim), packed as GPT-2 has it:
/// qkv [B, T, 3, NH, HD], output [B, T, NH, HD], log-sum-exp of the scaled scores [B, NH, T] in the statistics type.
struct AttentionSpec {
  Precision precision = Precision::fp32;
  int64_t batch = 0, length = 0, heads = 0, head_dim = 0;
  bool causal = true;
  bool operator==(const AttentionSpec&) const = default;
};

/// State of mixed-precision training that lives on the device, so that a captured step needs no host. Plain bytes: the
/// same on both sides; the type is core/math/optimizer.h's TrainingState.
struct TrainingState;

/// What happens between backward and the optimizer: norm of the unscaled gradient, clipping, overflow, loss scale.
/// gradient has n values in the storage type. check: the norm and the overflow are computed (reads the gradient);
/// without it only the step is counted. max_norm > 0: gradients are clipped to that L2 norm (factor
/// max_norm/(norm+1e-6) if below 1, as PyTorch's clip_grad_norm_). dynamic: fp16 loss scaling: halved on overflow and
/// the step skipped, doubled after growth_interval good steps.
struct GradientSpec {
  Precision precision = Precision::fp32;
  int64_t n = 0;
  bool check = false;
  float max_norm = 0.0f;
  bool dynamic_scaling = false;
  int32_t growth_interval = 2000;
  bool operator==(const GradientSpec&) const = default;
};

/// All parameters of a model as one flat array of n; weight decay applies to the first `decayed`. g = gradient unscaled
/// and clipped (TrainingState). A skipped step changes nothing.
/// SGD with momentum as PyTorch: g += weight_decay*w; v = momentum*v + g (the first step: v = g); w -= lr*v.
struct SgdSpec {
  Precision precision = Precision::fp32;
  int64_t n = 0, decayed = 0;
  float lr = 0.1f, momentum = 0.9f, weight_decay = 0.0f;
  bool operator==(const SgdSpec&) const = default;
};
/// AdamW (Loshchilov & Hutter 2019), bias-corrected as PyTorch: w -= lr*weight_decay*w; m, v averages;
/// w -= lr * (m/(1-beta1^t)) / (sqrt(v/(1-beta2^t)) + epsilon), t counted from 1 in TrainingState.
struct AdamWSpec {
  Precision precision = Precision::fp32;
  int64_t n = 0, decayed = 0;
  float lr = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, weight_decay = 0.01f;
  bool operator==(const AdamWSpec&) const = default;
};

/// @throws std::invalid_argument, naming the field: a negative extent, more than 2^63 elements, a window larger than
/// the padded image, a stride below 1, decayed beyond n, …
void require_valid(const Conv2dSpec& spec);
void require_valid(const PoolSpec& spec);
void require_valid(const BatchNormSpec& spec);
void require_valid(const LayerNormSpec& spec);
void require_valid(const RowsSpec& spec);
void require_valid(const EmbeddingSpec& spec);
void require_valid(const AttentionSpec& spec);
void require_valid(const GradientSpec& spec);
void require_valid(const SgdSpec& spec);
void require_valid(const AdamWSpec& spec);

}  // namespace dlbench
