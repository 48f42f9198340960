// The ops of the meta device: what each call declares is handed on; nothing is computed.
//
// Why `text` is a function: a run makes millions of calls, and their readable form is rarely wanted.
#pragma once

#include <functional>
#include <string>

#include "core/device/meta_device.h"

namespace dlbench {

class MetaOps final : public Ops {
 public:
  /// Called once per op; `text` gives OpRecord::spec.
  using Run =
      std::function<void(Op op, Precision precision, const Cost& cost, const std::function<std::string()>& text)>;

  MetaOps(Side side, Run run) : side_(side), run_(std::move(run)) {}

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
  Support supports_fma_unit(FmaUnit unit, Precision precision) const override;
  double fma_peak_flops(const FmaPeakSpec& spec) const override;
  int64_t fma_peak_outputs(const FmaPeakSpec& spec) const override;
  void fma_peak(const FmaPeakSpec& spec, void* out) override;

 private:
  void vector_op(Op op, const VectorSpec& spec);
  void record(Op op, Precision precision, const Cost& cost, const std::function<std::string()>& text);

  Side side_;
  Run run_;
};

}  // namespace dlbench
