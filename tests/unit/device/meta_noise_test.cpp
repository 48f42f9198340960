// Noise shapes: mean 0, variance 1, and each its own tails.
#include "core/device/meta_noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace dlbench {
namespace {

struct Moments {
  double mean = 0, variance = 0, beyond_3 = 0, within_half = 0;
};

Moments moments_of(NoiseShape shape) {
  constexpr int kCount = 200000;
  Moments m;
  for (int i = 0; i < kCount; ++i) {
    const double z = noise_value(shape, 3, 1, static_cast<uint64_t>(i));
    m.mean += z / kCount;
    m.variance += z * z / kCount;
    m.beyond_3 += (std::fabs(z) > 3) / static_cast<double>(kCount);
    m.within_half += (std::fabs(z) < 0.5) / static_cast<double>(kCount);
  }
  return m;
}

TEST(NoiseValue, Normal) {
  const Moments m = moments_of(NoiseShape::normal);
  EXPECT_NEAR(m.mean, 0, 0.01);
  EXPECT_NEAR(m.variance, 1, 0.015);
  EXPECT_NEAR(m.beyond_3, 0.0027, 0.0005);
  EXPECT_NEAR(m.within_half, 0.3829, 0.005);
}

TEST(NoiseValue, T3HasHeavyTails) {
  const Moments m = moments_of(NoiseShape::t3);
  EXPECT_NEAR(m.mean, 0, 0.02);
  EXPECT_NEAR(m.variance, 1, 0.25);          // its fourth moment is infinite: the sample variance wanders
  EXPECT_NEAR(m.beyond_3, 0.01384, 0.0015);  // P(|t| > 3*sqrt(3)) with 3 degrees of freedom
}

TEST(NoiseValue, BimodalAvoidsTheMiddle) {
  const Moments m = moments_of(NoiseShape::bimodal);
  EXPECT_NEAR(m.mean, 0, 0.01);
  EXPECT_NEAR(m.variance, 1, 0.015);
  EXPECT_LT(m.within_half, 0.1);
}

TEST(NoiseValue, HeteroscedasticScalesByOp) {
  MetaOptions options;
  options.shape = NoiseShape::heteroscedastic;
  options.noise_sd = 0.1;
  double lowest = 1e9, highest = 0;
  for (int op = 0; op < 200; ++op) {
    MetaNoise noise(options);
    double square = 0;
    for (int i = 0; i < 400; ++i) {
      noise.next_timing();
      const double y = std::log(noise.factor("op " + std::to_string(op), 0));
      square += y * y / 400;
    }
    lowest = std::min(lowest, std::sqrt(square));
    highest = std::max(highest, std::sqrt(square));
  }
  EXPECT_GT(lowest, 0.025 * 0.85);
  EXPECT_LT(lowest, 0.025 * 1.3);
  EXPECT_LT(highest, 0.4 * 1.15);
  EXPECT_GT(highest, 0.4 * 0.75);
}

}  // namespace
}  // namespace dlbench
