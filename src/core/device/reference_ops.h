// The ops of the reference device. See reference_device.h for what it promises.
#pragma once

#include "core/device/ops.h"
#include "core/device/reference_device.h"

namespace dlbench {

/// Which rows of an output the reference computes when an op costs more than `max_flops`: the first, the last and, by a
/// hash of the row's number, about as many others as fit. 0: all of them. The same for equal arguments, always.
class RowSample {
 public:
  RowSample(int64_t rows, double flops_per_row, double max_flops);
  bool contains(int64_t row) const;

 private:
  int64_t rows_;
  bool all_;
  uint64_t threshold_;  ///< a row is taken when the 32 bits of its hash are below
};

class ReferenceOps final : public Ops {
 public:
  explicit ReferenceOps(const ReferenceOptions& options) : options_(options) {}

  Support supports(Op op, Precision precision) const override;
  void noop() override {}
  void fill_normal(const FillSpec& spec, void* x) override;
  void copy(const VectorSpec& spec, const void* x, void* y) override;
  void convert(const ConvertSpec& spec, const void* x, void* y) override;
  void triad(const VectorSpec& spec, float a, const void* x, const void* y, void* z) override;
  void axpy(const VectorSpec& spec, float a, const void* x, void* y) override;
  void bias(const MatrixSpec& spec, const void* x, const void* bias, void* y) override;
  void relu_forward(const VectorSpec& spec, const void* x, void* y) override;
  void relu_backward(const VectorSpec& spec, const void* dy, const void* y, void* dx) override;
  void gelu_forward(const VectorSpec& spec, const void* x, void* y) override;
  void gelu_backward(const VectorSpec& spec, const void* dy, const void* x, void* dx) override;
  void reduce(const ReduceSpec& spec, const void* x, void* y) override;
  void dot(const VectorSpec& spec, const void* x, const void* y, void* out) override;
  void gemv(const GemvSpec& spec, const void* a, const void* x, void* y) override;
  void gemm(const GemmSpec& spec, const void* a, const void* b, const void* bias, void* c,
            void* pre_activation) override;
  void conv2d_forward(const Conv2dSpec& spec, const void* x, const void* w, const void* bias, void* y,
                      void* workspace) override;
  void conv2d_backward_data(const Conv2dSpec& spec, const void* dy, const void* w, void* dx, void* workspace) override;
  void conv2d_backward_weights(const Conv2dSpec& spec, const void* x, const void* dy, void* dw, void* dbias,
                               void* workspace) override;
  void pool_forward(const PoolSpec& spec, const void* x, void* y, uint8_t* index) override;
  void pool_backward(const PoolSpec& spec, const void* dy, const uint8_t* index, void* dx) override;
  void batch_norm_forward(const BatchNormSpec& spec, const void* x, const void* gamma, const void* beta,
                          const void* residual, void* y, void* running_mean, void* running_variance, void* saved_mean,
                          void* saved_rstd) override;
  void batch_norm_backward(const BatchNormSpec& spec, const void* dy, const void* x, const void* y, const void* gamma,
                           const void* saved_mean, const void* saved_rstd, void* dx, void* dresidual, void* dgamma,
                           void* dbeta) override;
  void layer_norm_forward(const LayerNormSpec& spec, const void* x, const void* residual, const void* gamma,
                          const void* beta, void* sum, void* y, void* saved_mean, void* saved_rstd) override;
  void layer_norm_backward(const LayerNormSpec& spec, const void* dy, const void* x, const void* gamma,
                           const void* saved_mean, const void* saved_rstd, const void* dx_add, void* dx, void* dgamma,
                           void* dbeta) override;
  void softmax_forward(const RowsSpec& spec, const void* x, void* y) override;
  void softmax_backward(const RowsSpec& spec, const void* dy, const void* y, void* dx) override;
  void cross_entropy(const RowsSpec& spec, const void* logits, const int32_t* targets, const TrainingState* state,
                     void* losses, void* dlogits) override;
  void embedding_forward(const EmbeddingSpec& spec, const int32_t* tokens, const void* token_table,
                         const void* position_table, void* y) override;
  void embedding_backward(const EmbeddingSpec& spec, const int32_t* tokens, const void* dy, void* dtoken,
                          void* dposition, void* workspace) override;
  void attention_forward(const AttentionSpec& spec, const void* qkv, void* y, void* log_sum_exp,
                         void* workspace) override;
  void attention_backward(const AttentionSpec& spec, const void* qkv, const void* y, const void* dy,
                          const void* log_sum_exp, void* dqkv, void* workspace) override;
  void prepare_update(const GradientSpec& spec, const void* gradient, TrainingState* state, void* workspace) override;
  void sgd_step(const SgdSpec& spec, const TrainingState* state, const void* gradient, void* master, void* momentum,
                void* parameter) override;
  void adamw_step(const AdamWSpec& spec, const TrainingState* state, const void* gradient, void* master, void* m,
                  void* v, void* parameter) override;
  Support supports_fma_unit(FmaUnit unit, Precision precision) const override;
  double fma_peak_flops(const FmaPeakSpec& spec) const override;
  int64_t fma_peak_outputs(const FmaPeakSpec& spec) const override;
  void fma_peak(const FmaPeakSpec& spec, void* out) override;

 private:
  ReferenceOptions options_;
};

}  // namespace dlbench
