// DLB_HD: marks a function that is compiled for the host and, under nvcc, for the device as well.
//
// Why: the per-element maths of both sides is written once (src/core/math). Outside nvcc the macro needs no CUDA
// toolkit, so src/core builds anywhere. Promises: such a function is always inlined. A file compiled for AVX-512 and
// one compiled for the baseline therefore never share one out-of-line copy, of which the linker would keep either (and
// run it on a machine that lacks the ISA).
#pragma once

#if defined(__CUDACC__)
#define DLB_HD __host__ __device__ __forceinline__
#else
#define DLB_HD inline __attribute__((always_inline))
#endif
