#include "cpu/blas.h"

#include <cblas.h>
#include <dlfcn.h>

#include <filesystem>
#include <limits>

#include "core/base/error.h"

namespace dlbench::cpu {

namespace {

constexpr const char* kInstall =
    "Install the pthread variant (Debian: apt-get install libopenblas0-pthread, Fedora: dnf install openblas-threads)";

/// Where distributions put it: the name of the ABI first, then the pthread variant by its own folder or name.
constexpr const char* kNames[] = {"libopenblas.so.0", "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
                                  "/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0", "libopenblasp.so.0",
                                  "libopenblas.so"};

CBLAS_TRANSPOSE cblas(Transpose t) {
  switch (t) {
    case Transpose::no:
      return CblasNoTrans;
    case Transpose::yes:
      return CblasTrans;
  }
  return CblasNoTrans;
}

/// OpenBLAS takes 32-bit sizes in its usual build.
blasint narrowed(int64_t value) {
  if (value > std::numeric_limits<blasint>::max()) {
    throw UnsupportedError("OpenBLAS takes sizes up to " + std::to_string(std::numeric_limits<blasint>::max()) +
                           ", not " + std::to_string(value) + "; use a smaller extent or leading dimension");
  }
  return static_cast<blasint>(value);
}

template <typename Function>
Function* as(void* symbol) {
  return reinterpret_cast<Function*>(symbol);
}

}  // namespace

std::string threading_name(int parallel) {
  if (parallel == OPENBLAS_SEQUENTIAL) return "serial";
  if (parallel == OPENBLAS_THREAD) return "pthread";
  if (parallel == OPENBLAS_OPENMP) return "openmp";
  return "unknown (" + std::to_string(parallel) + ")";
}

std::string refuse_blas(const BlasFacts& facts) {
  if (facts.parallel == OPENBLAS_THREAD || facts.parallel == OPENBLAS_OPENMP) return "";
  return "OpenBLAS at " + facts.library + " is the " + threading_name(facts.parallel) +
         " variant, which gives wrong results when several threads call it. " + kInstall + " and try again.";
}

void Blas::open() {
  std::string refusal;
  for (const char* name : kNames) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    const auto symbol = [&](const char* s) { return dlsym(library, s); };
    sgemm_ = symbol("cblas_sgemm"), dgemm_ = symbol("cblas_dgemm");
    sgemv_ = symbol("cblas_sgemv"), dgemv_ = symbol("cblas_dgemv");
    set_threads_ = symbol("openblas_set_num_threads");
    void *parallel = symbol("openblas_get_parallel"), *config = symbol("openblas_get_config"),
         *core = symbol("openblas_get_corename");
    if (!sgemm_ || !dgemm_ || !sgemv_ || !dgemv_ || !set_threads_ || !parallel || !config || !core) continue;
    Dl_info where{};
    facts.library = dladdr(sgemm_, &where) != 0 && where.dli_fname != nullptr ? where.dli_fname : name;
    std::error_code ignored;
    const auto resolved = std::filesystem::canonical(facts.library, ignored);
    if (!ignored) facts.library = resolved.string();
    facts.parallel = as<decltype(openblas_get_parallel)>(parallel)();
    facts.config = as<decltype(openblas_get_config)>(config)();
    facts.core = as<decltype(openblas_get_corename)>(core)();
    refusal = refuse_blas(facts);
    if (refusal.empty()) {
      set_threads(1);
      return;
    }
  }
  absence = refusal.empty() ? Absence::library_missing : Absence::library_unfit;
  sentence = refusal.empty() ? std::string("OpenBLAS (libopenblas.so.0) was not found. ") + kInstall + "." : refusal;
}

const Blas& Blas::instance() {
  static const Blas blas = [] {
    Blas opened;
    opened.open();
    return opened;
  }();
  return blas;
}

void Blas::set_threads(int threads) const {
  as<decltype(openblas_set_num_threads)>(set_threads_)(threads);
}

void Blas::gemm(bool fp64, Transpose trans_a, Transpose trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                const void* a, int64_t lda, const void* b, int64_t ldb, double beta, void* c, int64_t ldc) const {
  const blasint m32 = narrowed(m), n32 = narrowed(n), k32 = narrowed(k), lda32 = narrowed(lda), ldb32 = narrowed(ldb),
                ldc32 = narrowed(ldc);
  if (fp64) {
    as<decltype(cblas_dgemm)>(dgemm_)(CblasRowMajor, cblas(trans_a), cblas(trans_b), m32, n32, k32, alpha,
                                      static_cast<const double*>(a), lda32, static_cast<const double*>(b), ldb32, beta,
                                      static_cast<double*>(c), ldc32);
  } else {
    as<decltype(cblas_sgemm)>(sgemm_)(CblasRowMajor, cblas(trans_a), cblas(trans_b), m32, n32, k32,
                                      static_cast<float>(alpha), static_cast<const float*>(a), lda32,
                                      static_cast<const float*>(b), ldb32, static_cast<float>(beta),
                                      static_cast<float*>(c), ldc32);
  }
}

void Blas::gemv(bool fp64, Transpose trans, int64_t m, int64_t n, const void* a, const void* x, void* y) const {
  const blasint m32 = narrowed(m), n32 = narrowed(n);
  if (fp64) {
    as<decltype(cblas_dgemv)>(dgemv_)(CblasRowMajor, cblas(trans), m32, n32, 1.0, static_cast<const double*>(a), n32,
                                      static_cast<const double*>(x), 1, 0.0, static_cast<double*>(y), 1);
  } else {
    as<decltype(cblas_sgemv)>(sgemv_)(CblasRowMajor, cblas(trans), m32, n32, 1.0f, static_cast<const float*>(a), n32,
                                      static_cast<const float*>(x), 1, 0.0f, static_cast<float*>(y), 1);
  }
}

}  // namespace dlbench::cpu
