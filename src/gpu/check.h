// Checks for every call into the CUDA runtime, cuBLAS and cuBLASLt: DLB_CUDA(call), DLB_CUBLAS(call).
//
// Why: an unchecked asynchronous error surfaces somewhere else, or never.
// Promises: a failed call throws with the expression, the error's name and text, and file:line. Out of memory becomes
// OutOfMemoryError; an error that destroys the context ("sticky": every later call returns it too) becomes
// DeviceLostError; anything else Error. DLB_CUDA_LOG is for destructors: it writes to stderr and never throws.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

namespace dlbench::gpu {

/// Whether `error` leaves the context unusable (CUDA runtime API, "Error Handling": the errors that say "the context
/// cannot be used" or "the process must be terminated and relaunched").
bool is_sticky(cudaError_t error);

[[noreturn]] void throw_cuda_error(cudaError_t error, const char* expression, const char* file, int line);
[[noreturn]] void throw_cublas_error(cublasStatus_t status, const char* expression, const char* file, int line);
void log_cuda_error(cudaError_t error, const char* expression, const char* file, int line) noexcept;

}  // namespace dlbench::gpu

#define DLB_CUDA(call)                                                         \
  do {                                                                         \
    const cudaError_t dlb_error_ = (call);                                     \
    if (dlb_error_ != cudaSuccess) {                                           \
      ::dlbench::gpu::throw_cuda_error(dlb_error_, #call, __FILE__, __LINE__); \
    }                                                                          \
  } while (false)

#define DLB_CUDA_LOG(call)                                                   \
  do {                                                                       \
    const cudaError_t dlb_error_ = (call);                                   \
    if (dlb_error_ != cudaSuccess) {                                         \
      ::dlbench::gpu::log_cuda_error(dlb_error_, #call, __FILE__, __LINE__); \
    }                                                                        \
  } while (false)

#define DLB_CUBLAS(call)                                                          \
  do {                                                                            \
    const cublasStatus_t dlb_status_ = (call);                                    \
    if (dlb_status_ != CUBLAS_STATUS_SUCCESS) {                                   \
      ::dlbench::gpu::throw_cublas_error(dlb_status_, #call, __FILE__, __LINE__); \
    }                                                                             \
  } while (false)
