#include "core/device/reference_ops.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/math/activation.h"
#include "core/math/elementwise.h"
#include "core/math/rounding.h"

namespace dlbench {

namespace {

/// Calls `body` with a value of the element type: with_type(type, [&](auto element) { using T = decltype(element); …
/// }).
template <typename Body>
void with_type(DType type, Body&& body) {
  switch (type) {
    case DType::f64:
      return body(double{});
    case DType::f32:
      return body(float{});
    case DType::bf16:
      return body(bfloat16{});
    case DType::f16:
      return body(float16{});
    case DType::i32:
    case DType::u8:
      break;
  }
  throw UnsupportedError("reference: no arithmetic on elements of type " + std::string(to_string(type)));
}

/// z[i] = f(x[i]) in double, rounded once.
template <typename F>
void map_1(const VectorSpec& spec, const void* x, void* z, F f) {
  with_type(storage_of(spec.precision), [&](auto element) {
    using T = decltype(element);
    for (int64_t i = 0; i < spec.n * spec.batch; ++i) store_element<T>(z, i, f(load_element<T>(x, i)));
  });
}

/// z[i] = f(x[i], y[i])
template <typename F>
void map_2(const VectorSpec& spec, const void* x, const void* y, void* z, F f) {
  with_type(storage_of(spec.precision), [&](auto element) {
    using T = decltype(element);
    for (int64_t i = 0; i < spec.n * spec.batch; ++i) {
      store_element<T>(z, i, f(load_element<T>(x, i), load_element<T>(y, i)));
    }
  });
}

double activated(Epilogue epilogue, double value) {
  switch (epilogue) {
    case Epilogue::none:
    case Epilogue::bias:
      return value;
    case Epilogue::bias_relu:
      return ReluForward{}(value);
    case Epilogue::bias_gelu:
      return GeluForward{}(value);
  }
  throw std::invalid_argument("not an epilogue");
}

}  // namespace

RowSample::RowSample(int64_t rows, double flops_per_row, double max_flops)
    : rows_(rows), all_(max_flops <= 0 || flops_per_row * static_cast<double>(rows) <= max_flops), threshold_(0) {
  if (!all_) threshold_ = static_cast<uint64_t>(max_flops / flops_per_row / static_cast<double>(rows) * 4294967296.0);
}

bool RowSample::contains(int64_t row) const {
  if (all_ || row == 0 || row == rows_ - 1) return true;
  return philox4x32(0, static_cast<uint64_t>(row), static_cast<uint64_t>(rows_)).word[0] < threshold_;
}

Support ReferenceOps::supports(Op, Precision) const {
  return {};
}

void ReferenceOps::fill_normal(const FillSpec& spec, void* x) {
  require_valid(spec);
  const float factor = static_cast<float>(spec.scale * kIrwinHallScale);
  with_type(spec.type, [&](auto element) {
    using T = decltype(element);
    for (int64_t i = 0; i < spec.n; ++i) {
      store_element<T>(x, i, normal_value(spec.seed, spec.stream, static_cast<uint64_t>(i), factor));
    }
  });
}

void ReferenceOps::copy(const VectorSpec& spec, const void* x, void* y) {
  require_valid(spec);
  std::memcpy(y, x, static_cast<size_t>(spec.n * spec.batch) * size_of(storage_of(spec.precision)));
}

void ReferenceOps::convert(const ConvertSpec& spec, const void* x, void* y) {
  require_valid(spec);
  with_type(spec.from, [&](auto from) {
    with_type(spec.to, [&](auto to) {
      for (int64_t i = 0; i < spec.n; ++i) store_element<decltype(to)>(y, i, load_element<decltype(from)>(x, i));
    });
  });
}

void ReferenceOps::triad(const VectorSpec& spec, float a, const void* x, const void* y, void* z) {
  require_valid(spec);
  map_2(spec, x, y, z, Triad<double>{a});
}

void ReferenceOps::axpy(const VectorSpec& spec, float a, const void* x, void* y) {
  require_valid(spec);
  map_2(spec, x, y, y, Axpy<double>{a});
}

void ReferenceOps::bias(const MatrixSpec& spec, const void* x, const void* bias, void* y) {
  require_valid(spec);
  with_type(storage_of(spec.precision), [&](auto element) {
    using T = decltype(element);
    for (int64_t i = 0; i < spec.rows * spec.columns; ++i) {
      store_element<T>(y, i, AddBias{}(load_element<T>(x, i), load_element<T>(bias, i % spec.columns)));
    }
  });
}

void ReferenceOps::relu_forward(const VectorSpec& spec, const void* x, void* y) {
  require_valid(spec);
  map_1(spec, x, y, ReluForward{});
}

void ReferenceOps::relu_backward(const VectorSpec& spec, const void* dy, const void* y, void* dx) {
  require_valid(spec);
  map_2(spec, dy, y, dx, ReluBackward{});
}

void ReferenceOps::gelu_forward(const VectorSpec& spec, const void* x, void* y) {
  require_valid(spec);
  map_1(spec, x, y, GeluForward{});
}

void ReferenceOps::gelu_backward(const VectorSpec& spec, const void* dy, const void* x, void* dx) {
  require_valid(spec);
  map_2(spec, dy, x, dx, GeluBackward{});
}

void ReferenceOps::reduce(const ReduceSpec& spec, const void* x, void* y) {
  require_valid(spec);
  const bool sum = spec.reduction == Reduction::sum;
  with_type(storage_of(spec.precision), [&](auto element) {
    using T = decltype(element);
    for (int64_t o = 0; o < spec.outer; ++o) {
      for (int64_t i = 0; i < spec.inner; ++i) {
        double result = sum ? 0 : -std::numeric_limits<double>::infinity();
        for (int64_t e = 0; e < spec.extent; ++e) {
          const double value = load_element<T>(x, (o * spec.extent + e) * spec.inner + i);
          result = sum ? result + value : MaxOfTwo{}(result, value);
        }
        store_element<T>(y, o * spec.inner + i, result);
      }
    }
  });
}

void ReferenceOps::dot(const VectorSpec& spec, const void* x, const void* y, void* out) {
  require_valid(spec);
  const RowSample sample(spec.batch, 2.0 * static_cast<double>(spec.n), options_.max_flops_per_op);
  with_type(storage_of(spec.precision), [&](auto element) {
    with_type(accumulate_of(spec.precision), [&](auto accumulator) {
      using T = decltype(element);
      for (int64_t b = 0; b < spec.batch; ++b) {
        if (!sample.contains(b)) continue;
        double sum = 0;
        for (int64_t i = b * spec.n; i < (b + 1) * spec.n; ++i) sum += load_element<T>(x, i) * load_element<T>(y, i);
        store_element<decltype(accumulator)>(out, b, sum);
      }
    });
  });
}

void ReferenceOps::gemv(const GemvSpec& spec, const void* a, const void* x, void* y) {
  require_valid(spec);
  const bool transposed = spec.trans == Transpose::yes;
  const int64_t outputs = transposed ? spec.n : spec.m, length = transposed ? spec.m : spec.n;
  const int64_t step = transposed ? spec.n : 1,
                row = transposed ? 1 : spec.n;  // of A, along the sum and between outputs
  const RowSample sample(outputs * spec.batch, 2.0 * static_cast<double>(length), options_.max_flops_per_op);
  with_type(storage_of(spec.precision), [&](auto element) {
    using T = decltype(element);
    for (int64_t b = 0; b < spec.batch; ++b) {
      const int64_t matrix = spec.shared_matrix ? 0 : b * spec.m * spec.n;
      for (int64_t o = 0; o < outputs; ++o) {
        if (!sample.contains(b * outputs + o)) continue;
        double sum = 0;
        for (int64_t l = 0; l < length; ++l) {
          sum += load_element<T>(a, matrix + o * row + l * step) * load_element<T>(x, b * length + l);
        }
        store_element<T>(y, b * outputs + o, sum);
      }
    }
  });
}

namespace {

/// Row `i` of op(A) op(B) of one matrix into sums[n]; each sum adds its products in the order of k.
template <typename T>
void product_row(const GemmSpec& s, const void* a, int64_t a0, const void* b, int64_t b0, int64_t i,
                 std::vector<double>& sums) {
  std::fill(sums.begin(), sums.end(), 0.0);
  for (int64_t p = 0; p < s.k; ++p) {
    const double left = load_element<T>(a, a0 + (s.trans_a == Transpose::no ? i * s.lda + p : p * s.lda + i));
    for (int64_t j = 0; j < s.n; ++j) {
      const int64_t at = s.trans_b == Transpose::no ? p * s.ldb + j : j * s.ldb + p;
      sums[static_cast<size_t>(j)] += left * load_element<T>(b, b0 + at);
    }
  }
}

}  // namespace

void ReferenceOps::gemm(const GemmSpec& spec, const void* a, const void* b, const void* bias, void* c,
                        void* pre_activation) {
  const GemmSpec s = spec.resolved();
  const bool has_bias = s.epilogue != Epilogue::none;
  if (has_bias && !bias && s.m * s.n * s.batch > 0) throw std::invalid_argument("gemm: the epilogue needs a bias");
  const double alpha = s.alpha, beta = s.beta;
  const RowSample sample(s.m * s.batch, 2.0 * static_cast<double>(s.n) * static_cast<double>(s.k),
                         options_.max_flops_per_op);
  std::vector<double> sums(static_cast<size_t>(s.n));
  with_type(storage_of(s.precision), [&](auto element) {
    using T = decltype(element);
    for (int64_t matrix = 0; matrix < s.batch; ++matrix) {
      for (int64_t i = 0; i < s.m; ++i) {
        if (!sample.contains(matrix * s.m + i)) continue;
        product_row<T>(s, a, matrix * s.stride_a, b, matrix * s.stride_b, i, sums);
        for (int64_t j = 0; j < s.n; ++j) {
          const int64_t at = matrix * s.stride_c + i * s.ldc + j;
          double value = alpha * sums[static_cast<size_t>(j)];
          if (beta != 0) value += beta * load_element<T>(c, at);
          if (has_bias) value += load_element<T>(bias, j);
          if (pre_activation) store_element<T>(pre_activation, at, value);
          store_element<T>(c, at, activated(s.epilogue, value));
        }
      }
    }
  });
}

Support ReferenceOps::supports_fma_unit(FmaUnit unit, Precision precision) const {
  const bool known_unit = unit == FmaUnit::vector_auto || unit == FmaUnit::scalar;
  if (known_unit && (precision == Precision::fp32 || precision == Precision::fp64)) return {};
  return {SupportLevel::no,
          fmt::format("reference counts with one scalar chain in fp32 or fp64; it has no {} unit for {}",
                      to_string(unit), to_string(precision))};
}

double ReferenceOps::fma_peak_flops(const FmaPeakSpec& spec) const {
  return 2.0 * static_cast<double>(spec.iterations);
}

int64_t ReferenceOps::fma_peak_outputs(const FmaPeakSpec&) const {
  return 1;
}

void ReferenceOps::fma_peak(const FmaPeakSpec& spec, void* out) {
  require_valid(spec);
  if (const Support support = supports_fma_unit(spec.unit, spec.precision); support.level == SupportLevel::no) {
    throw UnsupportedError(support.reason);
  }
  volatile double one_at_run_time = 1;
  const double one = one_at_run_time;
  double x = 0;
  for (int64_t t = 0; t < spec.iterations; ++t) x = std::fma(x, one, one);
  store_element<float>(out, 0, x);
}

}  // namespace dlbench
