// The ops of training on the meta device: shapes are checked and what they declare is handed on.
#include <fmt/format.h>

#include "core/device/meta_ops.h"

namespace dlbench {

namespace {

const char* text_of(ImageLayout layout) {
  return layout == ImageLayout::nchw ? "nchw" : "nhwc";
}

std::string image_text(int64_t n, int64_t c, int64_t h, int64_t w) {
  return fmt::format("N={} C={} H={} W={}", n, c, h, w);
}

std::string text_of(const Conv2dSpec& s) {
  return fmt::format("{} K={} R={} S={} stride={} pad={} {}{}{}", image_text(s.n, s.c, s.h, s.w), s.k, s.r, s.s,
                     s.stride, s.pad, text_of(s.layout), s.bias ? " bias" : "",
                     s.activation == Activation::relu ? " relu" : "");
}

std::string text_of(const PoolSpec& s) {
  return fmt::format("{} {} R={} S={} stride={} pad={} {}", s.pooling == Pooling::max ? "max" : "average",
                     image_text(s.n, s.c, s.h, s.w), s.r, s.s, s.stride, s.pad, text_of(s.layout));
}

std::string text_of(const BatchNormSpec& s) {
  return fmt::format("{} {}{}{}", image_text(s.n, s.c, s.h, s.w), text_of(s.layout), s.residual ? " residual" : "",
                     s.activation == Activation::relu ? " relu" : "");
}

std::string text_of(const LayerNormSpec& s) {
  return fmt::format("rows={} columns={}{}", s.rows, s.columns, s.residual ? " residual" : "");
}

std::string text_of(const RowsSpec& s) {
  std::string text = fmt::format("rows={} columns={}", s.rows, s.columns);
  if (s.row_stride != 0) text += fmt::format(" row_stride={}", s.row_stride);
  return text;
}

std::string text_of(const EmbeddingSpec& s) {
  return fmt::format("tokens={} T={} V={} C={}{}{}", s.tokens, s.length, s.vocabulary, s.channels,
                     s.positions ? " positions" : "", s.accumulate ? " accumulate" : "");
}

std::string text_of(const AttentionSpec& s) {
  return fmt::format("B={} T={} NH={} HD={}{}", s.batch, s.length, s.heads, s.head_dim, s.causal ? " causal" : "");
}

std::string text_of(const GradientSpec& s) {
  std::string text = fmt::format("n={}", s.n);
  if (s.check) text += " check";
  if (s.max_norm > 0) text += fmt::format(" max_norm={}", s.max_norm);
  if (s.dynamic_scaling) text += " dynamic_scaling";
  return text;
}

}  // namespace

void MetaOps::conv2d_forward(const Conv2dSpec& s, const void*, const void*, const void*, void*, void*) {
  require_valid(s);
  record(Op::conv2d_forward, s.precision, cost_of(s, ConvPass::forward), [&s] { return text_of(s); });
}

void MetaOps::conv2d_backward_data(const Conv2dSpec& s, const void*, const void*, void*, void*) {
  require_valid(s);
  record(Op::conv2d_backward_data, s.precision, cost_of(s, ConvPass::backward_data), [&s] { return text_of(s); });
}

void MetaOps::conv2d_backward_weights(const Conv2dSpec& s, const void*, const void*, void*, void*, void*) {
  require_valid(s);
  record(Op::conv2d_backward_weights, s.precision, cost_of(s, ConvPass::backward_weights), [&s] { return text_of(s); });
}

void MetaOps::pool_forward(const PoolSpec& s, const void*, void*, uint8_t*) {
  require_valid(s);
  record(Op::pool_forward, s.precision, cost_of(s, false), [&s] { return text_of(s); });
}

void MetaOps::pool_backward(const PoolSpec& s, const void*, const uint8_t*, void*) {
  require_valid(s);
  record(Op::pool_backward, s.precision, cost_of(s, true), [&s] { return text_of(s); });
}

void MetaOps::batch_norm_forward(const BatchNormSpec& s, const void*, const void*, const void*, const void*, void*,
                                 void*, void*, void*, void*) {
  require_valid(s);
  record(Op::batch_norm_forward, s.precision, cost_of(s, false), [&s] { return text_of(s); });
}

void MetaOps::batch_norm_backward(const BatchNormSpec& s, const void*, const void*, const void*, const void*,
                                  const void*, const void*, void*, void*, void*, void*) {
  require_valid(s);
  record(Op::batch_norm_backward, s.precision, cost_of(s, true), [&s] { return text_of(s); });
}

void MetaOps::layer_norm_forward(const LayerNormSpec& s, const void*, const void*, const void*, const void*, void*,
                                 void*, void*, void*) {
  require_valid(s);
  record(Op::layer_norm_forward, s.precision, cost_of(s, false), [&s] { return text_of(s); });
}

void MetaOps::layer_norm_backward(const LayerNormSpec& s, const void*, const void*, const void*, const void*,
                                  const void*, const void*, void*, void*, void*) {
  require_valid(s);
  record(Op::layer_norm_backward, s.precision, cost_of(s, true), [&s] { return text_of(s); });
}

void MetaOps::softmax_forward(const RowsSpec& s, const void*, void*) {
  require_valid(s);
  record(Op::softmax_forward, s.precision, cost_of(Op::softmax_forward, s), [&s] { return text_of(s); });
}

void MetaOps::softmax_backward(const RowsSpec& s, const void*, const void*, void*) {
  require_valid(s);
  record(Op::softmax_backward, s.precision, cost_of(Op::softmax_backward, s), [&s] { return text_of(s); });
}

void MetaOps::cross_entropy(const RowsSpec& s, const void*, const int32_t*, const TrainingState*, void*, void*) {
  require_valid(s);
  record(Op::cross_entropy, s.precision, cost_of(Op::cross_entropy, s), [&s] { return text_of(s); });
}

void MetaOps::embedding_forward(const EmbeddingSpec& s, const int32_t*, const void*, const void*, void*) {
  require_valid(s);
  record(Op::embedding_forward, s.precision, cost_of(s, false), [&s] { return text_of(s); });
}

void MetaOps::embedding_backward(const EmbeddingSpec& s, const int32_t*, const void*, void*, void*, void*) {
  require_valid(s);
  record(Op::embedding_backward, s.precision, cost_of(s, true), [&s] { return text_of(s); });
}

void MetaOps::attention_forward(const AttentionSpec& s, const void*, void*, void*, void*) {
  require_valid(s);
  record(Op::attention_forward, s.precision, cost_of(s, false), [&s] { return text_of(s); });
}

void MetaOps::attention_backward(const AttentionSpec& s, const void*, const void*, const void*, const void*, void*,
                                 void*) {
  require_valid(s);
  record(Op::attention_backward, s.precision, cost_of(s, true), [&s] { return text_of(s); });
}

void MetaOps::prepare_update(const GradientSpec& s, const void*, TrainingState*, void*) {
  require_valid(s);
  record(Op::prepare_update, s.precision, cost_of(s), [&s] { return text_of(s); });
}

void MetaOps::sgd_step(const SgdSpec& s, const TrainingState*, const void*, void*, void*, void*) {
  require_valid(s);
  record(Op::sgd_step, s.precision, cost_of(s), [&s] { return fmt::format("n={} decayed={}", s.n, s.decayed); });
}

void MetaOps::adamw_step(const AdamWSpec& s, const TrainingState*, const void*, void*, void*, void*, void*) {
  require_valid(s);
  record(Op::adamw_step, s.precision, cost_of(s), [&s] { return fmt::format("n={} decayed={}", s.n, s.decayed); });
}

}  // namespace dlbench
