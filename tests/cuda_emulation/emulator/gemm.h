// Matrix products as cuBLAS and cuBLASLt define them: column-major, leading dimensions, batches, epilogues.
//
// Why naive: this stands in for the vendor library in tests, so it must be plainly right.
// Promises: inputs are rounded to the compute type first (tf32: 10 fraction bits, to nearest even), sums are double in
// the order of k, the result is rounded to the output type once. Before anything is read or written the bytes that each
// matrix spans are checked against its allocation: a wrong leading dimension or stride ends the program with a
// sentence.
#pragma once

#include <library_types.h>

#include <cstdint>
#include <string>

namespace dlbench::cuda_emulation {

struct MatrixOperand {
  const void* data = nullptr;
  cudaDataType_t type = CUDA_R_32F;
  int64_t rows = 0, columns = 0;  ///< as stored
  int64_t ld = 0;                 ///< elements between columns
  int64_t stride = 0;             ///< elements between matrices of a batch
};

enum class Activation : uint8_t { none, relu, gelu };

/// D = activation(alpha * op(A) op(B) + beta * C + bias); aux receives the argument of the activation.
struct GemmCall {
  std::string name;  ///< of the function, for sentences
  bool transpose_a = false, transpose_b = false;
  bool round_to_tf32 = false;
  int64_t batch = 1;
  double alpha = 1, beta = 0;
  MatrixOperand a, b, c, d;
  Activation activation = Activation::none;
  MatrixOperand bias;  ///< one column of as many rows as D; absent when its data is null
  MatrixOperand aux;   ///< absent when its data is null
};

/// Bytes of one element; 0 for a type that isn't emulated.
int64_t size_of_type(cudaDataType_t type);
void run_gemm(const GemmCall& call);

/// y = alpha * op(A) x + beta * y for each of a batch.
struct GemvCall {
  std::string name;
  bool transpose = false;
  int64_t batch = 1;
  double alpha = 1, beta = 0;
  MatrixOperand a;
  MatrixOperand x, y;  ///< one row each: `ld` is the increment
};
void run_gemv(const GemvCall& call);

}  // namespace dlbench::cuda_emulation
