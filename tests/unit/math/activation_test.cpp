// Activations in float against the formulas in long double, with the bounds that activation.h promises.
#include "core/math/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/math/elementwise.h"

namespace dlbench {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kFloatUlpOfOne = 1.1920928955078125e-07;

using Wide = long double;

Wide gelu_by_tanh(Wide x) {
  const Wide z = std::sqrt(2 / std::acos(Wide(-1))) * (x + Wide(0.044715) * x * x * x);
  return x / 2 * (1 + std::tanh(z));
}

Wide gelu_derivative_by_tanh(Wide x) {
  const Wide scale = std::sqrt(2 / std::acos(Wide(-1)));
  const Wide t = std::tanh(scale * (x + Wide(0.044715) * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * scale * (1 + 3 * Wide(0.044715) * x * x);
}

double ulp_of(Wide value) {
  const float f = std::fabs(static_cast<float>(value));
  return std::max(static_cast<double>(std::nextafterf(f, kInfinity)) - f, std::ldexp(1.0, -149));
}

TEST(Exp, WithinFourUlpFromUnderflowToTheLargestArgument) {
  double worst = 0;
  for (float x = -103.0f; x <= 88.7f; x += 0.000731f) {
    const Wide expected = std::exp(static_cast<Wide>(x));
    worst = std::max(worst, std::fabs(static_cast<double>(exp_float(x) - expected)) / ulp_of(expected));
  }
  EXPECT_LT(worst, 4.0);
}

TEST(Exp, Ends) {
  EXPECT_EQ(exp_float(0.0f), 1.0f);
  EXPECT_EQ(exp_float(-1000.0f), 0.0f);
  EXPECT_EQ(exp_float(-kInfinity), 0.0f);
  EXPECT_EQ(exp_float(104.0f), kInfinity);
  EXPECT_TRUE(std::isnan(exp_float(kNaN)));
}

TEST(Sigmoid, WithinFourUlp) {
  double worst = 0;
  for (float v = -85.0f; v <= 85.0f; v += 0.000937f) {
    const Wide expected = 1 / (1 + std::exp(-static_cast<Wide>(v)));
    worst = std::max(worst, std::fabs(static_cast<double>(sigmoid(v) - expected)) / ulp_of(expected));
  }
  EXPECT_LT(worst, 4.0);
}

TEST(Gelu, FloatWithinEightUlpOfOneOrOfTheValue) {
  double worst_value = 0, worst_derivative = 0;
  for (float x = -40.0f; x <= 40.0f; x += 0.000173f) {
    const Wide value = gelu_by_tanh(x), derivative = gelu_derivative_by_tanh(x);
    const auto error = [](float got, Wide expected) {
      const double scale = std::max(1.0, std::fabs(static_cast<double>(expected))) * kFloatUlpOfOne;
      return std::fabs(static_cast<double>(got - expected)) / scale;
    };
    worst_value = std::max(worst_value, error(gelu(x), value));
    worst_derivative = std::max(worst_derivative, error(gelu_derivative(x), derivative));
  }
  EXPECT_LT(worst_value, 8.0);
  EXPECT_LT(worst_derivative, 8.0);
}

TEST(Gelu, DoubleIsTheTanhForm) {
  for (double x = -12; x <= 12; x += 0.0137) {
    EXPECT_NEAR(gelu(x), static_cast<double>(gelu_by_tanh(x)), 1e-14 * std::max(1.0, std::fabs(x)));
    EXPECT_NEAR(gelu_derivative(x), static_cast<double>(gelu_derivative_by_tanh(x)), 1e-14);
  }
}

TEST(Gelu, DerivativeMatchesTheDifferenceQuotient) {
  const double h = 1e-5;
  for (double x = -6; x <= 6; x += 0.173) {
    EXPECT_NEAR(gelu_derivative(x), (gelu(x + h) - gelu(x - h)) / (2 * h), 1e-9);
  }
}

TEST(Gelu, LimitsAndNaN) {
  EXPECT_EQ(gelu(kInfinity), kInfinity);
  EXPECT_EQ(gelu(-kInfinity), 0.0f);
  EXPECT_EQ(gelu(3e38f), 3e38f);
  EXPECT_EQ(gelu(-3e38f), 0.0f);
  EXPECT_EQ(gelu(0.0f), 0.0f);
  EXPECT_TRUE(std::isnan(gelu(kNaN)));
  EXPECT_EQ(gelu_derivative(kInfinity), 1.0f);
  EXPECT_EQ(gelu_derivative(-kInfinity), 0.0f);
  EXPECT_EQ(gelu_derivative(3e38f), 1.0f);
  EXPECT_EQ(gelu_derivative(0.0f), 0.5f);
  EXPECT_TRUE(std::isnan(gelu_derivative(kNaN)));
  EXPECT_EQ(gelu(1e300), 1e300);
  EXPECT_EQ(gelu(-1e300), 0.0);
  EXPECT_TRUE(std::isnan(gelu(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Relu, ForwardAndBackward) {
  EXPECT_EQ(ReluForward{}(2.5f), 2.5f);
  EXPECT_EQ(ReluForward{}(-2.5f), 0.0f);
  EXPECT_EQ(ReluForward{}(kInfinity), kInfinity);
  EXPECT_EQ(ReluForward{}(-kInfinity), 0.0f);
  EXPECT_TRUE(std::isnan(ReluForward{}(kNaN)));
  EXPECT_EQ(ReluBackward{}(3.0f, 1.0f), 3.0f);
  EXPECT_EQ(ReluBackward{}(3.0f, 0.0f), 0.0f);
  EXPECT_EQ(ReluBackward{}(3.0f, kNaN), 0.0f);
  EXPECT_TRUE(std::isnan(ReluBackward{}(kNaN, 1.0f)));
}

TEST(Elementwise, Functors) {
  EXPECT_EQ(Triad<float>{3.0f}(1.0f, 2.0f), 7.0f);
  EXPECT_EQ(Axpy<double>{3.0}(1.0, 2.0), 5.0);
  EXPECT_EQ(AddBias{}(1.0f, 2.0f), 3.0f);
  EXPECT_EQ(MaxOfTwo{}(1.0f, 2.0f), 2.0f);
  EXPECT_TRUE(std::isnan(MaxOfTwo{}(kNaN, 2.0f)));
  EXPECT_TRUE(std::isnan(MaxOfTwo{}(2.0f, kNaN)));
}

}  // namespace
}  // namespace dlbench
