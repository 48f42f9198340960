// cuBLAS and cuBLASLt: found and opened at run time, one handle of each per device.
//
// Why: the two libraries are half a gigabyte; a program that links them pays for that at every start, with or without a
// GPU, and doesn't start where they are missing. Twin: src/cpu/blas.h (OpenBLAS).
// Promises: nothing is loaded before `BlasLibrary::open`; a function that the library lacks is named in the error.
// Under emulation the functions are linked instead of looked up.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace dlbench::gpu {

/// Pointers to the functions of blas_functions.def, under their own names.
struct BlasFunctions {
#define DLB_CUBLAS_ROW(name) decltype(&::name) name = nullptr;
#define DLB_CUBLASLT_ROW(name) decltype(&::name) name = nullptr;
#include "gpu/blas_functions.def"
#undef DLB_CUBLAS_ROW
#undef DLB_CUBLASLT_ROW
};

/// Where the two libraries would be opened from, found without loading them; empty when neither a file nor the loader's
/// search path has both.
struct BlasLocation {
  bool found = false;
  std::string cublas;  ///< path, or the plain file name when the loader's own search path is to be used
  std::string cublaslt;
  std::string problem;  ///< which of the two is missing, and where it was looked for
};
BlasLocation locate_blas();

/// The opened libraries; closed by the destructor.
class BlasLibrary {
 public:
  /// @throws DeviceAbsentError naming the library or the function that is missing.
  static std::unique_ptr<BlasLibrary> open(const BlasLocation& location);
  ~BlasLibrary();
  BlasLibrary(const BlasLibrary&) = delete;
  BlasLibrary& operator=(const BlasLibrary&) = delete;

  const BlasFunctions& functions() const { return functions_; }

 private:
  BlasLibrary() = default;
  BlasFunctions functions_;
  void* cublas_ = nullptr;
  void* cublaslt_ = nullptr;
};

/// A cuBLAS and a cuBLASLt handle bound to one stream, with one explicit workspace that both use (their calls are
/// ordered by the stream, so they never use it at the same time).
class Blas {
 public:
  /// `workspace` is device memory that outlives this object.
  Blas(const BlasFunctions& functions, cudaStream_t stream, void* workspace, size_t workspace_bytes);
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  const BlasFunctions& functions() const { return functions_; }
  cublasHandle_t cublas() const { return cublas_; }
  cublasLtHandle_t cublaslt() const { return cublaslt_; }
  void* workspace() const { return workspace_; }
  size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  void destroy() noexcept;
  const BlasFunctions& functions_;
  cublasHandle_t cublas_ = nullptr;
  cublasLtHandle_t cublaslt_ = nullptr;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
};

}  // namespace dlbench::gpu
