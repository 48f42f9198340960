// Gradients of convolution, pooling and batch norm on `reference`, in both layouts.
#include <fmt/format.h>

#include "core/device/ops.h"
#include "finite_differences.h"

namespace dlbench {
namespace {

using namespace test;

constexpr ImageLayout kLayouts[] = {ImageLayout::nchw, ImageLayout::nhwc};

const char* name_of(ImageLayout layout) {
  return layout == ImageLayout::nchw ? "nchw" : "nhwc";
}

void check_conv2d(Conv2dSpec s) {
  s.precision = Precision::fp64;
  Ops& ops = reference_ops();
  for (const ImageLayout layout : kLayouts) {
    s.layout = layout;
    SCOPED_TRACE(fmt::format("{} {}x{}x{}x{} k={} r={} s={} stride={} pad={}", name_of(layout), s.n, s.c, s.h, s.w, s.k,
                             s.r, s.s, s.stride, s.pad));
    Values x = random_values(s.n * s.c * s.h * s.w, 1), w = random_values(s.k * s.c * s.r * s.s, 2);
    Values bias = random_values(s.k, 3);
    const Values dy = random_values(s.n * s.k * s.p() * s.q(), 4);
    const auto loss = [&] {
      Values y(dy.size());
      ops.conv2d_forward(s, x.data(), w.data(), s.bias ? bias.data() : nullptr, y.data(), nullptr);
      return weighted_sum(dy, y);
    };
    Values dx(x.size(), NAN), dw(w.size(), NAN), dbias(bias.size(), NAN);
    ops.conv2d_backward_data(s, dy.data(), w.data(), dx.data(), nullptr);
    ops.conv2d_backward_weights(s, x.data(), dy.data(), dw.data(), s.bias ? dbias.data() : nullptr, nullptr);
    expect_gradient("dx", dx, x, loss);
    expect_gradient("dw", dw, w, loss);
    if (s.bias) expect_gradient("dbias", dbias, bias, loss);
  }
}

TEST(Gradients, Conv2d) {
  check_conv2d({.n = 2, .c = 3, .h = 5, .w = 6, .k = 4, .r = 3, .s = 3, .stride = 1, .pad = 1, .bias = true});
  check_conv2d({.n = 2, .c = 2, .h = 7, .w = 6, .k = 3, .r = 3, .s = 3, .stride = 2, .pad = 1});
  check_conv2d({.n = 1, .c = 3, .h = 4, .w = 5, .k = 2, .r = 1, .s = 1, .stride = 1, .pad = 0});
  check_conv2d({.n = 2, .c = 2, .h = 6, .w = 5, .k = 2, .r = 1, .s = 1, .stride = 2, .pad = 0});
  check_conv2d({.n = 1, .c = 2, .h = 9, .w = 8, .k = 2, .r = 5, .s = 2, .stride = 3, .pad = 2, .bias = true});
  check_conv2d({.n = 1, .c = 1, .h = 4, .w = 4, .k = 1, .r = 4, .s = 4});
  check_conv2d(
      {.n = 1, .c = 1, .h = 5, .w = 5, .k = 1, .r = 2, .s = 2, .stride = 3, .pad = 0});  // gaps between windows
  check_conv2d(
      {.n = 1, .c = 1, .h = 2, .w = 2, .k = 1, .r = 5, .s = 5, .stride = 1, .pad = 2});  // more border than image
}

void check_pool(PoolSpec s) {
  s.precision = Precision::fp64;
  Ops& ops = reference_ops();
  for (const ImageLayout layout : kLayouts) {
    for (const Pooling pooling : {Pooling::max, Pooling::average}) {
      s.layout = layout;
      s.pooling = pooling;
      const bool max = pooling == Pooling::max;
      SCOPED_TRACE(fmt::format("{} {} r={} s={} stride={} pad={}", max ? "max" : "average", name_of(layout), s.r, s.s,
                               s.stride, s.pad));
      Values x = random_values(s.n * s.c * s.h * s.w, 1);
      const Values dy = random_values(s.n * s.c * s.p() * s.q(), 2);
      std::vector<uint8_t> index(dy.size());
      const auto loss = [&] {
        Values y(dy.size());
        ops.pool_forward(s, x.data(), y.data(), max ? index.data() : nullptr);
        return weighted_sum(dy, y);
      };
      loss();
      Values dx(x.size(), NAN);
      ops.pool_backward(s, dy.data(), max ? index.data() : nullptr, dx.data());
      expect_gradient("dx", dx, x, loss);
    }
  }
}

TEST(Gradients, Pool) {
  check_pool({.n = 2, .c = 3, .h = 6, .w = 5, .r = 2, .s = 2, .stride = 2});
  check_pool({.n = 1, .c = 2, .h = 7, .w = 7, .r = 3, .s = 3, .stride = 2, .pad = 1});  // windows overlap
  check_pool({.n = 1, .c = 2, .h = 5, .w = 8, .r = 2, .s = 3, .stride = 3, .pad = 1});
  check_pool({.n = 3, .c = 2, .h = 4, .w = 3, .r = 4, .s = 3});  // global
}

void check_batch_norm(ImageLayout layout, bool residual, Activation activation) {
  const BatchNormSpec s{.precision = Precision::fp64,
                        .layout = layout,
                        .n = 3,
                        .c = 4,
                        .h = 2,
                        .w = 3,
                        .residual = residual,
                        .activation = activation};
  SCOPED_TRACE(fmt::format("{}{}{}", name_of(layout), residual ? " residual" : "",
                           activation == Activation::relu ? " relu" : ""));
  Ops& ops = reference_ops();
  const int64_t count = s.n * s.c * s.h * s.w;
  Values x = random_values(count, 1), gamma = random_values(s.c, 2), beta = random_values(s.c, 3);
  Values added = random_values(count, 4), y(x.size()), mean(4), rstd(4);
  const Values dy = random_values(count, 5);
  const auto loss = [&] {
    Values running_mean(4), running_variance(4);
    ops.batch_norm_forward(s, x.data(), gamma.data(), beta.data(), residual ? added.data() : nullptr, y.data(),
                           running_mean.data(), running_variance.data(), mean.data(), rstd.data());
    return weighted_sum(dy, y);
  };
  loss();
  const bool relu = activation == Activation::relu;
  Values dx(x.size(), NAN), dadded(x.size(), NAN), dgamma(4, NAN), dbeta(4, NAN);
  ops.batch_norm_backward(s, dy.data(), x.data(), relu ? y.data() : nullptr, gamma.data(), mean.data(), rstd.data(),
                          dx.data(), residual ? dadded.data() : nullptr, dgamma.data(), dbeta.data());
  expect_gradient("dx", dx, x, loss);
  expect_gradient("dgamma", dgamma, gamma, loss);
  expect_gradient("dbeta", dbeta, beta, loss);
  if (residual) {
    expect_gradient("dresidual", dadded, added, loss);
  }
}

TEST(Gradients, BatchNorm) {
  for (const ImageLayout layout : kLayouts) {
    for (const bool residual : {false, true}) {
      for (const Activation activation : {Activation::none, Activation::relu}) {
        check_batch_norm(layout, residual, activation);
      }
    }
  }
}

TEST(Gradients, AWrongOneIsFound) {
  Values x = random_values(6, 1);
  const Values weights = random_values(6, 2);
  const auto loss = [&] {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += weights[i] * x[i] * x[i] * x[i];
    return sum;
  };
  Values gradient(6);
  for (size_t i = 0; i < x.size(); ++i) gradient[i] = 3 * weights[i] * x[i] * x[i];
  expect_gradient("cubes", gradient, x, loss);
  gradient[4] *= 1 + 1e-5;
  EXPECT_NE(compare_gradients("cubes", gradient, numeric_gradient(x, loss)), "");
  EXPECT_NE(compare_gradients("nothing", {0, 0}, {0, 0}), "");
  EXPECT_NE(compare_gradients("nan", {NAN, 0}, {1, 0}), "");
}

}  // namespace
}  // namespace dlbench
