// Moderated variances and tests with a margin, against SciPy 1.17.1 (an independent fit of the prior by scipy.stats.f,
// scipy.integrate.quad and scipy.optimize.brentq; t.sf, t.isf, false_discovery_control) and published examples.
#include "core/analysis/moderation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"

namespace dlbench {
namespace {

void expect_near_relative(double got, double expected, double relative) {
  EXPECT_NEAR(got, expected, relative * std::abs(expected));
}

std::vector<SampleVariance> with_degrees(double degrees, const std::vector<double>& variances) {
  std::vector<SampleVariance> points;
  for (const double v : variances) points.push_back({v, degrees});
  return points;
}

const std::vector<double> kVariances = {0.5e-4, 1.2e-4, 0.8e-4, 3.1e-4, 0.2e-4,  0.9e-4, 1.7e-4,
                                        0.4e-4, 2.2e-4, 0.6e-4, 1.1e-4, 0.05e-4, 7.5e-4, 0.7e-4};

TEST(VariancePrior, AgreesWithAnIndependentFit) {
  const SampleVariance eight = fit_variance_prior(with_degrees(8, kVariances));
  expect_near_relative(eight.variance, 6.672539394311436e-05, 1e-4);
  expect_near_relative(eight.degrees, 2.87159479680894, 1e-3);
  const SampleVariance four = fit_variance_prior(with_degrees(4, kVariances));
  expect_near_relative(four.variance, 8.632193810802409e-05, 1e-4);
  expect_near_relative(four.degrees, 4.443058009978684, 1e-3);
}

TEST(VariancePrior, PointsThatVaryAlikeShareOneVariance) {
  std::vector<double> alike;
  for (int i = 0; i < 12; ++i) alike.push_back(1 + 0.01 * i);
  const SampleVariance prior = fit_variance_prior(with_degrees(8, alike));
  EXPECT_EQ(prior.degrees, kMaxPriorDegrees);
  expect_near_relative(prior.variance, 1.204253895012917, 1e-6);
}

TEST(VariancePrior, VariancesWithoutAnythingInCommonLendNothing) {
  std::vector<double> wild;
  for (int i = -8; i < 6; ++i) wild.push_back(std::pow(10.0, i));
  EXPECT_LT(fit_variance_prior(with_degrees(8, wild)).degrees, 0.2);
}

TEST(VariancePrior, NeedsTenPointsThatVary) {
  EXPECT_EQ(fit_variance_prior(with_degrees(8, {kVariances.begin(), kVariances.begin() + 9})).degrees, 0);
  EXPECT_GT(fit_variance_prior(with_degrees(8, {kVariances.begin(), kVariances.begin() + 10})).degrees, 0);
  EXPECT_EQ(fit_variance_prior(with_degrees(0, kVariances)).degrees, 0);
  EXPECT_EQ(fit_variance_prior(with_degrees(8, std::vector<double>(20, 0.0))).degrees, 0);
  EXPECT_EQ(fit_variance_prior({}).degrees, 0);
}

TEST(VariancePrior, IsNotMovedByAWildPoint) {
  std::vector<double> variances;
  for (int i = 0; i < 40; ++i) variances.push_back(1e-4 * (1 + 0.05 * (i % 10)));
  const SampleVariance calm = fit_variance_prior(with_degrees(8, variances));
  variances[7] = 1;
  const SampleVariance wild = fit_variance_prior(with_degrees(8, variances));
  expect_near_relative(wild.variance, calm.variance, 0.02);
  EXPECT_EQ(wild.degrees, calm.degrees);
}

TEST(VariancePrior, UsesTheMostCommonDegreesOfFreedom) {
  std::vector<SampleVariance> points = with_degrees(8, kVariances);
  const SampleVariance alone = fit_variance_prior(points);
  for (const double v : {1e-2, 2e-2, 3e-2}) points.push_back({v, 3});
  EXPECT_EQ(fit_variance_prior(points).degrees, alone.degrees);
}

TEST(Moderate, IsTheWeightedMeanOfBothVariances) {
  const SampleVariance m = moderate({4e-4, 8}, {1e-4, 4});
  expect_near_relative(m.variance, 3e-4, 1e-14);
  EXPECT_EQ(m.degrees, 12);
  EXPECT_EQ(moderate({4e-4, 8}, {}).variance, 4e-4);
  EXPECT_EQ(moderate({}, {1e-4, 4}).variance, 1e-4);
  EXPECT_EQ(moderate({}, {}).degrees, 0);
}

TEST(PooledVariance, IsWithinSessions) {
  const Sessions base = {{1, 3}, {10, 10, 13}}, cand = {{5}};
  const Sessions* const sides[] = {&base, &cand};
  const SampleVariance pooled = pooled_variance(sides);
  EXPECT_EQ(pooled.degrees, 3);
  expect_near_relative(pooled.variance, (2.0 + 6.0) / 3, 1e-14);
  expect_near_relative(mean_over_sessions(base), (2.0 + 11.0) / 2, 1e-14);
  const Sessions* const one[] = {&cand};
  EXPECT_EQ(pooled_variance(one).degrees, 0);
  EXPECT_THROW(mean_over_sessions({}), Error);
  EXPECT_THROW(mean_over_sessions({{}}), Error);
}

TEST(VarianceOfMean, OfOneSessionASideIsTheFormulaOfMethods) {
  const Sessions five = {{0, 0, 0, 0, 0}}, three = {{0, 0, 0}};
  const double got = variance_of_mean(five, 2e-4, 0.01) + variance_of_mean(three, 2e-4, 0.01);
  expect_near_relative(got, 2e-4 * (1.0 / 5 + 1.0 / 3) + 2 * 1e-4, 1e-14);
  const Sessions two = {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}};
  expect_near_relative(variance_of_mean(two, 2e-4, 0.01), 2e-4 / 10 + 1e-4 / 2, 1e-14);
}

TEST(MarginPValue, AgreesWithSciPy) {
  expect_near_relative(margin_p_value(0.05, std::log(1.01), 0.009, 20.5), 0.00011659589359336313, 1e-12);
  expect_near_relative(margin_p_value(-0.05, std::log(1.01), 0.009, 20.5), 0.9999992314987391, 1e-12);
  EXPECT_EQ(margin_p_value(0.05, 0.01, 0.009, 0), 1);
  EXPECT_EQ(margin_p_value(0.05, 0.01, 0, 8), 0);
  EXPECT_EQ(margin_p_value(0.005, 0.01, 0, 8), 1);
}

// The example of Benjamini & Hochberg 1995, section 4.1: at 0.05 the four smallest of 15 are rejected.
TEST(BenjaminiHochberg, AgreesWithThePublishedExampleAndSciPy) {
  const std::vector<double> p = {0.4262, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298,
                                 0.0344, 0.0459, 0.3240, 0.5719, 0.6528, 0.7590, 1.0000};
  const std::vector<double> expected = {0.5811818181818181,
                                        0.0015,
                                        0.003,
                                        0.0095,
                                        0.035625,
                                        0.0603,
                                        0.06385714285714286,
                                        0.06385714285714286,
                                        0.0645,
                                        0.07650000000000001,
                                        0.486,
                                        0.7148749999999999,
                                        0.7532307692307693,
                                        0.8132142857142857,
                                        1.0};
  const std::vector<double> q = benjamini_hochberg(p);
  int rejected = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    expect_near_relative(q[i], expected[i], 1e-12);
    rejected += q[i] <= 0.05;
  }
  EXPECT_EQ(rejected, 4);
  EXPECT_TRUE(benjamini_hochberg({}).empty());
}

TEST(MinimumDetectableEffect, AgreesWithSciPy) {
  expect_near_relative(minimum_detectable_effect(std::log(1.01), 0.009, 20.5, 5e-5), 0.06097427856604482, 1e-12);
  EXPECT_THROW(minimum_detectable_effect(0.01, 0.009, 0, 5e-5), Error);
}

TEST(ProcessesToDetect, IsTheLeastNumberThatIsEnough) {
  const double margin = std::log(1.01), variance = 1e-4;
  const int n = processes_to_detect(0.04, margin, variance, 0.002, 4, 5e-5);
  ASSERT_GT(n, 2);
  const auto detectable = [&](int processes) {
    const double error = std::sqrt(2 * variance / processes + 2 * 0.002 * 0.002);
    return minimum_detectable_effect(margin, error, 4 + 2.0 * processes - 2, 5e-5);
  };
  EXPECT_LE(detectable(n), 0.04);
  EXPECT_GT(detectable(n - 1), 0.04);
  EXPECT_EQ(processes_to_detect(0.04, margin, variance, 0.02, 4, 5e-5), 0);
}

}  // namespace
}  // namespace dlbench
