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
