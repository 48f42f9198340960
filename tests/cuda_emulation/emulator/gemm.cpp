#include "cuda_emulation/emulator/gemm.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "core/math/float_types.h"
#include "cuda_emulation/emulator/fault.h"
#include "cuda_emulation/emulator/memory.h"

namespace dlbench::cuda_emulation {
namespace {

double load(const MatrixOperand& matrix, int64_t index) {
  switch (matrix.type) {
    case CUDA_R_64F:
      return static_cast<const double*>(matrix.data)[index];
    case CUDA_R_32F:
      return static_cast<const float*>(matrix.data)[index];
    case CUDA_R_16F:
      return to_float(static_cast<const float16*>(matrix.data)[index]);
    case CUDA_R_16BF:
      return to_float(static_cast<const bfloat16*>(matrix.data)[index]);
    default:
      fail("a matrix of a type that isn't emulated");
  }
}

void store(const MatrixOperand& matrix, int64_t index, double value) {
  void* data = const_cast<void*>(matrix.data);
  switch (matrix.type) {
    case CUDA_R_64F:
      static_cast<double*>(data)[index] = value;
      break;
    case CUDA_R_32F:
      static_cast<float*>(data)[index] = static_cast<float>(value);
      break;
    case CUDA_R_16F:
      static_cast<float16*>(data)[index] = to_float16(static_cast<float>(value));
      break;
    case CUDA_R_16BF:
      static_cast<bfloat16*>(data)[index] = to_bfloat16(static_cast<float>(value));
      break;
    default:
      fail("a matrix of a type that isn't emulated");
  }
}

// 10 fraction bits, to nearest, ties to even (PTX ISA, "cvt.rna.tf32" keeps the same bits; the tie rule doesn't matter
// here).
double to_tf32(double value) {
  const uint32_t bits = detail::float_bits(static_cast<float>(value));
  if ((bits & 0x7F800000u) == 0x7F800000u) return value;
  return detail::bits_float((bits + 0xFFFu + ((bits >> 13) & 1u)) & ~0x1FFFu);
}

// GELU in its tanh form (Hendrycks & Gimpel 2016), as cuBLASLt's epilogue has it.
double gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

void check_bounds(const std::string& name, const char* operand, const MatrixOperand& m, int64_t batch) {
  if (m.rows == 0 || m.columns == 0 || batch == 0) return;
  const int64_t elements = (batch - 1) * m.stride + (m.columns - 1) * m.ld + m.rows;
  const auto bytes = static_cast<size_t>(elements * size_of_type(m.type));
  const size_t there = DeviceMemory::instance().bytes_from(m.data);
  if (there >= bytes) return;
  if (there == 0) fail(fmt::format("{}: {} ({}) is no device memory", name, operand, m.data));
  fail(fmt::format(
      "{}: {} of {} x {} with leading dimension {} and {} in the batch spans {} bytes, {} more than its allocation "
      "has from there",
      name, operand, m.rows, m.columns, m.ld, batch, bytes, bytes - there));
}

// op(matrix) of one batch entry as doubles, column-major and dense.
std::vector<double> gather(const MatrixOperand& matrix, bool transpose, int64_t batch_index, bool tf32) {
  std::vector<double> out(static_cast<size_t>(matrix.rows * matrix.columns));
  for (int64_t column = 0; column < matrix.columns; ++column) {
    for (int64_t row = 0; row < matrix.rows; ++row) {
      const double value = load(matrix, batch_index * matrix.stride + column * matrix.ld + row);
      const int64_t at = transpose ? row * matrix.columns + column : column * matrix.rows + row;
      out[static_cast<size_t>(at)] = tf32 ? to_tf32(value) : value;
    }
  }
  return out;
}

void finish(const GemmCall& g, int64_t batch_index, int64_t column, const std::vector<double>& sums) {
  for (int64_t row = 0; row < g.d.rows; ++row) {
    double value = g.alpha * sums[static_cast<size_t>(row)];
    if (g.beta != 0) value += g.beta * load(g.c, batch_index * g.c.stride + column * g.c.ld + row);
    if (g.bias.data) value += load(g.bias, batch_index * g.bias.stride + row);
    if (g.aux.data) store(g.aux, batch_index * g.aux.stride + column * g.aux.ld + row, value);
    switch (g.activation) {
      case Activation::none:
        break;
      case Activation::relu:
        value = value < 0 ? 0 : value;
        break;
      case Activation::gelu:
        value = gelu(value);
        break;
    }
    store(g.d, batch_index * g.d.stride + column * g.d.ld + row, value);
  }
}

}  // namespace

int64_t size_of_type(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F:
      return 8;
    case CUDA_R_32F:
      return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    default:
      return 0;
  }
}

void run_gemm(const GemmCall& g) {
  const int64_t m = g.d.rows, n = g.d.columns, k = g.transpose_a ? g.a.rows : g.a.columns;
  if (k > 0) {
    check_bounds(g.name, "A", g.a, g.batch);
    check_bounds(g.name, "B", g.b, g.batch);
  }
  if (g.beta != 0) check_bounds(g.name, "C", g.c, g.batch);
  check_bounds(g.name, "D", g.d, g.batch);
  if (g.bias.data) check_bounds(g.name, "bias", g.bias, g.batch);
  if (g.aux.data) check_bounds(g.name, "the auxiliary output", g.aux, g.batch);
  std::vector<double> sums(static_cast<size_t>(m));
  for (int64_t i = 0; i < g.batch; ++i) {
    const std::vector<double> a = gather(g.a, g.transpose_a, i, g.round_to_tf32);
    const std::vector<double> b = gather(g.b, g.transpose_b, i, g.round_to_tf32);
    for (int64_t column = 0; column < n; ++column) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t step = 0; step < k; ++step) {
        const double factor = b[static_cast<size_t>(column * k + step)];
        const double* a_column = a.data() + step * m;
        for (int64_t row = 0; row < m; ++row) sums[static_cast<size_t>(row)] += a_column[row] * factor;
      }
      finish(g, i, column, sums);
    }
  }
}

void run_gemv(const GemvCall& g) {
  check_bounds(g.name, "A", g.a, g.batch);
  check_bounds(g.name, "x", g.x, g.batch);
  check_bounds(g.name, "y", g.y, g.batch);
  for (int64_t i = 0; i < g.batch; ++i) {
    const std::vector<double> a = gather(g.a, g.transpose, i, false);
    const int64_t m = g.y.columns, k = g.x.columns;
    for (int64_t row = 0; row < m; ++row) {
      double sum = 0;
      for (int64_t step = 0; step < k; ++step)
        sum += a[static_cast<size_t>(step * m + row)] * load(g.x, i * g.x.stride + step * g.x.ld);
      const int64_t at = i * g.y.stride + row * g.y.ld;
      store(g.y, at, g.alpha * sum + (g.beta != 0 ? g.beta * load(g.y, at) : 0.0));
    }
  }
}

}  // namespace dlbench::cuda_emulation
