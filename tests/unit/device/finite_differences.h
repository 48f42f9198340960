// Gradients of the reference's ops against central finite differences in fp64.
//
// Why: `reference` is the oracle of both sides; nothing but its own forward pass can say whether its backward pass is
// right. Promises: the loss is the sum of weights times outputs, with random weights; every input is moved, one value
// at a time, by +-h. Error of a difference: h^2 f'''/6 + u |loss| / h, with h = 1e-5 about 1e-10 each.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/device/reference_device.h"

namespace dlbench::test {

using Values = std::vector<double>;

/// N(0,1) values, other ones for every `stream`.
inline Values random_values(int64_t count, uint64_t stream) {
  Values values(static_cast<size_t>(count));
  const float factor = static_cast<float>(kIrwinHallScale);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(normal_value(7, stream, i, factor));
  return values;
}

inline Ops& reference_ops() {
  static const std::unique_ptr<Device> device = make_reference_device({});
  return device->ops();
}

inline double weighted_sum(const Values& weights, const Values& outputs) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] * outputs[i];
  return sum;
}

/// d loss / d x, moving one value of `x` at a time.
inline Values numeric_gradient(Values& x, const std::function<double()>& loss) {
  constexpr double kStep = 1e-5;
  Values gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + kStep;
    const double above = loss();
    x[i] = kept - kStep;
    const double below = loss();
    x[i] = kept;
    gradient[i] = (above - below) / (2 * kStep);
  }
  return gradient;
}

/// Every value within 1e-7 of the largest; "" or what is wrong. The gradient must not be zero all over.
inline std::string compare_gradients(const std::string& name, const Values& analytic, const Values& numeric) {
  double scale = 0;
  for (const double value : numeric) scale = std::max(scale, std::fabs(value));
  if (scale == 0) return name + ": the gradient is zero everywhere, which proves nothing";
  for (size_t i = 0; i < numeric.size(); ++i) {
    if (!(std::fabs(analytic[i] - numeric[i]) <= 1e-7 * std::max(1.0, scale))) {
      return name + " at " + std::to_string(i) + ": " + std::to_string(analytic[i]) + " where differences give " +
             std::to_string(numeric[i]);
    }
  }
  return "";
}

/// Adds a failure when the analytic gradient isn't what moving `x` shows.
inline void expect_gradient(const std::string& name, const Values& analytic, Values& x,
                            const std::function<double()>& loss) {
  EXPECT_EQ(compare_gradients(name, analytic, numeric_gradient(x, loss)), "");
}

}  // namespace dlbench::test
