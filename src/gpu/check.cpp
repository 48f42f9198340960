// Errors of the CUDA libraries as exceptions of dlbench; see check.h.
#include "gpu/check.h"

#include <fmt/format.h>

#include <cstdio>

#include "core/base/error.h"

namespace dlbench::gpu {

bool is_sticky(cudaError_t error) {
  // No switch: the enumeration grows with every toolkit, and an unknown error isn't sticky until documented so.
  constexpr cudaError_t kSticky[] = {
      cudaErrorECCUncorrectable,
      cudaErrorNvlinkUncorrectable,
      cudaErrorHardwareStackError,
      cudaErrorIllegalInstruction,
      cudaErrorMisalignedAddress,
      cudaErrorInvalidAddressSpace,
      cudaErrorInvalidPc,
      cudaErrorIllegalAddress,
      cudaErrorLaunchFailure,
      cudaErrorLaunchTimeout,
      cudaErrorAssert,
      cudaErrorContextIsDestroyed,
      cudaErrorDevicesUnavailable,
      cudaErrorUnknown,
  };
  for (const cudaError_t sticky : kSticky) {
    if (error == sticky) return true;
  }
  return false;
}

namespace {
std::string describe(const char* library, const char* name, const char* text, const char* expression, const char* file,
                     int line) {
  return fmt::format("{} error {} ({}) in {} at {}:{}", library, name, text, expression, file, line);
}
}  // namespace

void throw_cuda_error(cudaError_t error, const char* expression, const char* file, int line) {
  const std::string message =
      describe("CUDA", cudaGetErrorName(error), cudaGetErrorString(error), expression, file, line);
  if (is_sticky(error)) {
    throw DeviceLostError(message + "; the GPU can't be used by this process any more, start dlbench again");
  }
  // A plain error stays readable through cudaGetLastError; take it, so that the next launch isn't blamed for it.
  static_cast<void>(cudaGetLastError());
  if (error == cudaErrorMemoryAllocation) throw OutOfMemoryError(message);
  throw Error(message);
}

void throw_cublas_error(cublasStatus_t status, const char* expression, const char* file, int line) {
  // The names are spelt here: cublasGetStatusName lives in the library that may have failed to open.
  const auto name = [&]() -> const char* {
    switch (status) {
      case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
      case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
      case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
      case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
      case CUBLAS_STATUS_ARCH_MISMATCH:
        return "CUBLAS_STATUS_ARCH_MISMATCH";
      case CUBLAS_STATUS_MAPPING_ERROR:
        return "CUBLAS_STATUS_MAPPING_ERROR";
      case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
      case CUBLAS_STATUS_INTERNAL_ERROR:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
      case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
      case CUBLAS_STATUS_LICENSE_ERROR:
        return "CUBLAS_STATUS_LICENSE_ERROR";
    }
    return "unknown status";
  }();
  const std::string message =
      describe("cuBLAS", name, std::to_string(static_cast<int>(status)).c_str(), expression, file, line);
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemoryError(message);
  // cuBLAS hides the cause of a failed launch; the runtime still knows it.
  const cudaError_t cause = cudaGetLastError();
  if (is_sticky(cause)) {
    throw DeviceLostError(
        fmt::format("{}; CUDA says {} ({})", message, cudaGetErrorName(cause), cudaGetErrorString(cause)));
  }
  throw Error(message);
}

void log_cuda_error(cudaError_t error, const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "dlbench: CUDA error %s (%s) in %s at %s:%d\n", cudaGetErrorName(error),
               cudaGetErrorString(error), expression, file, line);
}

}  // namespace dlbench::gpu
