// The innermost loops of the CPU backend, as a table of functions per instruction set.
//
// Why (no twin on the GPU side): nvcc compiles for several architectures by itself; for the CPU the same sources
// (vector_kernels.cpp, gemm_kernels.cpp) are compiled once for each of x86-64, AVX2+FMA and AVX-512, and the widest
// table that this processor can run is chosen at start. On other processors only the portable table exists. Promises:
// one thread each, no allocation; pointers are aligned to their element at least.
#pragma once

#include <cstdint>

namespace dlbench {
enum class DType : uint8_t;  // core/tensor/precision.h; not included, so that no library code is compiled per ISA
}

namespace dlbench::cpu {

/// Index of a storage type in the tables below.
enum ElementIndex : int { kF64, kF32, kBF16, kF16, kElementTypes };
ElementIndex element_index(DType type);  ///< @throws std::invalid_argument for i32 and u8

/// Loops over one element type. `stream`: write past the caches, which pays where the vectors don't fit in them
/// (cpu_stream in bench/micro). Formulas are those of ops.h.
struct VectorKernels {
  void (*triad)(const void* x, const void* y, void* z, float a, int64_t n, bool stream);
  void (*axpy)(const void* x, void* y, float a, int64_t n);
  void (*bias)(const void* x, const void* bias, void* y, int64_t rows, int64_t columns, int64_t row_length);
  void (*relu_forward)(const void* x, void* y, int64_t n, bool stream);
  void (*relu_backward)(const void* dy, const void* y, void* dx, int64_t n, bool stream);
  void (*gelu_forward)(const void* x, void* y, int64_t n);
  void (*gelu_backward)(const void* dy, const void* x, void* dx, int64_t n);
  /// Sums in the accumulate type, many lanes and pairwise over blocks; returned as double, which holds either exactly.
  double (*sum)(const void* x, int64_t n);
  double (*max)(const void* x, int64_t n);
  double (*dot)(const void* x, const void* y, int64_t n);
  /// total[j] = sum or max over `rows` of x[row * row_length + j], j < columns; `total` has the accumulate type.
  void (*column_sum)(const void* x, int64_t rows, int64_t row_length, int64_t columns, void* total);
  void (*column_max)(const void* x, int64_t rows, int64_t row_length, int64_t columns, void* total);
  /// y[i] = sum_j a[i * columns + j] x[j] for `rows` rows, rounded to the element type.
  void (*matrix_vector)(const void* a, const void* x, void* y, int64_t rows, int64_t columns);
  /// total[j] = sum_i a[i * row_length + j] x[i], j < columns; `total` has the accumulate type.
  void (*vector_matrix)(const void* x, const void* a, int64_t rows, int64_t row_length, int64_t columns, void* total);
  /// From the accumulate type to the element type.
  void (*round)(const void* total, void* y, int64_t n);
};

struct IsaKernels {
  const char* name;  ///< "x86-64", "avx2", "avx512"
  void (*copy)(const void* x, void* y, int64_t bytes, bool stream);
  VectorKernels of[kElementTypes];
  void (*convert[kElementTypes][kElementTypes])(const void* x, void* y, int64_t n);  ///< [from][to]
};

const IsaKernels& vector_kernels();  ///< the widest that runs here

}  // namespace dlbench::cpu
