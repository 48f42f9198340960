// Convolution, pooling and batch normalization of the CPU against plain loops in double: every pass, both layouts, odd
// shapes, every way in which an image is cut; equal bits for any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/tensor/tensor.h"
#include "cpu/device.h"

namespace dlbench::cpu {
namespace {

HostTensor random_tensor(int64_t n, DType type, uint64_t stream) {
  HostTensor t({n}, type);
  for (int64_t i = 0; i < n; ++i)
    t.set(i,
          static_cast<double>(normal_value(1, stream, static_cast<uint64_t>(i), static_cast<float>(kIrwinHallScale))));
  return t;
}

/// Element (n, c, y, x) of images or filters [n, c, h, w] in either layout.
int64_t at(ImageLayout layout, int64_t channels, int64_t h, int64_t w, int64_t n, int64_t c, int64_t y, int64_t x) {
  return layout == ImageLayout::nchw ? ((n * channels + c) * h + y) * w + x : ((n * h + y) * w + x) * channels + c;
}

struct Problem {
  Conv2dSpec s;
  HostTensor x, w, bias, dy;
  explicit Problem(const Conv2dSpec& spec) : s(spec) {
    const DType type = storage_of(s.precision);
    x = random_tensor(s.n * s.c * s.h * s.w, type, 1);
    w = random_tensor(s.k * s.c * s.r * s.s, type, 2);
    bias = random_tensor(s.k, type, 3);
    dy = random_tensor(s.n * s.k * s.p() * s.q(), type, 4);
  }
  int64_t x_at(int64_t n, int64_t c, int64_t h, int64_t v) const { return at(s.layout, s.c, s.h, s.w, n, c, h, v); }
  int64_t w_at(int64_t k, int64_t c, int64_t r, int64_t q) const { return at(s.layout, s.c, s.r, s.s, k, c, r, q); }
  int64_t y_at(int64_t n, int64_t k, int64_t p, int64_t q) const { return at(s.layout, s.k, s.p(), s.q(), n, k, p, q); }
  /// visit(n, k, p, q, c, r, s, h, w) for every product of the convolution.
  template <typename Visit>
  void products(const Visit& visit) const {
    for (int64_t n = 0; n < s.n; ++n)
      for (int64_t k = 0; k < s.k; ++k)
        for (int64_t p = 0; p < s.p(); ++p)
          for (int64_t q = 0; q < s.q(); ++q)
            for (int64_t r = 0; r < s.r; ++r)
              for (int64_t t = 0; t < s.s; ++t) {
                const int64_t h = p * s.stride + r - s.pad, v = q * s.stride + t - s.pad;
                if (h < 0 || h >= s.h || v < 0 || v >= s.w) continue;
                for (int64_t c = 0; c < s.c; ++c) visit(x_at(n, c, h, v), w_at(k, c, r, t), y_at(n, k, p, q));
              }
  }
};

void compare(const std::string& what, const HostTensor& got, const std::vector<double>& expected, Precision precision,
             int64_t length, double at_least = 0) {
  double magnitude = 0;
  for (const double v : expected) magnitude += v * v;
  magnitude = std::sqrt(magnitude / static_cast<double>(std::max<size_t>(1, expected.size())));
  magnitude = std::max(magnitude, at_least);
  const double u = info(precision).unit_roundoff,
               sum_u = accumulate_of(precision) == DType::f64 ? u : 5.9604644775390625e-08;
  const double tolerance = 8 * (u + sum_u * std::sqrt(static_cast<double>(length)));
  int wrong = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(expected.size()); ++i) {
    const double e = expected[static_cast<size_t>(i)];
    if (!(std::fabs(got.at(i) - e) <= tolerance * std::max(magnitude, std::fabs(e))) && wrong++ < 3)
      ADD_FAILURE() << what << ": [" << i << "] is " << got.at(i) << ", not " << e;
  }
}

/// A tensor between two guard zones, at an address aligned to its element only.
struct Guarded {
  static constexpr int64_t kGuard = 67;
  HostTensor all;
  int64_t n, e;
  Guarded(int64_t count, DType type)
      : all({count + 2 * kGuard}, type), n(count), e(static_cast<int64_t>(size_of(type))) {
    std::memset(all.data(), 0x5A, all.bytes());
  }
  void* data() { return static_cast<char*>(all.data()) + kGuard * e; }
  HostTensor take(const std::string& what) {
    HostTensor inner({n}, all.dtype());
    std::memcpy(inner.data(), data(), inner.bytes());
    for (int64_t i = 0; i < kGuard * e; ++i) {
      EXPECT_EQ(static_cast<char*>(all.data())[i], 0x5A) << what << " wrote before its output";
      EXPECT_EQ(static_cast<char*>(all.data())[(kGuard + n) * e + i], 0x5A) << what << " wrote behind its output";
      if (::testing::Test::HasFailure()) break;
    }
    return inner;
  }
};

std::string name_of(const Conv2dSpec& s) {
  return std::string(to_string(s.precision)) + (s.layout == ImageLayout::nchw ? " nchw" : " nhwc") + " n" +
         std::to_string(s.n) + " c" + std::to_string(s.c) + " " + std::to_string(s.h) + "x" + std::to_string(s.w) +
         " k" + std::to_string(s.k) + " " + std::to_string(s.r) + "x" + std::to_string(s.s) + " stride " +
         std::to_string(s.stride) + " pad " + std::to_string(s.pad);
}

struct Workspace {
  static constexpr size_t kGuard = 256;
  size_t bytes;
  std::vector<unsigned char> memory;
  Workspace(Ops& ops, const Conv2dSpec& s, ConvPass pass)
      : bytes(static_cast<size_t>(ops.conv2d_workspace_bytes(s, pass))), memory(bytes + kGuard, 0xFF) {}
  void* data() { return memory.data(); }
  void check(const std::string& what) {
    for (size_t i = bytes; i < memory.size(); ++i) ASSERT_EQ(memory[i], 0xFF) << what << " wrote behind its workspace";
  }
};

void check_conv(CpuDevice& device, const Conv2dSpec& s) {
  const Problem p(s);
  const DType type = storage_of(s.precision);
  Ops& ops = device.ops();
  std::vector<double> y(static_cast<size_t>(p.dy.size())), dx(static_cast<size_t>(p.x.size())),
      dw(static_cast<size_t>(p.w.size())), dbias(static_cast<size_t>(s.k));
  p.products([&](int64_t ix, int64_t iw, int64_t iy) {
    y[static_cast<size_t>(iy)] += p.x.at(ix) * p.w.at(iw);
    dx[static_cast<size_t>(ix)] += p.dy.at(iy) * p.w.at(iw);
    dw[static_cast<size_t>(iw)] += p.dy.at(iy) * p.x.at(ix);
  });
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t k = 0; k < s.k; ++k)
      for (int64_t i = 0; i < s.p(); ++i)
        for (int64_t j = 0; j < s.q(); ++j) {
          double& value = y[static_cast<size_t>(p.y_at(n, k, i, j))];
          if (s.bias) value += p.bias.at(k);
          if (s.activation == Activation::relu) value = std::max(value, 0.0);
          dbias[static_cast<size_t>(k)] += p.dy.at(p.y_at(n, k, i, j));
        }
  const std::string name = name_of(s);
  {
    Workspace workspace(ops, s, ConvPass::forward);
    Guarded out(p.dy.size(), type);
    ops.conv2d_forward(s, p.x.data(), p.w.data(), s.bias ? p.bias.data() : nullptr, out.data(), workspace.data());
    workspace.check(name + " forward");
    compare(name + " forward", out.take(name + " forward"), y, s.precision, s.c * s.r * s.s);
  }
  {
    Workspace workspace(ops, s, ConvPass::backward_data);
    Guarded out(p.x.size(), type);
    ops.conv2d_backward_data(s, p.dy.data(), p.w.data(), out.data(), workspace.data());
    workspace.check(name + " backward_data");
    compare(name + " backward_data", out.take(name + " backward_data"), dx, s.precision, s.k * s.r * s.s);
  }
  {
    Workspace workspace(ops, s, ConvPass::backward_weights);
    Guarded out(p.w.size(), type), bias_out(s.k, type);
    ops.conv2d_backward_weights(s, p.x.data(), p.dy.data(), out.data(), s.bias ? bias_out.data() : nullptr,
                                workspace.data());
    workspace.check(name + " backward_weights");
    compare(name + " backward_weights", out.take(name + " backward_weights"), dw, s.precision, s.n * s.p() * s.q());
    if (s.bias) compare(name + " dbias", bias_out.take(name + " dbias"), dbias, s.precision, s.n * s.p() * s.q());
  }
}

std::vector<Conv2dSpec> shapes() {
  return {
      {.n = 1, .c = 1, .h = 1, .w = 1, .k = 1},
      {.n = 2, .c = 3, .h = 9, .w = 7, .k = 5, .r = 3, .s = 3, .stride = 1, .pad = 1, .bias = true},
      {.n = 1, .c = 3, .h = 23, .w = 21, .k = 33, .r = 7, .s = 7, .stride = 2, .pad = 3},
      {.n = 3, .c = 37, .h = 5, .w = 6, .k = 35, .bias = true, .activation = Activation::relu},
      {.n = 2, .c = 33, .h = 8, .w = 9, .k = 18, .r = 3, .s = 3, .stride = 2, .pad = 1},
      {.n = 2,
       .c = 17,
       .h = 9,
       .w = 10,
       .k = 40,
       .r = 3,
       .s = 3,
       .stride = 1,
       .pad = 1,
       .activation = Activation::relu},
      {.n = 2, .c = 34, .h = 7, .w = 8, .k = 20, .stride = 2},
      {.n = 1, .c = 20, .h = 7, .w = 8, .k = 20, .stride = 3, .pad = 1},
      {.n = 1, .c = 5, .h = 11, .w = 12, .k = 7, .r = 2, .s = 3, .stride = 4, .pad = 2},
      {.n = 1, .c = 18, .h = 6, .w = 5, .k = 3, .r = 6, .s = 5},
      {.n = 1, .c = 2, .h = 4, .w = 4, .k = 2, .r = 5, .s = 4, .stride = 3, .pad = 3},
      {.n = 1, .c = 40, .h = 6, .w = 30, .k = 65, .r = 1, .s = 3, .pad = 1},
      {.n = 1, .c = 20, .h = 13, .w = 4, .k = 16, .r = 3, .s = 1, .pad = 0},
      {.n = 0, .c = 4, .h = 5, .w = 5, .k = 4, .r = 3, .s = 3, .bias = true},
      {.n = 2, .c = 0, .h = 5, .w = 5, .k = 4, .r = 3, .s = 3, .bias = true},
      {.n = 2, .c = 4, .h = 5, .w = 5, .k = 0, .r = 3, .s = 3},
  };
}

class ConvTest : public testing::TestWithParam<Precision> {
 protected:
  CpuDevice device_{DeviceOptions{}};
};

TEST_P(ConvTest, EveryPassOnOddShapes) {
  for (Conv2dSpec s : shapes()) {
    s.precision = GetParam();
    for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
      s.layout = layout;
      check_conv(device_, s);
      if (HasFailure()) return;
    }
  }
}

TEST_P(ConvTest, ImagesInSeveralBlocks) {
  // More bytes than a block, pixels that would collide in a cache, several splits of the gradient.
  for (Conv2dSpec s :
       std::vector<Conv2dSpec>{{.n = 2, .c = 64, .h = 60, .w = 40, .k = 15, .r = 3, .s = 3, .pad = 1},
                               {.n = 1, .c = 3, .h = 90, .w = 100, .k = 18, .r = 5, .s = 5, .stride = 2, .pad = 2},
                               {.n = 2, .c = 1024, .h = 9, .w = 7, .k = 20},
                               {.n = 2, .c = 512, .h = 10, .w = 7, .k = 20, .stride = 2},
                               {.n = 9, .c = 256, .h = 5, .w = 5, .k = 17, .r = 3, .s = 3, .pad = 1},
                               {.n = 40, .c = 32, .h = 7, .w = 7, .k = 40, .r = 3, .s = 3, .pad = 1}}) {
    s.precision = GetParam();
    check_conv(device_, s);
    if (HasFailure()) return;
  }
}

TEST_P(ConvTest, TwoCallsAllocateOnceAndAnyNumberOfThreadsGivesEqualBits) {
  const Conv2dSpec s{.precision = GetParam(),
                     .layout = ImageLayout::nhwc,
                     .n = 5,
                     .c = 33,
                     .h = 30,
                     .w = 31,
                     .k = 40,
                     .r = 3,
                     .s = 3,
                     .stride = 2,
                     .pad = 1,
                     .bias = true};
  const Problem p(s);
  std::vector<HostTensor> first;
  for (const int threads : {1, device_.info().threads}) {
    CpuDevice device({.threads = threads});
    Ops& ops = device.ops();
    HostTensor y = p.dy, dx = p.x, dw = p.w, dbias = p.bias;
    const auto run = [&] {
      Workspace forward(ops, s, ConvPass::forward), data(ops, s, ConvPass::backward_data),
          weights(ops, s, ConvPass::backward_weights);
      ops.conv2d_forward(s, p.x.data(), p.w.data(), p.bias.data(), y.data(), forward.data());
      ops.conv2d_backward_data(s, p.dy.data(), p.w.data(), dx.data(), data.data());
      ops.conv2d_backward_weights(s, p.x.data(), p.dy.data(), dw.data(), dbias.data(), weights.data());
    };
    run();
    const int64_t before = device.allocation_count();
    run();
    EXPECT_EQ(device.allocation_count(), before);
    const std::vector<HostTensor> results{y, dx, dw, dbias};
    if (first.empty()) first = results;
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(std::memcmp(results[i].data(), first[i].data(), results[i].bytes()), 0) << i;
  }
}

TEST_P(ConvTest, Pooling) {
  struct Case {
    int64_t n, c, h, w, r, s, stride, pad;
  };
  for (const Case& c : std::vector<Case>{{2, 3, 6, 7, 2, 2, 2, 0},
                                         {1, 65, 9, 8, 3, 3, 2, 1},
                                         {2, 70, 5, 6, 5, 6, 1, 0},
                                         {1, 130, 4, 4, 3, 2, 1, 1},
                                         {2, 5, 9, 9, 2, 2, 3, 0},
                                         {0, 5, 9, 9, 2, 2, 3, 0},
                                         {1, 1, 1, 1, 1, 1, 1, 0}}) {
    for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
      for (const Pooling pooling : {Pooling::max, Pooling::average}) {
        const PoolSpec s{.precision = GetParam(),
                         .layout = layout,
                         .pooling = pooling,
                         .n = c.n,
                         .c = c.c,
                         .h = c.h,
                         .w = c.w,
                         .r = c.r,
                         .s = c.s,
                         .stride = c.stride,
                         .pad = c.pad};
        const DType type = storage_of(GetParam());
        HostTensor x = random_tensor(c.n * c.c * c.h * c.w, type, 1);
        for (int64_t i = 0; i + 1 < x.size(); i += 3) x.set(i + 1, x.at(i));  // equal values
        const int64_t outputs = c.n * c.c * s.p() * s.q();
        const HostTensor dy = random_tensor(outputs, type, 2);
        std::vector<double> y(static_cast<size_t>(outputs)), dx(static_cast<size_t>(x.size()));
        std::vector<int> places(static_cast<size_t>(outputs));
        for (int64_t n = 0; n < c.n; ++n)
          for (int64_t k = 0; k < c.c; ++k)
            for (int64_t p = 0; p < s.p(); ++p)
              for (int64_t q = 0; q < s.q(); ++q) {
                const auto out = static_cast<size_t>(at(layout, c.c, s.p(), s.q(), n, k, p, q));
                double best = -INFINITY, sum = 0;
                for (int64_t r = 0; r < c.r; ++r)
                  for (int64_t t = 0; t < c.s; ++t) {
                    const int64_t h = p * c.stride + r - c.pad, w = q * c.stride + t - c.pad;
                    if (h < 0 || h >= c.h || w < 0 || w >= c.w) continue;
                    const int64_t i = at(layout, c.c, c.h, c.w, n, k, h, w);
                    sum += x.at(i);
                    if (x.at(i) > best) best = x.at(i), places[out] = static_cast<int>(r * c.s + t);
                    if (pooling == Pooling::average)
                      dx[static_cast<size_t>(i)] += dy.at(static_cast<int64_t>(out)) / static_cast<double>(c.r * c.s);
                  }
                y[out] = pooling == Pooling::max ? best : sum / static_cast<double>(c.r * c.s);
                if (pooling == Pooling::max) {
                  const int64_t h = p * c.stride + places[out] / c.s - c.pad,
                                w = q * c.stride + places[out] % c.s - c.pad;
                  dx[static_cast<size_t>(at(layout, c.c, c.h, c.w, n, k, h, w))] += dy.at(static_cast<int64_t>(out));
                }
              }
        const bool max = pooling == Pooling::max;
        const std::string name = std::string(max ? "max" : "average") + " " + std::to_string(c.c) + " " +
                                 std::to_string(c.h) + (layout == ImageLayout::nchw ? " nchw" : " nhwc");
        Guarded got_y(outputs, type), got_dx(x.size(), type);
        std::vector<uint8_t> index(static_cast<size_t>(outputs) + 1, 99);
        device_.ops().pool_forward(s, x.data(), got_y.data(), max ? index.data() : nullptr);
        device_.ops().pool_backward(s, dy.data(), max ? index.data() : nullptr, got_dx.data());
        compare(name + " forward", got_y.take(name), y, GetParam(), c.r * c.s);
        compare(name + " backward", got_dx.take(name), dx, GetParam(), c.r * c.s);
        EXPECT_EQ(index.back(), 99);
        for (size_t i = 0; max && i < places.size(); ++i) ASSERT_EQ(index[i], places[i]) << name << " " << i;
      }
    }
  }
}

TEST_P(ConvTest, NaNWinsAMaximum) {
  const PoolSpec s{
      .precision = GetParam(), .layout = ImageLayout::nhwc, .n = 1, .c = 1, .h = 2, .w = 2, .r = 2, .s = 2};
  for (int64_t place = 0; place < 4; ++place) {
    HostTensor x({4}, storage_of(GetParam())), y({1}, storage_of(GetParam()));
    for (int64_t i = 0; i < 4; ++i) x.set(i, i == place ? NAN : 1.0);
    uint8_t index = 99;
    device_.ops().pool_forward(s, x.data(), y.data(), &index);
    EXPECT_TRUE(std::isnan(y.at(0)));
    EXPECT_EQ(index, place);
  }
}

struct Norm {
  int64_t n, c, h, w;
  double offset;  ///< of x: its mean is far larger than its deviation
};

TEST_P(ConvTest, BatchNorm) {
  const bool wide = GetParam() == Precision::fp32 || GetParam() == Precision::fp64;
  for (const Norm& c : std::vector<Norm>{{2, 5, 3, 4, 0},
                                         {1, 1, 1, 2, 0},
                                         {3, 70, 9, 8, wide ? 1000.0 : 1.0},
                                         {2, 600, 12, 7, 0},
                                         {2, 0, 3, 3, 0},
                                         {3, 33, 30, 20, 0}}) {
    for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
      for (const bool residual : {false, true}) {
        for (const Activation activation : {Activation::none, Activation::relu}) {
          const BatchNormSpec s{.precision = GetParam(),
                                .layout = layout,
                                .n = c.n,
                                .c = c.c,
                                .h = c.h,
                                .w = c.w,
                                .residual = residual,
                                .activation = activation};
          const DType type = storage_of(GetParam()), statistic = accumulate_of(GetParam());
          const int64_t size = c.n * c.c * c.h * c.w, values = c.n * c.h * c.w;
          HostTensor x = random_tensor(size, type, 1);
          for (int64_t i = 0; i < size; ++i) x.set(i, x.at(i) + c.offset);
          const HostTensor gamma = random_tensor(c.c, type, 2), beta = random_tensor(c.c, type, 3),
                           add = random_tensor(size, type, 4), dy = random_tensor(size, type, 5);
          HostTensor running_mean = random_tensor(c.c, statistic, 6),
                     running_variance = random_tensor(c.c, statistic, 7);
          std::vector<double> mean_expected, variance_expected, y(static_cast<size_t>(size)),
              dx(static_cast<size_t>(size)), masked(static_cast<size_t>(size)), dgamma, dbeta;
          HostTensor saved_mean({c.c}, statistic), saved_rstd({c.c}, statistic);
          Guarded got_y(size, type);
          const HostTensor old_mean = running_mean, old_variance = running_variance;
          device_.ops().batch_norm_forward(s, x.data(), gamma.data(), beta.data(), residual ? add.data() : nullptr,
                                           got_y.data(), running_mean.data(), running_variance.data(),
                                           saved_mean.data(), saved_rstd.data());
          const HostTensor y_tensor = got_y.take("batch_norm");
          for (int64_t k = 0; k < c.c; ++k) {
            std::vector<int64_t> places;
            for (int64_t n = 0; n < c.n; ++n)
              for (int64_t h = 0; h < c.h; ++h)
                for (int64_t w = 0; w < c.w; ++w) places.push_back(at(layout, c.c, c.h, c.w, n, k, h, w));
            long double exact = 0;
            for (const int64_t i : places) exact += static_cast<long double>(x.at(i));
            const double mean = static_cast<double>(exact / static_cast<long double>(values));
            double variance = 0, sum = 0, product = 0;
            for (const int64_t i : places) variance += (x.at(i) - mean) * (x.at(i) - mean);
            const double unbiased = variance / static_cast<double>(values - 1);
            variance /= static_cast<double>(values);
            const double rstd = 1 / std::sqrt(variance + static_cast<double>(s.epsilon));
            for (const int64_t i : places) {
              double& value = y[static_cast<size_t>(i)];
              value = gamma.at(k) * (x.at(i) - mean) * rstd + beta.at(k) + (residual ? add.at(i) : 0);
              if (activation == Activation::relu) value = std::max(value, 0.0);
              const double g = activation == Activation::relu && !(y_tensor.at(i) > 0) ? 0 : dy.at(i);
              masked[static_cast<size_t>(i)] = g;
              sum += g, product += g * (x.at(i) - mean) * rstd;
            }
            for (const int64_t i : places)
              dx[static_cast<size_t>(i)] = gamma.at(k) * rstd *
                                           (masked[static_cast<size_t>(i)] - sum / static_cast<double>(values) -
                                            (x.at(i) - mean) * rstd * product / static_cast<double>(values));
            dgamma.push_back(product), dbeta.push_back(sum);
            const double momentum = static_cast<double>(s.momentum);
            mean_expected.push_back((1 - momentum) * old_mean.at(k) + momentum * mean);
            variance_expected.push_back((1 - momentum) * old_variance.at(k) + momentum * unbiased);
          }
          // An offset costs digits that no method can keep: x itself is rounded to them.
          const int64_t length = static_cast<int64_t>(static_cast<double>(values) * (1 + c.offset * c.offset / 50));
          const std::string name = "batch_norm c" + std::to_string(c.c) +
                                   (layout == ImageLayout::nchw ? " nchw" : " nhwc") + (residual ? " residual" : "");
          const Precision statistics = statistic == DType::f64 ? Precision::fp64 : Precision::fp32;
          compare(name + " y", y_tensor, y, GetParam(), length);
          compare(name + " mean", running_mean, mean_expected, statistics, values);
          compare(name + " variance", running_variance, variance_expected, statistics, length);
          Guarded got_dx(size, type), got_residual(size, type), got_gamma(c.c, type), got_beta(c.c, type);
          device_.ops().batch_norm_backward(
              s, dy.data(), x.data(), activation == Activation::relu ? y_tensor.data() : nullptr, gamma.data(),
              saved_mean.data(), saved_rstd.data(), got_dx.data(), residual ? got_residual.data() : nullptr,
              got_gamma.data(), got_beta.data());
          // dx is a difference of terms of this size; of two values it is next to nothing.
          double term = 0;
          for (int64_t k = 0; k < c.c; ++k) term = std::max(term, std::fabs(gamma.at(k)) * saved_rstd.at(k));
          compare(name + " dx", got_dx.take(name), dx, GetParam(), length, values == 2 ? term : 0);
          compare(name + " dgamma", got_gamma.take(name), dgamma, GetParam(), length);
          compare(name + " dbeta", got_beta.take(name), dbeta, GetParam(), length);
          if (residual) compare(name + " dresidual", got_residual.take(name), masked, GetParam(), 1);
          if (HasFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, ConvTest,
                         testing::Values(Precision::fp32, Precision::fp64, Precision::bf16, Precision::fp16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST(Conv, Tf32IsRefusedAndAForgottenBiasIsAnError) {
  CpuDevice device{DeviceOptions{}};
  float x[4] = {};
  Conv2dSpec s{.precision = Precision::tf32, .n = 1, .c = 1, .h = 1, .w = 1, .k = 1};
  EXPECT_THROW(device.ops().conv2d_forward(s, x, x, nullptr, x, nullptr), UnsupportedError);
  s.precision = Precision::fp32, s.bias = true;
  EXPECT_THROW(device.ops().conv2d_forward(s, x, x, nullptr, x, nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace dlbench::cpu
