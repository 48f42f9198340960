// The highest rate of multiply-adds, per execution unit. Twin: src/gpu/peak.cu.

#include "core/base/error.h"
#include "cpu/ops.h"
#include "cpu/peak_kernels.h"

namespace dlbench::cpu {

namespace {

constexpr int64_t kMaxIterations = int64_t{1} << 24;  // f32 still counts exactly

/// nullptr when this processor or this precision hasn't the unit.
const PeakKernel* kernel_of(FmaUnit unit, Precision precision) {
  if (precision == Precision::fp16 || precision == Precision::tf32) return nullptr;
  const bool fp64 = precision == Precision::fp64, bf16 = precision == Precision::bf16;
#if defined(DLB_X86_KERNELS)
  switch (unit) {
    case FmaUnit::vector_auto:
      if (bf16) return kernel_of(FmaUnit::dot_product, precision);
      return kernel_of(has_avx512() ? FmaUnit::avx512 : has_avx2() ? FmaUnit::avx2 : FmaUnit::sse2, precision);
    case FmaUnit::scalar:
      return bf16 ? nullptr : fp64 ? &kPeakScalarF64 : &kPeakScalarF32;
    case FmaUnit::sse2:
      return bf16 ? nullptr : fp64 ? &kPeakSse2F64 : &kPeakSse2F32;
    case FmaUnit::avx2:
      return bf16 || !has_avx2() ? nullptr : fp64 ? &kPeakAvx2F64 : &kPeakAvx2F32;
    case FmaUnit::avx512:
      return bf16 || !has_avx512() ? nullptr : fp64 ? &kPeakAvx512F64 : &kPeakAvx512F32;
    case FmaUnit::dot_product:
      return bf16 && has_avx512_bf16() ? &kPeakDotBf16 : nullptr;
    case FmaUnit::cuda_core:
      return nullptr;
  }
#else
  switch (unit) {
    case FmaUnit::vector_auto:
    case FmaUnit::scalar:
      return bf16 ? nullptr : fp64 ? &kPeakScalarF64 : &kPeakScalarF32;
    case FmaUnit::sse2:
    case FmaUnit::avx2:
    case FmaUnit::avx512:
    case FmaUnit::dot_product:
    case FmaUnit::cuda_core:
      return nullptr;
  }
#endif
  return nullptr;
}

const PeakKernel& required_kernel(const CpuOps& ops, const FmaPeakSpec& s) {
  const Support support = ops.supports_fma_unit(s.unit, s.precision);
  if (support.level == SupportLevel::no) {
    throw UnsupportedError("cpu: fma_peak on " + std::string(to_string(s.unit)) + " in " +
                           std::string(to_string(s.precision)) + ": " + support.reason);
  }
  if (s.iterations < 0 || s.iterations > kMaxIterations) {
    throw std::invalid_argument("fma_peak: iterations must be between 0 and 2^24");
  }
  return *kernel_of(s.unit, s.precision);
}

}  // namespace

Support CpuOps::supports_fma_unit(FmaUnit unit, Precision precision) const {
  if (kernel_of(unit, precision) != nullptr) return {};
  switch (precision) {
    case Precision::fp16:
      return {SupportLevel::no, "no unit of a CPU supported here multiplies and adds in fp16"};
    case Precision::tf32:
      return {SupportLevel::no, "no CPU multiplies in tf32"};
    case Precision::bf16:
      return {SupportLevel::no, "bf16 products exist on the dot_product unit only, with AVX512-BF16"};
    case Precision::fp64:
    case Precision::fp32:
      break;
  }
  return {SupportLevel::no,
          "this processor has no " + std::string(to_string(unit)) + " unit for " + std::string(to_string(precision))};
}

double CpuOps::fma_peak_flops(const FmaPeakSpec& s) const {
  const PeakKernel& k = required_kernel(*this, s);
  return static_cast<double>(s.iterations) * k.chains * k.lanes * k.flops_per_lane * team_.threads();
}

int64_t CpuOps::fma_peak_outputs(const FmaPeakSpec& s) const {
  const PeakKernel& k = required_kernel(*this, s);
  return int64_t{k.chains} * k.lanes * team_.threads();
}

void CpuOps::fma_peak(const FmaPeakSpec& s, void* out) {
  const PeakKernel& k = required_kernel(*this, s);
  const int64_t per_thread = int64_t{k.chains} * k.lanes;
  volatile float one_source = 1.0f;
  float one = one_source;
  if (s.precision == Precision::bf16) {
    const uint32_t pair = 0x3F803F80u;  // two bf16 ones in the bits of a float
    __builtin_memcpy(&one, &pair, sizeof one);
  }
  team_.run([&](int part) { k.run(s.iterations, one, static_cast<float*>(out) + part * per_thread); });
}

}  // namespace dlbench::cpu
