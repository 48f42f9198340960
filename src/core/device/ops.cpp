#include "core/device/ops.h"

#include <cmath>
#include <initializer_list>
#include <stdexcept>

#include "core/device/device.h"

namespace dlbench {

std::string_view to_string(Op op) {
  switch (op) {
#define DLB_OP(name, op_class) \
  case Op::name:               \
    return #name;
#include "core/device/ops.def"
#undef DLB_OP
  }
  throw std::invalid_argument("not an op");
}

OpClass class_of(Op op) {
  switch (op) {
#define DLB_OP(name, op_class) \
  case Op::name:               \
    return OpClass::op_class;
#include "core/device/ops.def"
#undef DLB_OP
  }
  throw std::invalid_argument("not an op");
}

std::string_view to_string(SupportLevel level) {
  switch (level) {
    case SupportLevel::native:
      return "native";
    case SupportLevel::emulated:
      return "emulated";
    case SupportLevel::no:
      return "no";
  }
  throw std::invalid_argument("not a support level");
}

std::string_view to_string(FmaUnit unit) {
  switch (unit) {
    case FmaUnit::vector_auto:
      return "vector_auto";
    case FmaUnit::scalar:
      return "scalar";
    case FmaUnit::sse2:
      return "sse2";
    case FmaUnit::avx2:
      return "avx2";
    case FmaUnit::avx512:
      return "avx512";
    case FmaUnit::dot_product:
      return "dot_product";
    case FmaUnit::cuda_core:
      return "cuda_core";
  }
  throw std::invalid_argument("not an FMA unit");
}

std::string_view to_string(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return "none";
    case Epilogue::bias:
      return "bias";
    case Epilogue::bias_relu:
      return "bias_relu";
    case Epilogue::bias_gelu:
      return "bias_gelu";
  }
  throw std::invalid_argument("not an epilogue");
}

std::string_view to_string(Side side) {
  switch (side) {
    case Side::cpu:
      return "cpu";
    case Side::gpu:
      return "gpu";
  }
  throw std::invalid_argument("not a side");
}

namespace {

/// Product of extents that must not be negative. @throws std::invalid_argument
int64_t elements(const char* op, std::initializer_list<int64_t> extents) {
  int64_t product = 1;
  for (const int64_t extent : extents) {
    if (extent < 0)
      throw std::invalid_argument(std::string(op) + ": an extent is " + std::to_string(extent) +
                                  "; must not be negative");
  }
  for (const int64_t extent : extents) {
    if (__builtin_mul_overflow(product, extent, &product))
      throw std::invalid_argument(std::string(op) + ": more than 2^63 elements");
  }
  return product;
}

}  // namespace

void require_valid(const GemvSpec& s) {
  elements("gemv", {s.m, s.n, s.batch});
}
void require_valid(const VectorSpec& s) {
  elements("vector op", {s.n, s.batch});
}
void require_valid(const MatrixSpec& s) {
  elements("bias", {s.rows, s.columns});
}
void require_valid(const ReduceSpec& s) {
  elements("reduce", {s.outer, s.extent, s.inner});
}
void require_valid(const ConvertSpec& s) {
  elements("convert", {s.n});
}
void require_valid(const FillSpec& s) {
  elements("fill_normal", {s.n});
  if (!std::isfinite(s.scale)) throw std::invalid_argument("fill_normal: the scale must be finite");
}
void require_valid(const FmaPeakSpec& s) {
  if (s.iterations < 0 || s.iterations > (int64_t{1} << 24)) {
    throw std::invalid_argument("fma_peak: " + std::to_string(s.iterations) + " iterations; must be from 0 to 2^24");
  }
}

GemmSpec GemmSpec::resolved() const {
  GemmSpec s = *this;
  elements("gemm", {m, n, batch});
  elements("gemm", {m, k, batch});
  elements("gemm", {k, n, batch});
  const int64_t a_rows = trans_a == Transpose::no ? m : k, a_columns = trans_a == Transpose::no ? k : m;
  const int64_t b_rows = trans_b == Transpose::no ? k : n, b_columns = trans_b == Transpose::no ? n : k;
  const auto dense = [](int64_t& leading, int64_t columns, const char* name) {
    if (leading == 0) leading = columns > 0 ? columns : 1;
    if (leading < columns || leading < 1) {
      throw std::invalid_argument(std::string("gemm: ") + name + " = " + std::to_string(leading) +
                                  " is smaller than the row length " + std::to_string(columns));
    }
  };
  dense(s.lda, a_columns, "lda");
  dense(s.ldb, b_columns, "ldb");
  dense(s.ldc, n, "ldc");
  if (s.stride_a < 0) s.stride_a = elements("gemm", {a_rows, s.lda});
  if (s.stride_b < 0) s.stride_b = elements("gemm", {b_rows, s.ldb});
  if (s.stride_c < 0) s.stride_c = elements("gemm", {m, s.ldc});
  elements("gemm", {batch, s.stride_a});
  elements("gemm", {batch, s.stride_b});
  elements("gemm", {batch, s.stride_c});
  if (batch > 1 && m > 0 && n > 0 && s.stride_c < elements("gemm", {m - 1, s.ldc}) + n) {
    throw std::invalid_argument("gemm: stride_c lets the matrices of C overlap");
  }
  if (epilogue != Epilogue::none && beta != 0.0f) throw std::invalid_argument("gemm: an epilogue needs beta = 0");
  return s;
}

}  // namespace dlbench
