// fma_peak: chains of fused multiply-adds in registers, on the CUDA cores. Twin: src/cpu/peak.cpp.
//
// Matrix units are measured with gemm: the vendor library is the only portable way to keep them busy.
// A chain can't be shortened by the compiler: its start and its factor are run-time values, and chains of one thread
// start from products with a run-time zero, so they aren't known to be equal.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <string>

#include "core/base/error.h"
#include "gpu/parallel.cuh"

namespace dlbench::gpu {
namespace {

constexpr int kChains = 8;       // of a thread: more than the 4-cycle latency of an FMA on a 4-warp scheduler needs
constexpr int kBlocksPerSm = 4;  // 1024 threads: what every capability holds at once (7.5 holds no more)

/// One register with one chain.
template <typename T>
struct Chain {
  static constexpr int kValues = 1;
  static constexpr int64_t kPeriod = int64_t{1} << 24;  // rounds a chain counts before it starts again
  T x;
  __device__ static Chain start(float value) { return {static_cast<T>(value)}; }
  __device__ void round(const Chain& one) { x = fma_of(x, one.x, one.x); }
  __device__ float value(int) const { return static_cast<float>(x); }

 private:
  __device__ static float fma_of(float a, float b, float c) { return fmaf(a, b, c); }
  __device__ static double fma_of(double a, double b, double c) { return fma(a, b, c); }
};

/// One register with two 16-bit chains. The period is what the significand counts exactly: 2^11 in fp16, 2^8 in bf16.
#if defined(__CUDACC__)
struct HalfChain {
  static constexpr int kValues = 2;
  static constexpr int64_t kPeriod = 2048;
  __half2 x;
  __device__ static HalfChain start(float value) { return {__float2half2_rn(value)}; }
  __device__ void round(const HalfChain& one) { x = __hfma2(x, one.x, one.x); }
  __device__ float value(int i) const { return i == 0 ? __low2float(x) : __high2float(x); }
};
struct Bfloat16Chain {
  static constexpr int kValues = 2;
  static constexpr int64_t kPeriod = 256;
  __nv_bfloat162 x;
  __device__ static Bfloat16Chain start(float value) { return {__float2bfloat162_rn(value)}; }
  // Older capabilities have no such instruction: supports_fma_unit refuses them, and out[i] would show it.
  __device__ void round([[maybe_unused]] const Bfloat16Chain& one) {
#if __CUDA_ARCH__ >= 800
    x = __hfma2(x, one.x, one.x);
#endif
  }
  __device__ float value(int i) const {
    return i == 0 ? __low2float(x) : __high2float(x);
  }
};
#else
/// The vendor's paired arithmetic exists for nvcc only; elsewhere a pair is two numbers, rounded after each step.
template <typename T, int64_t period>
struct PairChain {
  static constexpr int kValues = 2;
  static constexpr int64_t kPeriod = period;
  T x[2];
  static PairChain start(float value) { return {{from_float<T>(value), from_float<T>(value)}}; }
  void round(const PairChain& one) {
    for (int i = 0; i < 2; ++i) x[i] = from_float<T>(fmaf(to_float(x[i]), to_float(one.x[i]), to_float(one.x[i])));
  }
  float value(int i) const { return to_float(x[i]); }
};
using HalfChain = PairChain<float16, 2048>;
using Bfloat16Chain = PairChain<bfloat16, 256>;
#endif

/// `one` and `zero` are what they are called, but the compiler doesn't know. Chains that count in 16 bits report their
/// count modulo 2048 (ops.h); `total` is exact up to 2^24.
template <typename C>
__global__ void fma_peak_kernel(int64_t iterations, float one, float zero, float* out) {
  const C step = C::start(one);
  float total[kChains * C::kValues] = {};
  for (int64_t left = iterations; left > 0; left -= C::kPeriod) {
    C chain[kChains];
    DLB_UNROLL
    for (int c = 0; c < kChains; ++c) chain[c] = C::start(zero * static_cast<float>(c));
    const int rounds = static_cast<int>(left < C::kPeriod ? left : C::kPeriod);
#if defined(__CUDACC__)
#pragma unroll 8
#endif
    for (int r = 0; r < rounds; ++r) {
      DLB_UNROLL
      for (int c = 0; c < kChains; ++c) chain[c].round(step);
    }
    DLB_UNROLL
    for (int i = 0; i < kChains * C::kValues; ++i) total[i] += chain[i / C::kValues].value(i % C::kValues);
  }
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int i = 0; i < kChains * C::kValues; ++i) {
    const float modulo = C::kValues == 2 ? total[i] - 2048.0f * floorf(total[i] / 2048.0f) : total[i];
    out[thread * (kChains * C::kValues) + i] = modulo;
  }
}

template <typename C>
void run_chains(cudaStream_t stream, int multiprocessors, int64_t iterations, float* out) {
  launch(stream, dim3(static_cast<unsigned>(multiprocessors * kBlocksPerSm)), dim3(kThreads), 0, fma_peak_kernel<C>,
         iterations, 1.0f, 0.0f, out);
}

int64_t values_of_a_chain(Precision precision) {
  switch (precision) {
    case Precision::fp64:
    case Precision::fp32:
    case Precision::tf32:
      return 1;
    case Precision::bf16:
    case Precision::fp16:
      return 2;
  }
  throw std::invalid_argument("not a precision");
}

}  // namespace

Support GpuOps::supports_fma_unit(FmaUnit unit, Precision precision) const {
  switch (unit) {
    case FmaUnit::vector_auto:
    case FmaUnit::cuda_core:
      break;
    case FmaUnit::scalar:
    case FmaUnit::sse2:
    case FmaUnit::avx2:
    case FmaUnit::avx512:
    case FmaUnit::dot_product:
      return {SupportLevel::no, std::string(to_string(unit)) + " is an instruction set of CPUs; a GPU has cuda_core"};
  }
  switch (precision) {
    case Precision::fp64:
    case Precision::fp32:
    case Precision::fp16:
      return {};
    case Precision::tf32:
      return {SupportLevel::no, "tf32 exists in matrix units only: measure it with the gemm workload"};
    case Precision::bf16:
      if (hardware_.compute_capability >= 80) return {};
      return {SupportLevel::no, "bf16 multiply-adds need compute capability 8.0 or newer; this GPU has " +
                                    std::to_string(hardware_.compute_capability / 10) + "." +
                                    std::to_string(hardware_.compute_capability % 10)};
  }
  throw std::invalid_argument("not a precision");
}

int64_t GpuOps::fma_peak_outputs(const FmaPeakSpec& spec) const {
  return static_cast<int64_t>(hardware_.multiprocessors) * kBlocksPerSm * kThreads * kChains *
         values_of_a_chain(spec.precision);
}

double GpuOps::fma_peak_flops(const FmaPeakSpec& spec) const {
  return 2.0 * static_cast<double>(spec.iterations) * static_cast<double>(fma_peak_outputs(spec));
}

void GpuOps::fma_peak(const FmaPeakSpec& spec, void* out) {
  require_valid(spec);
  const Support support = supports_fma_unit(spec.unit, spec.precision);
  if (support.level == SupportLevel::no) throw UnsupportedError(support.reason);
  float* values = static_cast<float*>(out);
  switch (spec.precision) {
    case Precision::fp64:
      return run_chains<Chain<double>>(stream_, hardware_.multiprocessors, spec.iterations, values);
    case Precision::fp32:
      return run_chains<Chain<float>>(stream_, hardware_.multiprocessors, spec.iterations, values);
    case Precision::fp16:
      return run_chains<HalfChain>(stream_, hardware_.multiprocessors, spec.iterations, values);
    case Precision::bf16:
      return run_chains<Bfloat16Chain>(stream_, hardware_.multiprocessors, spec.iterations, values);
    case Precision::tf32:
      break;  // refused above
  }
  throw std::invalid_argument("fma_peak: not a precision of the CUDA cores");
}

}  // namespace dlbench::gpu
