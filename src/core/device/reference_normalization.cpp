// Batch and layer normalization of the reference.
//
// Forward: mean, then the mean square of the differences from it, both in double. Backward, of n values that share a
// mean and a variance, with g the gradient of the normalized value xhat (Ioffe & Szegedy 2015, section 3):
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat)).
#include <cmath>
#include <vector>

#include "core/device/reference_elements.h"
#include "core/device/reference_ops.h"
#include "core/math/activation.h"

namespace dlbench {

namespace {

struct Moments {
  double mean = 0, variance = 0;  ///< variance biased
};

Moments moments_of(const std::vector<double>& values) {
  const double count = static_cast<double>(values.size());
  Moments m;
  for (const double value : values) m.mean += value;
  m.mean /= count;
  for (const double value : values) m.variance += (value - m.mean) * (value - m.mean);
  m.variance /= count;
  return m;
}

double load_one(DType type, const void* array, int64_t i) {
  double value = 0;
  load_run(type, array, {i, 1, 1}, &value);
  return value;
}
void store_one(DType type, void* array, int64_t i, double value) {
  store_run(type, array, {i, 1, 1}, &value);
}

/// The values of channel c, image by image.
class Channel {
 public:
  Channel(const BatchNormSpec& s, int64_t c) : images_(s.n), pixels_(s.h * s.w) {
    const bool nchw = s.layout == ImageLayout::nchw;
    run_ = {nchw ? c * pixels_ : c, pixels_, nchw ? 1 : s.c};
    image_step_ = s.c * pixels_;
  }
  std::vector<double> load(DType type, const void* array) const {
    std::vector<double> values(static_cast<size_t>(images_ * pixels_));
    for (int64_t n = 0; n < images_; ++n) load_run(type, array, image(n), values.data() + n * pixels_);
    return values;
  }
  void store(DType type, void* array, const std::vector<double>& values) const {
    for (int64_t n = 0; n < images_; ++n) store_run(type, array, image(n), values.data() + n * pixels_);
  }

 private:
  Run image(int64_t n) const { return {run_.first + n * image_step_, run_.count, run_.step}; }
  int64_t images_, pixels_, image_step_;
  Run run_;
};

/// dx of values x that share `mean` and `rstd`; g is the gradient of the normalized values.
std::vector<double> normalization_gradient(const std::vector<double>& x, const std::vector<double>& g, double mean,
                                           double rstd) {
  const double count = static_cast<double>(x.size());
  double mean_g = 0, mean_g_xhat = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mean_g += g[i];
    mean_g_xhat += g[i] * (x[i] - mean) * rstd;
  }
  mean_g /= count;
  mean_g_xhat /= count;
  std::vector<double> dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) dx[i] = rstd * (g[i] - mean_g - (x[i] - mean) * rstd * mean_g_xhat);
  return dx;
}

}  // namespace

void ReferenceOps::batch_norm_forward(const BatchNormSpec& s, const void* x, const void* gamma, const void* beta,
                                      const void* residual, void* y, void* running_mean, void* running_variance,
                                      void* saved_mean, void* saved_rstd) {
  require_valid(s);
  const DType type = storage_of(s.precision), statistics = accumulate_of(s.precision);
  const double count = static_cast<double>(s.n * s.h * s.w), momentum = s.momentum;
  const auto follow = [&](void* running, int64_t c, double value) {
    store_one(statistics, running, c, (1 - momentum) * load_one(statistics, running, c) + momentum * value);
  };
  for (int64_t c = 0; c < s.c; ++c) {
    const Channel channel(s, c);
    std::vector<double> values = channel.load(type, x);
    const std::vector<double> added = s.residual ? channel.load(type, residual) : std::vector<double>();
    const Moments m = moments_of(values);
    const double rstd = 1 / std::sqrt(m.variance + static_cast<double>(s.epsilon));
    const double scale = load_one(type, gamma, c), shift = load_one(type, beta, c);
    for (size_t i = 0; i < values.size(); ++i) {
      double value = scale * (values[i] - m.mean) * rstd + shift;
      if (s.residual) value += added[i];
      values[i] = s.activation == Activation::relu ? ReluForward{}(value) : value;
    }
    channel.store(type, y, values);
    follow(running_mean, c, m.mean);
    follow(running_variance, c, m.variance * count / (count - 1));
    store_one(statistics, saved_mean, c, m.mean);
    store_one(statistics, saved_rstd, c, rstd);
  }
}

void ReferenceOps::batch_norm_backward(const BatchNormSpec& s, const void* dy, const void* x, const void* y,
                                       const void* gamma, const void* saved_mean, const void* saved_rstd, void* dx,
                                       void* dresidual, void* dgamma, void* dbeta) {
  require_valid(s);
  const DType type = storage_of(s.precision), statistics = accumulate_of(s.precision);
  for (int64_t c = 0; c < s.c; ++c) {
    const Channel channel(s, c);
    const std::vector<double> values = channel.load(type, x);
    std::vector<double> gradient = channel.load(type, dy);
    if (s.activation == Activation::relu) {
      const std::vector<double> outputs = channel.load(type, y);
      for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = ReluBackward{}(gradient[i], outputs[i]);
    }
    if (s.residual) channel.store(type, dresidual, gradient);
    const double mean = load_one(statistics, saved_mean, c), rstd = load_one(statistics, saved_rstd, c);
    const double scale = load_one(type, gamma, c);
    double sum = 0, sum_xhat = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      sum += gradient[i];
      sum_xhat += gradient[i] * (values[i] - mean) * rstd;
      gradient[i] *= scale;
    }
    channel.store(type, dx, normalization_gradient(values, gradient, mean, rstd));
    store_one(type, dgamma, c, sum_xhat);
    store_one(type, dbeta, c, sum);
  }
}

void ReferenceOps::layer_norm_forward(const LayerNormSpec& s, const void* x, const void* residual, const void* gamma,
                                      const void* beta, void* sum, void* y, void* saved_mean, void* saved_rstd) {
  require_valid(s);
  const DType type = storage_of(s.precision), statistics = accumulate_of(s.precision);
  const std::vector<double> scale = load_run(type, gamma, {0, s.columns, 1});
  const std::vector<double> shift = load_run(type, beta, {0, s.columns, 1});
  for (int64_t row = 0; row < s.rows; ++row) {
    const Run run{row * s.columns, s.columns, 1};
    std::vector<double> values = load_run(type, x, run);
    if (s.residual) {
      const std::vector<double> added = load_run(type, residual, run);
      for (size_t i = 0; i < values.size(); ++i) values[i] += added[i];
      store_run(type, sum, run, values);
      values = load_run(type, sum, run);  // what is normalized is the sum as stored: backward sees no other
    }
    const Moments m = moments_of(values);
    const double rstd = 1 / std::sqrt(m.variance + static_cast<double>(s.epsilon));
    for (size_t i = 0; i < values.size(); ++i) values[i] = scale[i] * (values[i] - m.mean) * rstd + shift[i];
    store_run(type, y, run, values);
    store_one(statistics, saved_mean, row, m.mean);
    store_one(statistics, saved_rstd, row, rstd);
  }
}

void ReferenceOps::layer_norm_backward(const LayerNormSpec& s, const void* dy, const void* x, const void* gamma,
                                       const void* saved_mean, const void* saved_rstd, const void* dx_add, void* dx,
                                       void* dgamma, void* dbeta) {
  require_valid(s);
  const DType type = storage_of(s.precision), statistics = accumulate_of(s.precision);
  const std::vector<double> scale = load_run(type, gamma, {0, s.columns, 1});
  std::vector<double> sum(scale.size()), sum_xhat(scale.size());
  for (int64_t row = 0; row < s.rows; ++row) {
    const Run run{row * s.columns, s.columns, 1};
    const std::vector<double> values = load_run(type, x, run);
    std::vector<double> gradient = load_run(type, dy, run);
    const double mean = load_one(statistics, saved_mean, row), rstd = load_one(statistics, saved_rstd, row);
    for (size_t i = 0; i < values.size(); ++i) {
      sum[i] += gradient[i];
      sum_xhat[i] += gradient[i] * (values[i] - mean) * rstd;
      gradient[i] *= scale[i];
    }
    std::vector<double> result = normalization_gradient(values, gradient, mean, rstd);
    if (dx_add) {
      const std::vector<double> added = load_run(type, dx_add, run);
      for (size_t i = 0; i < result.size(); ++i) result[i] += added[i];
    }
    store_run(type, dx, run, result);
  }
  store_run(type, dgamma, {0, s.columns, 1}, sum_xhat);
  store_run(type, dbeta, {0, s.columns, 1}, sum);
}

}  // namespace dlbench
