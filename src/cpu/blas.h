// OpenBLAS, opened at run time and judged before it is used. Twin: src/gpu/blas.cuh.
//
// Why opened, not linked: a missing or unfit OpenBLAS must be a sentence of `dlbench info`, not a failure of the
// loader. The serial variant is built without locks and gives wrong results, now and then, when several threads call
// it; it is refused. The pthread variant is preferred, the OpenMP one accepted. Promises: opened at most once per
// process; calls take row-major matrices; every call runs on one thread, except inside `BlasThreads`.
#pragma once

#include <cstdint>
#include <string>

#include "core/device/ops.h"
#include "core/device/plugin.h"
#include "cpu/parallel.h"

namespace dlbench::cpu {

struct BlasFacts {
  int parallel = 0;     ///< openblas_get_parallel(): 0 serial, 1 pthread, 2 OpenMP
  std::string config;   ///< "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Cooperlake MAX_THREADS=64"
  std::string core;     ///< "Cooperlake"
  std::string library;  ///< resolved path of the shared object
};
std::string threading_name(int parallel);

/// "" when OpenBLAS is fit for use, else the sentence why not and what to install.
std::string refuse_blas(const BlasFacts& facts);

class Blas {
 public:
  Absence absence = Absence::none;
  std::string sentence;  ///< why it can't be used; empty when it can
  BlasFacts facts;

  /// C = alpha op(A) op(B) + beta C, for one matrix, in fp32 or fp64.
  void gemm(bool fp64, Transpose trans_a, Transpose trans_b, int64_t m, int64_t n, int64_t k, double alpha,
            const void* a, int64_t lda, const void* b, int64_t ldb, double beta, void* c, int64_t ldc) const;
  /// y = op(A) x, A [m, n] dense.
  void gemv(bool fp64, Transpose trans, int64_t m, int64_t n, const void* a, const void* x, void* y) const;
  void set_threads(int threads) const;

  /// Opens it on the first call.
  static const Blas& instance();

 private:
  void* sgemm_ = nullptr;
  void* dgemm_ = nullptr;
  void* sgemv_ = nullptr;
  void* dgemv_ = nullptr;
  void* set_threads_ = nullptr;
  void open();
};

/// While it lives, OpenBLAS has `threads` threads and the team is asleep: the other half of "one level at a time".
class BlasThreads {
 public:
  BlasThreads(const Blas& blas, Team& team) : blas_(blas) {
    team.stand_down();
    blas_.set_threads(team.threads());
  }
  ~BlasThreads() { blas_.set_threads(1); }
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;

 private:
  const Blas& blas_;
};

}  // namespace dlbench::cpu
