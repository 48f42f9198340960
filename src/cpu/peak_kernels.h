// Chains of multiply-adds, one function per execution unit (see kernels.h for why there is no twin).
//
// Every chain counts: x becomes fma(x, one, one), so that its value after `rounds` rounds is known exactly and a
// compiler that removed a round would be caught. Chains x lanes accumulators, enough of them to hide the latency of the
// unit.
#pragma once

#include <cstdint>

namespace dlbench::cpu {

bool has_avx2();
bool has_avx512();
bool has_avx512_bf16();

/// `one` is 1, unknown to the compiler. `out` receives chains * lanes values.
struct PeakKernel {
  int chains, lanes;
  int flops_per_lane;  ///< per round: 2, or 4 where one instruction adds two products
  void (*run)(int64_t rounds, float one, float* out);
};

extern const PeakKernel kPeakScalarF32, kPeakScalarF64;
#if defined(DLB_X86_KERNELS)
extern const PeakKernel kPeakSse2F32, kPeakSse2F64, kPeakAvx2F32, kPeakAvx2F64, kPeakAvx512F32, kPeakAvx512F64,
    kPeakDotBf16;
#endif

}  // namespace dlbench::cpu
