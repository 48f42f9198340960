// Training ops on a device without them: a sentence instead of a result.
#include "core/base/error.h"
#include "core/device/ops.h"

namespace dlbench {

namespace {
[[noreturn]] void missing(Op op) {
  throw UnsupportedError(std::string(to_string(op)) + ": this device has no implementation of it");
}
}  // namespace

int64_t Ops::conv2d_workspace_bytes(const Conv2dSpec&, ConvPass) const {
  return 0;
}
void Ops::conv2d_forward(const Conv2dSpec&, const void*, const void*, const void*, void*, void*) {
  missing(Op::conv2d_forward);
}
void Ops::conv2d_backward_data(const Conv2dSpec&, const void*, const void*, void*, void*) {
  missing(Op::conv2d_backward_data);
}
void Ops::conv2d_backward_weights(const Conv2dSpec&, const void*, const void*, void*, void*, void*) {
  missing(Op::conv2d_backward_weights);
}
void Ops::pool_forward(const PoolSpec&, const void*, void*, uint8_t*) {
  missing(Op::pool_forward);
}
void Ops::pool_backward(const PoolSpec&, const void*, const uint8_t*, void*) {
  missing(Op::pool_backward);
}
void Ops::batch_norm_forward(const BatchNormSpec&, const void*, const void*, const void*, const void*, void*, void*,
                             void*, void*, void*) {
  missing(Op::batch_norm_forward);
}
void Ops::batch_norm_backward(const BatchNormSpec&, const void*, const void*, const void*, const void*, const void*,
                              const void*, void*, void*, void*, void*) {
  missing(Op::batch_norm_backward);
}
void Ops::layer_norm_forward(const LayerNormSpec&, const void*, const void*, const void*, const void*, void*, void*,
                             void*, void*) {
  missing(Op::layer_norm_forward);
}
void Ops::layer_norm_backward(const LayerNormSpec&, const void*, const void*, const void*, const void*, const void*,
                              const void*, void*, void*, void*) {
  missing(Op::layer_norm_backward);
}
void Ops::softmax_forward(const RowsSpec&, const void*, void*) {
  missing(Op::softmax_forward);
}
void Ops::softmax_backward(const RowsSpec&, const void*, const void*, void*) {
  missing(Op::softmax_backward);
}
void Ops::cross_entropy(const RowsSpec&, const void*, const int32_t*, const TrainingState*, void*, void*) {
  missing(Op::cross_entropy);
}
void Ops::embedding_forward(const EmbeddingSpec&, const int32_t*, const void*, const void*, void*) {
  missing(Op::embedding_forward);
}
int64_t Ops::embedding_workspace_bytes(const EmbeddingSpec&) const {
  return 0;
}
void Ops::embedding_backward(const EmbeddingSpec&, const int32_t*, const void*, void*, void*, void*) {
  missing(Op::embedding_backward);
}
int64_t Ops::attention_workspace_bytes(const AttentionSpec&, bool) const {
  return 0;
}
void Ops::attention_forward(const AttentionSpec&, const void*, void*, void*, void*) {
  missing(Op::attention_forward);
}
void Ops::attention_backward(const AttentionSpec&, const void*, const void*, const void*, const void*, void*, void*) {
  missing(Op::attention_backward);
}
int64_t Ops::update_workspace_bytes(const GradientSpec&) const {
  return 0;
}
void Ops::prepare_update(const GradientSpec&, const void*, TrainingState*, void*) {
  missing(Op::prepare_update);
}
void Ops::sgd_step(const SgdSpec&, const TrainingState*, const void*, void*, void*, void*) {
  missing(Op::sgd_step);
}
void Ops::adamw_step(const AdamWSpec&, const TrainingState*, const void*, void*, void*, void*, void*) {
  missing(Op::adamw_step);
}

}  // namespace dlbench
