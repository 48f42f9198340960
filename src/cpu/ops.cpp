// What the files of CpuOps share: construction and what the processor supports. Twin: src/gpu/ops.cpp.
#include "cpu/ops.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "cpu/peak_kernels.h"

namespace dlbench::cpu {

void require_support(const Support& support, Op op, Precision precision) {
  if (support.level == SupportLevel::no) {
    throw UnsupportedError("cpu: " + std::string(to_string(op)) + " in " + std::string(to_string(precision)) + ": " +
                           support.reason);
  }
}

namespace {
bool multiplies_matrices(Op op) {
  return op == Op::gemm || op == Op::gemv || op == Op::conv2d_forward || op == Op::conv2d_backward_data ||
         op == Op::conv2d_backward_weights || op == Op::attention_forward || op == Op::attention_backward;
}
}  // namespace

CpuOps::CpuOps(Team& team, const Blas& blas, const CpuThresholds& thresholds, int64_t& allocations)
    : team_(team),
      blas_(blas),
      thresholds_(thresholds),
      allocations_(allocations),
      isa_(vector_kernels()),
      gemm_(std::make_unique<GemmEngine>(team, blas, allocations)),
      conv_(std::make_unique<ConvEngine>(team, isa_, allocations)),
      images_(image_kernels()) {}

CpuOps::~CpuOps() = default;

Support CpuOps::supports(Op op, Precision precision) const {
  if (op == Op::noop) return {};
  switch (precision) {
    case Precision::fp64:
    case Precision::fp32:
      return {};
    case Precision::tf32:
      // A precision of matrix products only: elsewhere it is fp32.
      if (!multiplies_matrices(op)) return {};
      return {SupportLevel::no, "no CPU multiplies in tf32; use fp32 or bf16"};
    case Precision::bf16:
    case Precision::fp16:
      if (op == Op::copy || op == Op::fill_normal || op == Op::convert) return {};
      if (op == Op::fma_peak) {
        if (precision == Precision::bf16 && has_avx512_bf16()) return {};
        return {SupportLevel::no,
                precision == Precision::bf16 ? "needs AVX512-BF16" : "no unit multiplies and adds fp16 here"};
      }
      return {SupportLevel::emulated, "converted to fp32 in registers or tiles, computed in fp32, rounded to " +
                                          std::string(to_string(precision)) + " at the end"};
  }
  return {SupportLevel::no, "unknown precision"};
}

const VectorKernels& CpuOps::kernels(Op op, Precision precision) const {
  require_support(supports(op, precision), op, precision);
  return isa_.of[element_index(storage_of(precision))];
}

const SequenceKernels& CpuOps::sequence(Op op, Precision precision) const {
  require_support(supports(op, precision), op, precision);
  return sequence_kernels(element_index(storage_of(precision)));
}

bool CpuOps::streams_rows(int64_t bytes, const void* y, int64_t row_bytes) const {
  return streams(bytes) && row_bytes % 64 == 0 && reinterpret_cast<uintptr_t>(y) % 64 == 0;
}

int64_t CpuOps::grain(int64_t bytes_per_item) const {
  return std::max<int64_t>(1, thresholds_.parallel_grain_bytes / std::max<int64_t>(1, bytes_per_item));
}

void* CpuOps::scratch(int64_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_ = std::make_unique<std::byte[]>(static_cast<size_t>(bytes));
    scratch_bytes_ = bytes;
    ++allocations_;
  }
  return scratch_.get();
}

}  // namespace dlbench::cpu
