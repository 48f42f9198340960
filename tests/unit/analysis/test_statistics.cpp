// Statistics against values computed with SciPy 1.17.1 (scipy.stats: t.ppf, ttest_ind(equal_var=False), theilslopes,
// kendalltau), pasted here with 16 digits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/analysis/statistics.h"
#include "core/base/error.h"

namespace dlbench {
namespace {

constexpr double kDigits = 1e-12;  // relative: SciPy and Boost agree far better than this

void expect_near_relative(double got, double expected) {
  EXPECT_NEAR(got, expected, kDigits * std::abs(expected));
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoMiddleValues) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_THROW(median({}), Error);
}

TEST(TQuantile, AgreesWithSciPy) {
  expect_near_relative(t_quantile(1, 0.95), 12.706204736174694);
  expect_near_relative(t_quantile(2, 0.95), 4.302652729749462);
  expect_near_relative(t_quantile(4, 0.95), 2.7764451051977934);
  expect_near_relative(t_quantile(9, 0.95), 2.262157162798205);
  expect_near_relative(t_quantile(3.7, 0.995), 5.9875151388937535);
  EXPECT_THROW(t_quantile(0, 0.95), Error);
  EXPECT_THROW(t_quantile(2, 1), Error);
}

const std::vector<double> kFive = {1.02e-3, 0.98e-3, 1.05e-3, 1.00e-3, 1.01e-3};
const std::vector<double> kThree = {2.1e-4, 2.0e-4, 2.3e-4};

TEST(EstimateTest, IsTheGeometricMeanWithAnIntervalBetweenProcesses) {
  const Estimate e = estimate(kFive, 0.97e-3);
  expect_near_relative(e.value, 0.0010117364206117048);
  expect_near_relative(e.low.value(), 0.0009802157780080258);
  expect_near_relative(e.high.value(), 0.0010442706674976656);
  expect_near_relative(e.log_sd.value(), 0.025490497396345978);
  EXPECT_EQ(e.processes, 5);
  EXPECT_EQ(e.minimum, 0.97e-3);
}

TEST(EstimateTest, DoesNotDependOnTheOrderOfTheProcesses) {
  std::vector<double> medians = kFive;
  const Estimate first = estimate(medians, 1e-3);
  std::sort(medians.begin(), medians.end());
  do {
    const Estimate e = estimate(medians, 1e-3);
    EXPECT_EQ(e.value, first.value);
    EXPECT_EQ(e.low, first.low);
    EXPECT_EQ(e.high, first.high);
  } while (std::next_permutation(medians.begin(), medians.end()));
}

TEST(EstimateTest, ScalesWithTheUnit) {
  std::vector<double> scaled = kFive;
  for (double& v : scaled) v *= 1024;
  const Estimate a = estimate(kFive, 1), b = estimate(scaled, 1);
  expect_near_relative(b.value, 1024 * a.value);
  expect_near_relative(b.low.value(), 1024 * a.low.value());
  EXPECT_NEAR(b.log_sd.value(), a.log_sd.value(), 1e-12);
}

TEST(EstimateTest, OneProcessHasNoInterval) {
  const std::vector<double> one = {2e-3};
  const Estimate e = estimate(one, 2e-3);
  EXPECT_NEAR(e.value, 2e-3, 1e-15);
  EXPECT_FALSE(e.low || e.high || e.log_sd);
}

TEST(EstimateTest, RefusesWhatIsNoTime) {
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const std::vector<double> medians = {1.0, bad};
    EXPECT_THROW(estimate(medians, 1), Error) << bad;
  }
  EXPECT_THROW(estimate({}, 1), Error);
}

TEST(Ratio, IsWelchOnTheLogarithms) {
  const Estimate r = ratio(estimate(kFive, 1), estimate(kThree, 1));
  expect_near_relative(r.value, 4.750525736322244);
  expect_near_relative(r.low.value(), 4.04403389919274);
  expect_near_relative(r.high.value(), 5.580441542778577);
  const Estimate wide = ratio(estimate(kFive, 1), estimate(kThree, 1), 0.99);
  expect_near_relative(wide.low.value(), 3.390863003771944);
  expect_near_relative(wide.high.value(), 6.655383820094254);
}

TEST(Ratio, MirrorsWhenTheSidesAreSwapped) {
  const Estimate a = estimate(kFive, 1), b = estimate(kThree, 1);
  const Estimate forward = ratio(a, b), backward = ratio(b, a);
  expect_near_relative(backward.value, 1 / forward.value);
  expect_near_relative(backward.low.value(), 1 / forward.high.value());
  expect_near_relative(backward.high.value(), 1 / forward.low.value());
}

TEST(Ratio, HasNoIntervalWhenASideHasOneProcess) {
  const std::vector<double> one = {2e-3};
  EXPECT_FALSE(ratio(estimate(kFive, 1), estimate(one, 1)).low);
}

TEST(Ratio, WithoutAnyVarianceIsExact) {
  const std::vector<double> a = {4, 4, 4}, b = {2, 2, 2};
  const Estimate r = ratio(estimate(a, 4), estimate(b, 2));
  EXPECT_DOUBLE_EQ(r.value, 2);
  EXPECT_EQ(r.low, r.value);
  EXPECT_EQ(r.high, r.value);
}

TEST(TrendTest, AgreesWithSciPyWithoutTies) {
  const std::vector<double> rising = {1.0, 1.2, 1.1, 1.4, 1.3, 1.7, 1.6, 1.9, 1.85, 2.0, 1.95};
  EXPECT_NEAR(trend(rising).relative_change, 0.625, 1e-12);
  expect_near_relative(trend(rising).p_value, 0.00013227513227513228);
  const std::vector<double> falling = {5, 3, 4, 1, 2};
  EXPECT_NEAR(trend(falling).relative_change, -0.875 * 4 / 3, 1e-12);
  expect_near_relative(trend(falling).p_value, 0.23333333333333334);
}

TEST(TrendTest, AgreesWithSciPyWithTies) {
  const std::vector<double> values = {1, 2, 2, 3, 1, 4, 4, 5, 3, 6};
  EXPECT_NEAR(trend(values).relative_change, 1.5, 1e-12);
  expect_near_relative(trend(values).p_value, 0.008379987441013662);
}

TEST(TrendTest, AgreesWithSciPyOnAFullWindow) {
  std::vector<double> values;
  for (int i = 0; i < 41; ++i) values.push_back(std::round((1 + 0.0002 * i + 0.01 * ((i * 37) % 41) / 41) * 1e9) / 1e9);
  EXPECT_NEAR(trend(values).relative_change, 0.005291315693737111, 1e-12);
  expect_near_relative(trend(values).p_value, 0.004985262149521681);
}

TEST(TrendTest, OfTooFewOrEqualValuesIsNone) {
  EXPECT_EQ(trend({}).p_value, 1);
  const std::vector<double> equal(20, 3.0);
  EXPECT_EQ(trend(equal).relative_change, 0);
  EXPECT_EQ(trend(equal).p_value, 1);
}

TEST(Lag1, AgreesWithItsDefinition) {
  const std::vector<double> values = {1, 3, 2, 5, 4, 6, 8, 7};
  expect_near_relative(lag1_autocorrelation(values), 0.49404761904761907);
  const std::vector<double> equal(5, 1.0);
  EXPECT_EQ(lag1_autocorrelation(equal), 0);
}

}  // namespace
}  // namespace dlbench
