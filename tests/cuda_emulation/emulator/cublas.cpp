// The functions of cuBLAS that src/gpu calls (cuBLAS documentation, "Using the cuBLAS API"). Calls are queued on the
// handle's stream; alpha and beta are read at the call (host pointer mode).
#include <cublas_v2.h>

#include "cuda_emulation/emulator/api.h"
#include "cuda_emulation/emulator/fault.h"
#include "cuda_emulation/emulator/gemm.h"
#include "cuda_emulation/emulator/memory.h"

using namespace dlbench::cuda_emulation;

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

namespace {

cublasStatus_t refuse_blas(cublasStatus_t status, const std::string& sentence) {
  set_why(sentence);
  return status;
}

template <typename T>
constexpr cudaDataType_t kTypeOf = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;

template <typename T>
cublasStatus_t gemv(const char* name, cublasHandle_t handle, cublasOperation_t operation, int m, int n, const T* alpha,
                    const T* a, int lda, int64_t stride_a, const T* x, int incx, int64_t stride_x, const T* beta, T* y,
                    int incy, int64_t stride_y, int batch) {
  const Call call;
  if (!handle) return refuse_blas(CUBLAS_STATUS_NOT_INITIALIZED, fmt::format("{}: the handle is null", name));
  if (m < 0 || n < 0 || batch < 0 || incx == 0 || incy == 0) {
    return refuse_blas(CUBLAS_STATUS_INVALID_VALUE, fmt::format("{}: an extent below 0 or an increment of 0", name));
  }
  if (batch > 1 && (stride_a == 0 || stride_x == 0 || stride_y == 0)) {
    return refuse_blas(CUBLAS_STATUS_INVALID_VALUE,
                       fmt::format("{}: a stride \"must not be zero\" (cuBLAS documentation)", name));
  }
  if (lda < std::max(1, m)) {
    return refuse_blas(CUBLAS_STATUS_INVALID_VALUE,
                       fmt::format("{}: leading dimension {} of A is below its {} rows", name, lda, m));
  }
  if (incx < 0 || incy < 0)
    return refuse_blas(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("{}: a negative increment isn't emulated", name));
  CUstream_st* stream = Streams::instance().resolve(handle->stream);
  if (!stream) return refuse_blas(CUBLAS_STATUS_EXECUTION_FAILED, fmt::format("{}: the handle's stream is gone", name));
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  const bool transpose = operation != CUBLAS_OP_N;
  GemvCall g;
  g.name = name;
  g.transpose = transpose;
  g.batch = batch;
  g.alpha = *alpha;
  g.beta = *beta;
  g.a = {a, kTypeOf<T>, m, n, lda, stride_a};
  g.x = {x, kTypeOf<T>, 1, transpose ? m : n, incx, stride_x};
  g.y = {y, kTypeOf<T>, 1, transpose ? n : m, incy, stride_y};
  Streams::instance().enqueue(stream, name, [g] { run_gemv(g); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  const Call call;
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!Streams::instance().resolve(stream))
    return refuse_blas(CUBLAS_STATUS_INVALID_VALUE, "cublasSetStream: no stream");
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  const Call call;
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) {
    return refuse_blas(CUBLAS_STATUS_INVALID_VALUE, "cublasSetWorkspace: the workspace must be aligned to 256 bytes");
  }
  if (workspace && DeviceMemory::instance().bytes_from(workspace) < bytes) {
    return refuse_blas(CUBLAS_STATUS_INVALID_VALUE,
                       "cublasSetWorkspace: the workspace is smaller than stated, or no device memory");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemvStridedBatched(cublasHandle_t handle, cublasOperation_t operation, int m, int n,
                                         const float* alpha, const float* a, int lda, long long int stride_a,
                                         const float* x, int incx, long long int stride_x, const float* beta, float* y,
                                         int incy, long long int stride_y, int batch) {
  return gemv("cublasSgemvStridedBatched", handle, operation, m, n, alpha, a, lda, stride_a, x, incx, stride_x, beta, y,
              incy, stride_y, batch);
}

cublasStatus_t cublasDgemvStridedBatched(cublasHandle_t handle, cublasOperation_t operation, int m, int n,
                                         const double* alpha, const double* a, int lda, long long int stride_a,
                                         const double* x, int incx, long long int stride_x, const double* beta,
                                         double* y, int incy, long long int stride_y, int batch) {
  return gemv("cublasDgemvStridedBatched", handle, operation, m, n, alpha, a, lda, stride_a, x, incx, stride_x, beta, y,
              incy, stride_y, batch);
}
