// The chains of peak_kernels.h, compiled once per instruction set: each compilation defines the units of its own ISA.
//
// Accumulators are named by an index known at compile time and unrolled completely, so that they stay in registers
// (-O3).
#include "cpu/peak_kernels.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace dlbench::cpu {
namespace {

/// Eight chains hide a latency of 4 cycles on two units; twelve leave room for units that are wider or slower.
constexpr int kChains = 12;

template <typename Unit>
void run(int64_t rounds, float one_value, float* out) {
  typename Unit::Value x[kChains];
  const typename Unit::Value one = Unit::splat(one_value);
  // Chains that start from the same known value are equal in every round, and the compiler keeps only one of them: each
  // start is read anew from where the compiler can't see.
  volatile float start = 0.0f;
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c) x[c] = Unit::splat(start);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) x[c] = Unit::fma(x[c], one);
  }
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c) Unit::store(out + c * Unit::kLanes, x[c]);
}

template <typename Unit>
constexpr PeakKernel kernel(int flops_per_lane = 2) {
  return {kChains, Unit::kLanes, flops_per_lane, run<Unit>};
}

#if defined(DLB_PEAK_AVX512BF16)

/// One instruction adds two products of bf16 pairs to each fp32 lane: x += 1*1 + 1*1.
struct DotBf16 {
  using Value = __m512;
  static constexpr int kLanes = 16;
  static Value splat(float v) { return _mm512_set1_ps(v); }
  static Value fma(Value x, Value one) {
    const __m512bh ones = reinterpret_cast<__m512bh>(one);
    return _mm512_dpbf16_ps(x, ones, ones);
  }
  static void store(float* out, Value x) { _mm512_storeu_ps(out, x); }
};

#elif defined(__AVX512F__)

struct Avx512F32 {
  using Value = __m512;
  static constexpr int kLanes = 16;
  static Value splat(float v) { return _mm512_set1_ps(v); }
  static Value fma(Value x, Value one) { return _mm512_fmadd_ps(x, one, one); }
  static void store(float* out, Value x) { _mm512_storeu_ps(out, x); }
};
struct Avx512F64 {
  using Value = __m512d;
  static constexpr int kLanes = 8;
  static Value splat(float v) { return _mm512_set1_pd(static_cast<double>(v)); }
  static Value fma(Value x, Value one) { return _mm512_fmadd_pd(x, one, one); }
  static void store(float* out, Value x) { _mm256_storeu_ps(out, _mm512_cvtpd_ps(x)); }
};

#elif defined(__AVX2__)

struct Avx2F32 {
  using Value = __m256;
  static constexpr int kLanes = 8;
  static Value splat(float v) { return _mm256_set1_ps(v); }
  static Value fma(Value x, Value one) { return _mm256_fmadd_ps(x, one, one); }
  static void store(float* out, Value x) { _mm256_storeu_ps(out, x); }
};
struct Avx2F64 {
  using Value = __m256d;
  static constexpr int kLanes = 4;
  static Value splat(float v) { return _mm256_set1_pd(static_cast<double>(v)); }
  static Value fma(Value x, Value one) { return _mm256_fmadd_pd(x, one, one); }
  static void store(float* out, Value x) { _mm_storeu_ps(out, _mm256_cvtpd_ps(x)); }
};

#else

#if defined(__SSE2__)
// Without FMA a round is a multiplication and an addition; both are counted, and exact here.
struct Sse2F32 {
  using Value = __m128;
  static constexpr int kLanes = 4;
  static Value splat(float v) { return _mm_set1_ps(v); }
  static Value fma(Value x, Value one) { return _mm_add_ps(_mm_mul_ps(x, one), one); }
  static void store(float* out, Value x) { _mm_storeu_ps(out, x); }
};
struct Sse2F64 {
  using Value = __m128d;
  static constexpr int kLanes = 2;
  static Value splat(float v) { return _mm_set1_pd(static_cast<double>(v)); }
  static Value fma(Value x, Value one) { return _mm_add_pd(_mm_mul_pd(x, one), one); }
  static void store(float* out, Value x) { _mm_storel_pi(reinterpret_cast<__m64*>(out), _mm_cvtpd_ps(x)); }
};
struct ScalarF32 {
  using Value = __m128;
  static constexpr int kLanes = 1;
  static Value splat(float v) { return _mm_set_ss(v); }
  static Value fma(Value x, Value one) { return _mm_add_ss(_mm_mul_ss(x, one), one); }
  static void store(float* out, Value x) { _mm_store_ss(out, x); }
};
struct ScalarF64 {
  using Value = __m128d;
  static constexpr int kLanes = 1;
  static Value splat(float v) { return _mm_set_sd(static_cast<double>(v)); }
  static Value fma(Value x, Value one) { return _mm_add_sd(_mm_mul_sd(x, one), one); }
  static void store(float* out, Value x) { *out = static_cast<float>(_mm_cvtsd_f64(x)); }
};
#else
template <typename T>
struct ScalarUnit {
  using Value = T;
  static constexpr int kLanes = 1;
  static Value splat(float v) { return static_cast<T>(v); }
  static Value fma(Value x, Value one) { return x * one + one; }
  static void store(float* out, Value x) { *out = static_cast<float>(x); }
};
using ScalarF32 = ScalarUnit<float>;
using ScalarF64 = ScalarUnit<double>;
#endif

#endif

}  // namespace

#if defined(DLB_PEAK_AVX512BF16)
const PeakKernel kPeakDotBf16 = kernel<DotBf16>(4);
#elif defined(__AVX512F__)
const PeakKernel kPeakAvx512F32 = kernel<Avx512F32>(), kPeakAvx512F64 = kernel<Avx512F64>();
#elif defined(__AVX2__)
const PeakKernel kPeakAvx2F32 = kernel<Avx2F32>(), kPeakAvx2F64 = kernel<Avx2F64>();
#else
const PeakKernel kPeakScalarF32 = kernel<ScalarF32>(), kPeakScalarF64 = kernel<ScalarF64>();
#if defined(__SSE2__)
const PeakKernel kPeakSse2F32 = kernel<Sse2F32>(), kPeakSse2F64 = kernel<Sse2F64>();
#endif
#endif

}  // namespace dlbench::cpu
