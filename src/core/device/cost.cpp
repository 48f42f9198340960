#include "core/device/cost.h"

#include <stdexcept>

#include "core/device/ops.h"

namespace dlbench {

namespace {
// Arithmetic operations per element of the tanh form of GELU, 0.5*x*(1 + tanh(s*(x + a*x^3))), a tanh counted as one:
// x*x, *x, *a, +x, *s, tanh, +1, *x, *0.5.
constexpr double kGeluForwardFlops = 9;
// dx = dy * (0.5*(1+t) + 0.5*x*(1-t*t)*s*(1+3*a*x*x)): the argument and t as above (6), then 1+t, *0.5, t*t, 1-, x*x
// reused, *3a, +1, *s, *, *x, *0.5, +, *dy.
constexpr double kGeluBackwardFlops = 18;

double element_bytes(Precision p) {
  return static_cast<double>(size_of(storage_of(p)));
}
}  // namespace

Cost cost_of(const GemmSpec& s) {
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  const double batch = static_cast<double>(s.batch), e = element_bytes(s.precision);
  const double a_matrices = s.stride_a == 0 && s.batch > 0 ? 1 : batch,
               b_matrices = s.stride_b == 0 && s.batch > 0 ? 1 : batch;
  Cost cost;
  cost.flops = 2 * m * n * k * batch;
  if (s.epilogue != Epilogue::none) cost.flops += m * n * batch;
  if (s.epilogue == Epilogue::bias_relu) cost.flops += m * n * batch;
  if (s.epilogue == Epilogue::bias_gelu) cost.flops += kGeluForwardFlops * m * n * batch;
  cost.bytes_read = e * (m * k * a_matrices + k * n * b_matrices);
  if (s.beta != 0.0f) cost.bytes_read += e * m * n * batch;
  if (s.epilogue != Epilogue::none) cost.bytes_read += e * n;
  cost.bytes_written = e * m * n * batch;
  return cost;
}

Cost cost_of(const GemvSpec& s) {
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n), batch = static_cast<double>(s.batch);
  const double e = element_bytes(s.precision), matrices = s.shared_matrix && s.batch > 0 ? 1 : batch;
  const double x = s.trans == Transpose::no ? n : m, y = s.trans == Transpose::no ? m : n;
  return {.flops = 2 * m * n * batch, .bytes_read = e * (m * n * matrices + x * batch), .bytes_written = e * y * batch};
}

Cost cost_of(const ReduceSpec& s) {
  const double outputs = static_cast<double>(s.outer) * static_cast<double>(s.inner);
  const double inputs = outputs * static_cast<double>(s.extent), e = element_bytes(s.precision);
  return {.flops = inputs > outputs ? inputs - outputs : 0, .bytes_read = e * inputs, .bytes_written = e * outputs};
}

Cost cost_of(const ConvertSpec& s) {
  const double n = static_cast<double>(s.n);
  return {.flops = 0,
          .bytes_read = n * static_cast<double>(size_of(s.from)),
          .bytes_written = n * static_cast<double>(size_of(s.to))};
}

Cost cost_of(const FillSpec& s) {
  return {
      .flops = 0, .bytes_read = 0, .bytes_written = static_cast<double>(s.n) * static_cast<double>(size_of(s.type))};
}

Cost cost_of(Op op, const VectorSpec& s) {
  const double n = static_cast<double>(s.n) * static_cast<double>(s.batch), e = element_bytes(s.precision);
  switch (op) {
    case Op::copy:
      return {.flops = 0, .bytes_read = e * n, .bytes_written = e * n};
    case Op::triad:
      return {.flops = 2 * n, .bytes_read = 2 * e * n, .bytes_written = e * n};
    case Op::axpy:
      return {.flops = 2 * n, .bytes_read = 2 * e * n, .bytes_written = e * n};
    case Op::relu_forward:
      return {.flops = n, .bytes_read = e * n, .bytes_written = e * n};
    case Op::relu_backward:
      return {.flops = n, .bytes_read = 2 * e * n, .bytes_written = e * n};
    case Op::gelu_forward:
      return {.flops = kGeluForwardFlops * n, .bytes_read = e * n, .bytes_written = e * n};
    case Op::gelu_backward:
      return {.flops = kGeluBackwardFlops * n, .bytes_read = 2 * e * n, .bytes_written = e * n};
    case Op::dot:
      return {.flops = 2 * n,
              .bytes_read = 2 * e * n,
              .bytes_written = static_cast<double>(size_of(accumulate_of(s.precision))) * static_cast<double>(s.batch)};
    case Op::noop:
    case Op::fill_normal:
    case Op::convert:
    case Op::bias:
    case Op::reduce:
    case Op::gemv:
    case Op::gemm:
    case Op::fma_peak:
    case Op::conv2d_forward:
    case Op::conv2d_backward_data:
    case Op::conv2d_backward_weights:
    case Op::attention_forward:
    case Op::attention_backward:
    case Op::pool_forward:
    case Op::pool_backward:
    case Op::batch_norm_forward:
    case Op::batch_norm_backward:
    case Op::layer_norm_forward:
    case Op::layer_norm_backward:
    case Op::softmax_forward:
    case Op::softmax_backward:
    case Op::cross_entropy:
    case Op::embedding_forward:
    case Op::embedding_backward:
    case Op::prepare_update:
    case Op::sgd_step:
    case Op::adamw_step:
      break;
  }
  throw std::invalid_argument("cost_of: " + std::string(to_string(op)) + " has no vector form");
}

Cost cost_of(Op op, const MatrixSpec& s) {
  if (op != Op::bias) throw std::invalid_argument("cost_of: " + std::string(to_string(op)) + " has no matrix form");
  const double elements = static_cast<double>(s.rows) * static_cast<double>(s.columns), e = element_bytes(s.precision);
  return {
      .flops = elements, .bytes_read = e * (elements + static_cast<double>(s.columns)), .bytes_written = e * elements};
}

}  // namespace dlbench
