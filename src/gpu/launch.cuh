// launch: the one way a kernel is started, and the words a kernel may use.
//
// Why: every launch is checked, and the same source compiles without nvcc: with -DDLB_CUDA_EMULATION
// (tests/cuda_emulation) a host compiler runs the kernels in host memory. Kernels therefore use only: threadIdx,
// blockIdx, blockDim, gridDim (x, y, z), DLB_SHARED, DLB_DYNAMIC_SHARED, __syncthreads, __syncthreads_or, __syncwarp,
// __ballot_sync, __shfl_down_sync, __shfl_xor_sync and __ffs. No inline PTX, no wmma, no cooperative groups, no
// textures. Promises: launch(stream, grid, block, shared_bytes, kernel, args...) converts each argument to the kernel's
// parameter type, enqueues, and throws when the launch is refused. A grid with a zero extent launches nothing.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "gpu/check.h"

#if defined(__CUDACC__)

// Shared memory of the block, as `type name[count]`.
#define DLB_SHARED(type, name, count) __shared__ type name[count]
// The dynamic shared memory of the block, 16-byte aligned, as `type* name`.
#define DLB_DYNAMIC_SHARED(type, name)                                 \
  extern __shared__ __align__(16) unsigned char dlb_dynamic_shared_[]; \
  type* name = reinterpret_cast<type*>(dlb_dynamic_shared_)
// Before a loop: unroll it.
#define DLB_UNROLL _Pragma("unroll")

#elif defined(DLB_CUDA_EMULATION)

// Brings the words above, DLB_SHARED, and in namespace dlbench::cuda_emulation dynamic_shared() and launch_kernel().
#include "cuda_emulation/emulation.h"
#define DLB_DYNAMIC_SHARED(type, name) type* name = static_cast<type*>(::dlbench::cuda_emulation::dynamic_shared())
#define DLB_UNROLL

#else
#error "Kernels are compiled by nvcc, or by a host compiler with -DDLB_CUDA_EMULATION and tests/ on the include path."
#endif

namespace dlbench::gpu {

template <typename... Parameters, typename... Arguments>
void launch(cudaStream_t stream, dim3 grid, dim3 block, size_t shared_bytes, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
#if defined(__CUDACC__)
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  DLB_CUDA(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
#else
  DLB_CUDA(::dlbench::cuda_emulation::launch_kernel(stream, grid, block, shared_bytes, "kernel", kernel,
                                                    static_cast<Parameters>(arguments)...));
#endif
}

}  // namespace dlbench::gpu
