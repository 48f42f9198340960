#include "core/device/meta_ops.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace dlbench {

namespace {

constexpr int64_t kFmaChains = 1024;

std::string batch_text(int64_t batch) {
  return batch == 1 ? "" : fmt::format(" batch={}", batch);
}

std::string text_of(const GemmSpec& s) {
  const char a = s.trans_a == Transpose::no ? 'N' : 'T', b = s.trans_b == Transpose::no ? 'N' : 'T';
  std::string text = fmt::format("m={} n={} k={} {}{}{}", s.m, s.n, s.k, a, b, batch_text(s.batch));
  if (s.epilogue != Epilogue::none) text += fmt::format(" {}", to_string(s.epilogue));
  return text;
}

Precision precision_of(DType type) {
  switch (type) {
    case DType::f64:
      return Precision::fp64;
    case DType::bf16:
      return Precision::bf16;
    case DType::f16:
      return Precision::fp16;
    case DType::f32:
    case DType::i32:
    case DType::u8:
      return Precision::fp32;
  }
  throw std::invalid_argument("not an element type");
}

}  // namespace

Support MetaOps::supports(Op, Precision precision) const {
  if (side_ == Side::gpu) return {};
  switch (precision) {
    case Precision::fp64:
    case Precision::fp32:
      return {};
    case Precision::tf32:
      return {SupportLevel::no, "meta:cpu has no tf32, as no CPU has"};
    case Precision::bf16:
    case Precision::fp16:
      return {SupportLevel::emulated, "meta:cpu pretends to convert to fp32"};
  }
  throw std::invalid_argument("not a precision");
}

void MetaOps::record(Op op, Precision precision, const Cost& cost, const std::function<std::string()>& text) {
  if (const Support support = supports(op, precision); support.level == SupportLevel::no)
    throw UnsupportedError(support.reason);
  run_(op, precision, cost, text);
}

void MetaOps::vector_op(Op op, const VectorSpec& s) {
  require_valid(s);
  record(op, s.precision, cost_of(op, s), [&s] { return fmt::format("n={}{}", s.n, batch_text(s.batch)); });
}

void MetaOps::noop() {
  record(Op::noop, Precision::fp32, {}, [] { return std::string(); });
}

void MetaOps::fill_normal(const FillSpec& s, void*) {
  require_valid(s);
  record(Op::fill_normal, precision_of(s.type), cost_of(s),
         [&s] { return fmt::format("n={} {}", s.n, to_string(s.type)); });
}

void MetaOps::copy(const VectorSpec& s, const void*, void*) {
  vector_op(Op::copy, s);
}

void MetaOps::convert(const ConvertSpec& s, const void*, void*) {
  require_valid(s);
  record(Op::convert, precision_of(s.to), cost_of(s),
         [&s] { return fmt::format("n={} {}->{}", s.n, to_string(s.from), to_string(s.to)); });
}

void MetaOps::triad(const VectorSpec& s, float, const void*, const void*, void*) {
  vector_op(Op::triad, s);
}
void MetaOps::axpy(const VectorSpec& s, float, const void*, void*) {
  vector_op(Op::axpy, s);
}

void MetaOps::bias(const MatrixSpec& s, const void*, const void*, void*) {
  require_valid(s);
  record(Op::bias, s.precision, cost_of(Op::bias, s),
         [&s] { return fmt::format("rows={} columns={}", s.rows, s.columns); });
}

void MetaOps::relu_forward(const VectorSpec& s, const void*, void*) {
  vector_op(Op::relu_forward, s);
}
void MetaOps::relu_backward(const VectorSpec& s, const void*, const void*, void*) {
  vector_op(Op::relu_backward, s);
}
void MetaOps::gelu_forward(const VectorSpec& s, const void*, void*) {
  vector_op(Op::gelu_forward, s);
}
void MetaOps::gelu_backward(const VectorSpec& s, const void*, const void*, void*) {
  vector_op(Op::gelu_backward, s);
}

void MetaOps::reduce(const ReduceSpec& s, const void*, void*) {
  require_valid(s);
  record(Op::reduce, s.precision, cost_of(s), [&s] {
    const char* reduction = s.reduction == Reduction::sum ? "sum" : "max";
    return fmt::format("{} outer={} extent={} inner={}", reduction, s.outer, s.extent, s.inner);
  });
}

void MetaOps::dot(const VectorSpec& s, const void*, const void*, void*) {
  vector_op(Op::dot, s);
}

void MetaOps::gemv(const GemvSpec& s, const void*, const void*, void*) {
  require_valid(s);
  record(Op::gemv, s.precision, cost_of(s), [&s] {
    const char transpose = s.trans == Transpose::no ? 'N' : 'T';
    return fmt::format("m={} n={} {}{}{}", s.m, s.n, transpose, batch_text(s.batch), s.shared_matrix ? " shared" : "");
  });
}

void MetaOps::gemm(const GemmSpec& spec, const void*, const void*, const void*, void*, void*) {
  const GemmSpec s = spec.resolved();
  record(Op::gemm, s.precision, cost_of(s), [&s] { return text_of(s); });
}

Support MetaOps::supports_fma_unit(FmaUnit unit, Precision precision) const {
  switch (unit) {
    case FmaUnit::vector_auto:
    case FmaUnit::scalar:
      return supports(Op::fma_peak, precision);
    case FmaUnit::sse2:
    case FmaUnit::avx2:
    case FmaUnit::avx512:
    case FmaUnit::dot_product:
      if (side_ == Side::cpu) return supports(Op::fma_peak, precision);
      break;
    case FmaUnit::cuda_core:
      if (side_ == Side::gpu) return {};
      break;
  }
  return {SupportLevel::no, fmt::format("meta:{} has no {} unit", to_string(side_), to_string(unit))};
}

double MetaOps::fma_peak_flops(const FmaPeakSpec& s) const {
  return 2.0 * static_cast<double>(s.iterations) * kFmaChains;
}

int64_t MetaOps::fma_peak_outputs(const FmaPeakSpec&) const {
  return kFmaChains;
}

void MetaOps::fma_peak(const FmaPeakSpec& s, void*) {
  require_valid(s);
  if (const Support support = supports_fma_unit(s.unit, s.precision); support.level == SupportLevel::no) {
    throw UnsupportedError(support.reason);
  }
  const Cost cost{.flops = fma_peak_flops(s), .bytes_read = 0, .bytes_written = 4.0 * kFmaChains};
  record(Op::fma_peak, s.precision, cost,
         [&s] { return fmt::format("{} iterations={}", to_string(s.unit), s.iterations); });
}

}  // namespace dlbench
