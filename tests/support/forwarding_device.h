// A device that hands everything on to another one; tests override what they want to be different.
//
// Why: fake plugins need a working device under another name, and every check needs a device on which it fails.
#pragma once

#include <memory>
#include <utility>

#include "core/device/device.h"

namespace dlbench::test {

class ForwardingOps : public Ops {
 public:
  explicit ForwardingOps(Ops& inner) : inner_(inner) {}

  Support supports(Op op, Precision precision) const override { return inner_.supports(op, precision); }
  void noop() override { inner_.noop(); }
  void fill_normal(const FillSpec& s, void* x) override { inner_.fill_normal(s, x); }
  void copy(const VectorSpec& s, const void* x, void* y) override { inner_.copy(s, x, y); }
  void convert(const ConvertSpec& s, const void* x, void* y) override { inner_.convert(s, x, y); }
  void triad(const VectorSpec& s, float a, const void* x, const void* y, void* z) override {
    inner_.triad(s, a, x, y, z);
  }
  void axpy(const VectorSpec& s, float a, const void* x, void* y) override { inner_.axpy(s, a, x, y); }
  void bias(const MatrixSpec& s, const void* x, const void* b, void* y) override { inner_.bias(s, x, b, y); }
  void relu_forward(const VectorSpec& s, const void* x, void* y) override { inner_.relu_forward(s, x, y); }
  void relu_backward(const VectorSpec& s, const void* dy, const void* y, void* dx) override {
    inner_.relu_backward(s, dy, y, dx);
  }
  void gelu_forward(const VectorSpec& s, const void* x, void* y) override { inner_.gelu_forward(s, x, y); }
  void gelu_backward(const VectorSpec& s, const void* dy, const void* x, void* dx) override {
    inner_.gelu_backward(s, dy, x, dx);
  }
  void reduce(const ReduceSpec& s, const void* x, void* y) override { inner_.reduce(s, x, y); }
  void dot(const VectorSpec& s, const void* x, const void* y, void* out) override { inner_.dot(s, x, y, out); }
  void gemv(const GemvSpec& s, const void* a, const void* x, void* y) override { inner_.gemv(s, a, x, y); }
  void gemm(const GemmSpec& s, const void* a, const void* b, const void* bias, void* c, void* pre_activation) override {
    inner_.gemm(s, a, b, bias, c, pre_activation);
  }
  ImageLayout preferred_image_layout() const override { return inner_.preferred_image_layout(); }
  int64_t conv2d_workspace_bytes(const Conv2dSpec& s, ConvPass pass) const override {
    return inner_.conv2d_workspace_bytes(s, pass);
  }
  void conv2d_forward(const Conv2dSpec& s, const void* x, const void* w, const void* bias, void* y,
                      void* workspace) override {
    inner_.conv2d_forward(s, x, w, bias, y, workspace);
  }
  void conv2d_backward_data(const Conv2dSpec& s, const void* dy, const void* w, void* dx, void* workspace) override {
    inner_.conv2d_backward_data(s, dy, w, dx, workspace);
  }
  void conv2d_backward_weights(const Conv2dSpec& s, const void* x, const void* dy, void* dw, void* dbias,
                               void* workspace) override {
    inner_.conv2d_backward_weights(s, x, dy, dw, dbias, workspace);
  }
  void pool_forward(const PoolSpec& s, const void* x, void* y, uint8_t* index) override {
    inner_.pool_forward(s, x, y, index);
  }
  void pool_backward(const PoolSpec& s, const void* dy, const uint8_t* index, void* dx) override {
    inner_.pool_backward(s, dy, index, dx);
  }
  void batch_norm_forward(const BatchNormSpec& s, const void* x, const void* gamma, const void* beta,
                          const void* residual, void* y, void* running_mean, void* running_variance, void* saved_mean,
                          void* saved_rstd) override {
    inner_.batch_norm_forward(s, x, gamma, beta, residual, y, running_mean, running_variance, saved_mean, saved_rstd);
  }
  void batch_norm_backward(const BatchNormSpec& s, const void* dy, const void* x, const void* y, const void* gamma,
                           const void* saved_mean, const void* saved_rstd, void* dx, void* dresidual, void* dgamma,
                           void* dbeta) override {
    inner_.batch_norm_backward(s, dy, x, y, gamma, saved_mean, saved_rstd, dx, dresidual, dgamma, dbeta);
  }
  void layer_norm_forward(const LayerNormSpec& s, const void* x, const void* residual, const void* gamma,
                          const void* beta, void* sum, void* y, void* saved_mean, void* saved_rstd) override {
    inner_.layer_norm_forward(s, x, residual, gamma, beta, sum, y, saved_mean, saved_rstd);
  }
  void layer_norm_backward(const LayerNormSpec& s, const void* dy, const void* x, const void* gamma,
                           const void* saved_mean, const void* saved_rstd, const void* dx_add, void* dx, void* dgamma,
                           void* dbeta) override {
    inner_.layer_norm_backward(s, dy, x, gamma, saved_mean, saved_rstd, dx_add, dx, dgamma, dbeta);
  }
  void softmax_forward(const RowsSpec& s, const void* x, void* y) override { inner_.softmax_forward(s, x, y); }
  void softmax_backward(const RowsSpec& s, const void* dy, const void* y, void* dx) override {
    inner_.softmax_backward(s, dy, y, dx);
  }
  void cross_entropy(const RowsSpec& s, const void* logits, const int32_t* targets, const TrainingState* state,
                     void* losses, void* dlogits) override {
    inner_.cross_entropy(s, logits, targets, state, losses, dlogits);
  }
  void embedding_forward(const EmbeddingSpec& s, const int32_t* tokens, const void* token_table,
                         const void* position_table, void* y) override {
    inner_.embedding_forward(s, tokens, token_table, position_table, y);
  }
  int64_t embedding_workspace_bytes(const EmbeddingSpec& s) const override {
    return inner_.embedding_workspace_bytes(s);
  }
  void embedding_backward(const EmbeddingSpec& s, const int32_t* tokens, const void* dy, void* dtoken, void* dposition,
                          void* workspace) override {
    inner_.embedding_backward(s, tokens, dy, dtoken, dposition, workspace);
  }
  int64_t attention_workspace_bytes(const AttentionSpec& s, bool backward) const override {
    return inner_.attention_workspace_bytes(s, backward);
  }
  void attention_forward(const AttentionSpec& s, const void* qkv, void* y, void* log_sum_exp,
                         void* workspace) override {
    inner_.attention_forward(s, qkv, y, log_sum_exp, workspace);
  }
  void attention_backward(const AttentionSpec& s, const void* qkv, const void* y, const void* dy,
                          const void* log_sum_exp, void* dqkv, void* workspace) override {
    inner_.attention_backward(s, qkv, y, dy, log_sum_exp, dqkv, workspace);
  }
  int64_t update_workspace_bytes(const GradientSpec& s) const override { return inner_.update_workspace_bytes(s); }
  void prepare_update(const GradientSpec& s, const void* gradient, TrainingState* state, void* workspace) override {
    inner_.prepare_update(s, gradient, state, workspace);
  }
  void sgd_step(const SgdSpec& s, const TrainingState* state, const void* gradient, void* master, void* momentum,
                void* parameter) override {
    inner_.sgd_step(s, state, gradient, master, momentum, parameter);
  }
  void adamw_step(const AdamWSpec& s, const TrainingState* state, const void* gradient, void* master, void* m, void* v,
                  void* parameter) override {
    inner_.adamw_step(s, state, gradient, master, m, v, parameter);
  }
  Support supports_fma_unit(FmaUnit unit, Precision precision) const override {
    return inner_.supports_fma_unit(unit, precision);
  }
  double fma_peak_flops(const FmaPeakSpec& s) const override { return inner_.fma_peak_flops(s); }
  int64_t fma_peak_outputs(const FmaPeakSpec& s) const override { return inner_.fma_peak_outputs(s); }
  void fma_peak(const FmaPeakSpec& s, void* out) override { inner_.fma_peak(s, out); }

 private:
  Ops& inner_;
};

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)), info_(inner_->info()) {}

  /// Replaces the ops (and the captured ones); without it the inner device's are used.
  void set_ops(std::unique_ptr<Ops> ops) { ops_ = std::move(ops); }
  void set_info(DeviceInfo info) { info_ = std::move(info); }
  Device& inner() const { return *inner_; }

  const DeviceInfo& info() const override { return info_; }
  Ops& ops() override { return ops_ ? *ops_ : inner_->ops(); }
  Clock& clock() override { return inner_->clock(); }
  void* allocate(size_t bytes) override { return inner_->allocate(bytes); }
  void deallocate(void* pointer) noexcept override { inner_->deallocate(pointer); }
  void* allocate_host(size_t bytes, HostMemory kind) override { return inner_->allocate_host(bytes, kind); }
  void deallocate_host(void* pointer, HostMemory kind) noexcept override { inner_->deallocate_host(pointer, kind); }
  int64_t free_memory() const override { return inner_->free_memory(); }
  void copy_to_device(void* to, const void* from, size_t bytes) override { inner_->copy_to_device(to, from, bytes); }
  void copy_to_host(void* to, const void* from, size_t bytes) override { inner_->copy_to_host(to, from, bytes); }
  void copy_on_device(void* to, const void* from, size_t bytes) override { inner_->copy_on_device(to, from, bytes); }
  void set_bytes(void* to, uint8_t value, size_t bytes) override { inner_->set_bytes(to, value, bytes); }
  void start_upload(int slot, void* to, const void* from, size_t bytes) override {
    inner_->start_upload(slot, to, from, bytes);
  }
  void finish_upload(int slot) override { inner_->finish_upload(slot); }
  void release_upload(int slot) override { inner_->release_upload(slot); }
  bool uploads_overlap() const override { return inner_->uploads_overlap(); }
  void synchronize() override { inner_->synchronize(); }
  Support supports_graphs() const override { return inner_->supports_graphs(); }
  std::unique_ptr<Graph> capture(const std::function<void(Ops&)>& body) override { return inner_->capture(body); }
  int64_t allocation_count() const override { return inner_->allocation_count(); }

 private:
  std::unique_ptr<Device> inner_;
  std::unique_ptr<Ops> ops_;
  DeviceInfo info_;
};

}  // namespace dlbench::test
