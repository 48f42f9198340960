// DLB_HD: marks a function that is compiled for the host and, under nvcc, for the device as well.
//
// Why: the per-element maths of both sides is written once (src/core/math). Outside nvcc the macro is empty,
// so this header needs no CUDA toolkit and src/core builds anywhere.
#pragma once

#if defined(__CUDACC__)
#define DLB_HD __host__ __device__ __forceinline__
#else
#define DLB_HD inline
#endif
