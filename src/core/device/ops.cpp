#include "core/device/ops.h"

#include <stdexcept>

#include "core/device/device.h"

namespace dlbench {

std::string_view to_string(Op op) {
  switch (op) {
#define DLB_OP(name, op_class) \
  case Op::name: return #name;
#include "core/device/ops.def"
#undef DLB_OP
  }
  throw std::invalid_argument("not an op");
}

OpClass class_of(Op op) {
  switch (op) {
#define DLB_OP(name, op_class) \
  case Op::name: return OpClass::op_class;
#include "core/device/ops.def"
#undef DLB_OP
  }
  throw std::invalid_argument("not an op");
}

std::string_view to_string(SupportLevel level) {
  switch (level) {
    case SupportLevel::native: return "native";
    case SupportLevel::emulated: return "emulated";
    case SupportLevel::no: return "no";
  }
  throw std::invalid_argument("not a support level");
}

std::string_view to_string(FmaUnit unit) {
  switch (unit) {
    case FmaUnit::vector_auto: return "vector_auto";
    case FmaUnit::scalar: return "scalar";
    case FmaUnit::sse2: return "sse2";
    case FmaUnit::avx2: return "avx2";
    case FmaUnit::avx512: return "avx512";
    case FmaUnit::dot_product: return "dot_product";
    case FmaUnit::cuda_core: return "cuda_core";
  }
  throw std::invalid_argument("not an FMA unit");
}

std::string_view to_string(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none: return "none";
    case Epilogue::bias: return "bias";
    case Epilogue::bias_relu: return "bias_relu";
    case Epilogue::bias_gelu: return "bias_gelu";
  }
  throw std::invalid_argument("not an epilogue");
}

std::string_view to_string(Side side) {
  switch (side) {
    case Side::cpu: return "cpu";
    case Side::gpu: return "gpu";
  }
  throw std::invalid_argument("not a side");
}

GemmSpec GemmSpec::resolved() const {
  GemmSpec s = *this;
  if (m < 0 || n < 0 || k < 0 || batch < 0) throw std::invalid_argument("gemm: m, n, k and batch must not be negative");
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
  if (s.stride_a < 0) s.stride_a = a_rows * s.lda;
  if (s.stride_b < 0) s.stride_b = b_rows * s.ldb;
  if (s.stride_c < 0) s.stride_c = m * s.ldc;
  if (batch > 1 && s.stride_c < m * s.ldc - (s.ldc - n)) {
    throw std::invalid_argument("gemm: stride_c lets the matrices of C overlap");
  }
  if (epilogue != Epilogue::none && beta != 0.0f) throw std::invalid_argument("gemm: an epilogue needs beta = 0");
  return s;
}

}  // namespace dlbench
