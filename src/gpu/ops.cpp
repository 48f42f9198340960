// What the files of GpuOps share: construction and what the hardware supports. Twin of the contract: src/cpu/ops.h.
#include "gpu/ops.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "gpu/gemm.h"

namespace dlbench::gpu {

GpuOps::GpuOps(cudaStream_t stream, const Blas& blas, Scratch scratch, Hardware hardware)
    : stream_(stream),
      blas_(blas),
      scratch_(scratch),
      hardware_(hardware),
      gemm_plans_(std::make_unique<GemmPlans>()) {}

GpuOps::~GpuOps() = default;

namespace {

/// Compute capabilities: CUDA C++ Programming Guide, "Features and Technical Specifications"; cuBLAS documentation,
/// cublasLtMatmul: bf16 and TF32 need 8.0, fp16 tensor cores 7.0 (every architecture this backend is built for).
Support matrix_support(Precision precision, int compute_capability) {
  switch (precision) {
    case Precision::fp64:
    case Precision::fp32:
    case Precision::fp16:
      return {};
    case Precision::tf32:
    case Precision::bf16:
      if (compute_capability >= 80) return {};
      return {SupportLevel::no,
              fmt::format("{} matrix products need a GPU of compute capability 8.0 or newer; this one has {}.{}",
                          to_string(precision), compute_capability / 10, compute_capability % 10)};
  }
  throw std::invalid_argument("not a precision");
}

}  // namespace

Support GpuOps::supports(Op op, Precision precision) const {
  switch (op) {
    case Op::gemm:
    case Op::conv2d_forward:
    case Op::conv2d_backward_data:
    case Op::conv2d_backward_weights:
    case Op::attention_forward:
    case Op::attention_backward:
      return matrix_support(precision, hardware_.compute_capability);
    case Op::fma_peak:
      return supports_fma_unit(FmaUnit::vector_auto, precision);
    case Op::noop:
    case Op::fill_normal:
    case Op::copy:
    case Op::convert:
    case Op::triad:
    case Op::axpy:
    case Op::bias:
    case Op::relu_forward:
    case Op::relu_backward:
    case Op::gelu_forward:
    case Op::gelu_backward:
    case Op::reduce:
    case Op::dot:
    case Op::gemv:
    case Op::pool_forward:
    case Op::pool_backward:
    case Op::batch_norm_forward:
    case Op::batch_norm_backward:
    case Op::layer_norm_forward:
    case Op::layer_norm_backward:
    case Op::softmax_forward:
    case Op::softmax_backward:
    case Op::cross_entropy:
    case Op::embedding_forward:
    case Op::embedding_backward:
    case Op::prepare_update:
    case Op::sgd_step:
    case Op::adamw_step:
      // Kernels over the storage type, which every capability loads and converts.
      return {};
  }
  throw std::invalid_argument("not an op");
}

void GpuOps::require(Op op, Precision precision) const {
  const Support support = supports(op, precision);
  if (support.level == SupportLevel::no) throw UnsupportedError(support.reason);
}

void throw_not_a_float_type(DType type, const char* what) {
  throw UnsupportedError(
      fmt::format("{}: the GPU backend has no arithmetic on elements of type {}", what, to_string(type)));
}

}  // namespace dlbench::gpu
