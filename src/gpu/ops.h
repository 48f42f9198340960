// GpuOps: the ops on an NVIDIA GPU; each file of this folder implements the members of its name. Twin: src/cpu/ops.h.
//
// Promises: everything is enqueued on one stream; nothing is allocated after construction, so the ops can be captured
// into a graph at any time; products are cuBLAS or cuBLASLt with the compute type written out, everything else is a
// kernel of this folder around the functors of src/core/math.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

#include "core/device/ops.h"
#include "core/math/float_types.h"
#include "gpu/blas.cuh"

namespace dlbench::gpu {

/// What the ops must know about the hardware.
struct Hardware {
  int compute_capability = 0;  ///< 10 * major + minor
  int multiprocessors = 1;
  int64_t l2_bytes = 0;
};

/// Cuts a caller's workspace into pieces, aligned as cudaMalloc aligns. From null: only counts.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<char*>(base)) {}
  void* take(int64_t bytes) {
    char* piece = base_ == nullptr || bytes == 0 ? nullptr : base_ + used_;
    used_ += (bytes + 255) / 256 * 256;
    return piece;
  }
  int64_t used_bytes() const { return used_; }

 private:
  char* base_;
  int64_t used_ = 0;
};

/// Device memory for the partial results of reductions; lives as long as the ops.
struct Scratch {
  void* data = nullptr;
  size_t bytes = 0;
};

class GemmPlans;
struct ConvMemory;

class GpuOps final : public Ops {
 public:
  GpuOps(cudaStream_t stream, const Blas& blas, Scratch scratch, Hardware hardware);
  ~GpuOps() override;

  Support supports(Op op, Precision precision) const override;

  // elementwise.cu
  void noop() override;
  void fill_normal(const FillSpec& spec, void* x) override;
  void copy(const VectorSpec& spec, const void* x, void* y) override;
  void triad(const VectorSpec& spec, float a, const void* x, const void* y, void* z) override;
  void axpy(const VectorSpec& spec, float a, const void* x, void* y) override;
  void bias(const MatrixSpec& spec, const void* x, const void* bias, void* y) override;
  void relu_forward(const VectorSpec& spec, const void* x, void* y) override;
  void relu_backward(const VectorSpec& spec, const void* dy, const void* y, void* dx) override;
  void gelu_forward(const VectorSpec& spec, const void* x, void* y) override;
  void gelu_backward(const VectorSpec& spec, const void* dy, const void* x, void* dx) override;
  // convert.cu
  void convert(const ConvertSpec& spec, const void* x, void* y) override;
  // reduce.cu
  void reduce(const ReduceSpec& spec, const void* x, void* y) override;
  // gemv.cu
  void dot(const VectorSpec& spec, const void* x, const void* y, void* out) override;
  void gemv(const GemvSpec& spec, const void* a, const void* x, void* y) override;
  // gemm.cu
  void gemm(const GemmSpec& spec, const void* a, const void* b, const void* bias, void* c,
            void* pre_activation) override;
  // softmax.cu
  void softmax_forward(const RowsSpec& spec, const void* x, void* y) override;
  void softmax_backward(const RowsSpec& spec, const void* dy, const void* y, void* dx) override;
  void cross_entropy(const RowsSpec& spec, const void* logits, const int32_t* targets, const TrainingState* state,
                     void* losses, void* dlogits) override;
  // layer_norm.cu
  void layer_norm_forward(const LayerNormSpec& spec, const void* x, const void* residual, const void* gamma,
                          const void* beta, void* sum, void* y, void* saved_mean, void* saved_rstd) override;
  void layer_norm_backward(const LayerNormSpec& spec, const void* dy, const void* x, const void* gamma,
                           const void* saved_mean, const void* saved_rstd, const void* dx_add, void* dx, void* dgamma,
                           void* dbeta) override;
  // embedding.cu
  void embedding_forward(const EmbeddingSpec& spec, const int32_t* tokens, const void* token_table,
                         const void* position_table, void* y) override;
  int64_t embedding_workspace_bytes(const EmbeddingSpec& spec) const override;
  void embedding_backward(const EmbeddingSpec& spec, const int32_t* tokens, const void* dy, void* dtoken,
                          void* dposition, void* workspace) override;
  // optimizer.cu
  int64_t update_workspace_bytes(const GradientSpec& spec) const override;
  void prepare_update(const GradientSpec& spec, const void* gradient, TrainingState* state, void* workspace) override;
  void sgd_step(const SgdSpec& spec, const TrainingState* state, const void* gradient, void* master, void* momentum,
                void* parameter) override;
  void adamw_step(const AdamWSpec& spec, const TrainingState* state, const void* gradient, void* master, void* m,
                  void* v, void* parameter) override;
  // conv2d.cu
  ImageLayout preferred_image_layout() const override { return ImageLayout::nhwc; }
  int64_t conv2d_workspace_bytes(const Conv2dSpec& spec, ConvPass pass) const override;
  void conv2d_forward(const Conv2dSpec& spec, const void* x, const void* w, const void* bias, void* y,
                      void* workspace) override;
  void conv2d_backward_data(const Conv2dSpec& spec, const void* dy, const void* w, void* dx, void* workspace) override;
  void conv2d_backward_weights(const Conv2dSpec& spec, const void* x, const void* dy, void* dw, void* dbias,
                               void* workspace) override;
  // attention.cu
  int64_t attention_workspace_bytes(const AttentionSpec& spec, bool backward) const override;
  void attention_forward(const AttentionSpec& spec, const void* qkv, void* y, void* log_sum_exp,
                         void* workspace) override;
  void attention_backward(const AttentionSpec& spec, const void* qkv, const void* y, const void* dy,
                          const void* log_sum_exp, void* dqkv, void* workspace) override;
  // pool.cu
  void pool_forward(const PoolSpec& spec, const void* x, void* y, uint8_t* index) override;
  void pool_backward(const PoolSpec& spec, const void* dy, const uint8_t* index, void* dx) override;
  // batch_norm.cu
  void batch_norm_forward(const BatchNormSpec& spec, const void* x, const void* gamma, const void* beta,
                          const void* residual, void* y, void* running_mean, void* running_variance, void* saved_mean,
                          void* saved_rstd) override;
  void batch_norm_backward(const BatchNormSpec& spec, const void* dy, const void* x, const void* y, const void* gamma,
                           const void* saved_mean, const void* saved_rstd, void* dx, void* dresidual, void* dgamma,
                           void* dbeta) override;
  // peak.cu
  Support supports_fma_unit(FmaUnit unit, Precision precision) const override;
  double fma_peak_flops(const FmaPeakSpec& spec) const override;
  int64_t fma_peak_outputs(const FmaPeakSpec& spec) const override;
  void fma_peak(const FmaPeakSpec& spec, void* out) override;

 private:
  /// @throws UnsupportedError with the reason of `supports`.
  void require(Op op, Precision precision) const;
  /// gemm.cu: a product whose C has the accumulate type, for sums that go on (gradients over chunks, scores). `spec` is
  /// checked, without an epilogue.
  void wide_gemm(const GemmSpec& spec, const void* a, const void* b, void* c);
  /// gemm.cu: `spec` is resolved.
  void run_gemm(const GemmSpec& spec, DType c_type, const void* a, const void* b, const void* bias, void* c,
                void* pre_activation);
  // conv2d.cu: the passes over nhwc images, given the memory they need besides.
  void forward_nhwc(const Conv2dSpec& spec, const ConvMemory& memory, const void* x, const void* w, const void* bias,
                    void* y);
  void backward_data_nhwc(const Conv2dSpec& spec, const ConvMemory& memory, const void* dy, const void* w, void* dx);
  void backward_weights_nhwc(const Conv2dSpec& spec, const ConvMemory& memory, const void* x, const void* dy,
                             void* sums, bool add);
  void convolution_bias_gradient(const Conv2dSpec& spec, const void* dy, void* dbias);

  cudaStream_t stream_;
  const Blas& blas_;
  Scratch scratch_;
  Hardware hardware_;
  std::unique_ptr<GemmPlans> gemm_plans_;
};

template <typename T>
struct TypeTag {
  using type = T;
};

/// Calls visitor(TypeTag<storage type of `type`>). @throws UnsupportedError for whole numbers, naming `what`.
template <typename Visitor>
void visit_float_type(DType type, const char* what, Visitor&& visitor);

[[noreturn]] void throw_not_a_float_type(DType type, const char* what);

template <typename Visitor>
void visit_float_type(DType type, const char* what, Visitor&& visitor) {
  switch (type) {
    case DType::f64:
      return visitor(TypeTag<double>{});
    case DType::f32:
      return visitor(TypeTag<float>{});
    case DType::bf16:
      return visitor(TypeTag<bfloat16>{});
    case DType::f16:
      return visitor(TypeTag<float16>{});
    case DType::i32:
    case DType::u8:
      throw_not_a_float_type(type, what);
  }
}

/// The type in which kernels compute and accumulate: double for f64, float for every narrower type.
template <typename T>
using ComputeOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
DLB_HD ComputeOf<T> widen(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return to_float(x);
  }
}

template <typename T>
DLB_HD T narrow(ComputeOf<T> x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return from_float<T>(x);
  }
}

}  // namespace dlbench::gpu
