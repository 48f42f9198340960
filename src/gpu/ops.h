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
};

/// Device memory for the partial results of reductions; lives as long as the ops.
struct Scratch {
  void* data = nullptr;
  size_t bytes = 0;
};

class GemmPlans;

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
  // peak.cu
  Support supports_fma_unit(FmaUnit unit, Precision precision) const override;
  double fma_peak_flops(const FmaPeakSpec& spec) const override;
  int64_t fma_peak_outputs(const FmaPeakSpec& spec) const override;
  void fma_peak(const FmaPeakSpec& spec, void* out) override;

 private:
  /// @throws UnsupportedError with the reason of `supports`.
  void require(Op op, Precision precision) const;

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
