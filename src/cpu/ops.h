// The arithmetic of ops.h on the CPU. Twin: src/gpu/ops.h.
//
// Each group of ops is in the file of its name; the loops themselves are in the tables of kernels.h and gemm_kernels.h.
// Promises: work that is too small to be worth a hand-over to other threads runs on the calling one; which elements a
// thread computes depends on sizes only, and sums are added in an order that depends on sizes only.
#pragma once

#include <memory>

#include "core/base/usable_cpus.h"
#include "core/device/device.h"
#include "cpu/blas.h"
#include "cpu/conv_plan.h"
#include "cpu/gemm_plan.h"
#include "cpu/image_kernels.h"
#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "cpu/sequence_kernels.h"

namespace dlbench::cpu {

/// Where it stops paying to stay in the caches and to hand work over.
struct CpuThresholds {
  int64_t last_level_cache_bytes = int64_t{32} << 20;
  /// Bytes that a thread moves in about the time of one hand-over.
  int64_t parallel_grain_bytes = int64_t{16} << 10;
};

class CpuOps final : public Ops {
 public:
  /// @param allocations  counter that every allocation for workspaces is added to
  CpuOps(Team& team, const Blas& blas, const CpuThresholds& thresholds, int64_t& allocations);
  ~CpuOps() override;

  Support supports(Op op, Precision precision) const override;
  void noop() override;
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
  int64_t embedding_workspace_bytes(const EmbeddingSpec& spec) const override;
  void embedding_backward(const EmbeddingSpec& spec, const int32_t* tokens, const void* dy, void* dtoken,
                          void* dposition, void* workspace) override;
  int64_t attention_workspace_bytes(const AttentionSpec& spec, bool backward) const override;
  void attention_forward(const AttentionSpec& spec, const void* qkv, void* y, void* log_sum_exp,
                         void* workspace) override;
  void attention_backward(const AttentionSpec& spec, const void* qkv, const void* y, const void* dy,
                          const void* log_sum_exp, void* dqkv, void* workspace) override;
  int64_t update_workspace_bytes(const GradientSpec& spec) const override;
  void prepare_update(const GradientSpec& spec, const void* gradient, TrainingState* state, void* workspace) override;
  void sgd_step(const SgdSpec& spec, const TrainingState* state, const void* gradient, void* master, void* momentum,
                void* parameter) override;
  void adamw_step(const AdamWSpec& spec, const TrainingState* state, const void* gradient, void* master, void* m,
                  void* v, void* parameter) override;
  ImageLayout preferred_image_layout() const override { return ImageLayout::nhwc; }
  int64_t conv2d_workspace_bytes(const Conv2dSpec& spec, ConvPass pass) const override;
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
  Support supports_fma_unit(FmaUnit unit, Precision precision) const override;
  double fma_peak_flops(const FmaPeakSpec& spec) const override;
  int64_t fma_peak_outputs(const FmaPeakSpec& spec) const override;
  void fma_peak(const FmaPeakSpec& spec, void* out) override;

  /// Bytes copied by all threads; the copies of the device use it too.
  void copy_bytes(const void* from, void* to, int64_t bytes);

  /// How gemm does this spec, "" before its first call: for tests and micro benchmarks.
  std::string describe_gemm(const GemmSpec& spec) const;
  /// Fixes how a spec is done instead of measuring: for tests.
  void set_gemm_plan(const GemmSpec& spec, const GemmPlan& plan);

 private:
  const VectorKernels& kernels(Op op, Precision precision) const;
  const SequenceKernels& sequence(Op op, Precision precision) const;
  int64_t grain(int64_t bytes_per_item) const;
  bool streams(int64_t bytes) const { return bytes > thresholds_.last_level_cache_bytes; }
  /// The same for rows of `row_bytes`, which must begin at cache lines.
  bool streams_rows(int64_t bytes, const void* y, int64_t row_bytes) const;
  void update_range(void (*kernel)(const UpdateArgs&), const UpdateArgs& all, Precision precision, int64_t n,
                    int64_t decayed);
  /// At least `bytes` of scratch memory that later calls of the same size find again.
  void* scratch(int64_t bytes);
  void columns_of_parts(const ReduceSpec& spec, char* parts, int64_t pieces, int64_t columns);

  Team& team_;
  const Blas& blas_;
  CpuThresholds thresholds_;
  int64_t& allocations_;
  const IsaKernels& isa_;
  std::unique_ptr<std::byte[]> scratch_;
  int64_t scratch_bytes_ = 0;
  std::unique_ptr<GemmEngine> gemm_;
  std::unique_ptr<ConvEngine> conv_;
  const ImageKernels& images_;
};

/// What every op does before anything else. @throws UnsupportedError with the reason of `supports`
void require_support(const Support& support, Op op, Precision precision);

}  // namespace dlbench::cpu
