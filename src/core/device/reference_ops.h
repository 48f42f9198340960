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
  Support supports_fma_unit(FmaUnit unit, Precision precision) const override;
  double fma_peak_flops(const FmaPeakSpec& spec) const override;
  int64_t fma_peak_outputs(const FmaPeakSpec& spec) const override;
  void fma_peak(const FmaPeakSpec& spec, void* out) override;

 private:
  ReferenceOptions options_;
};

}  // namespace dlbench
