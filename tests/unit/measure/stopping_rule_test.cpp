#include "core/measure/stopping_rule.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

namespace dlbench {
namespace {

/// C(n, k) exactly, for n up to 60.
uint64_t choose(int n, int k) {
  uint64_t value = 1;
  for (int i = 1; i <= k; ++i) value = value * static_cast<uint64_t>(n - k + i) / static_cast<uint64_t>(i);
  return value;
}

std::vector<double> one_to(int n) {
  std::vector<double> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(MedianInterval, HasTheRanksOfTheBinomialTable) {
  EXPECT_EQ(median_interval_rank(11), 2);
  EXPECT_EQ(median_interval_rank(21), 6);
  EXPECT_EQ(median_interval_rank(41), 14);
  EXPECT_EQ(median_interval_rank(81), 32);
}

TEST(MedianInterval, IsEmptyBelowSixValues) {
  for (int n = 0; n < 6; ++n) {
    EXPECT_FALSE(median_interval_rank(n)) << n;
    EXPECT_FALSE(median_interval(one_to(n))) << n;
  }
  EXPECT_EQ(median_interval_rank(6), 1);
}

TEST(MedianInterval, CoversAtLeast95PercentAndTheNextRankWouldNot) {
  for (int n = 6; n <= 50; ++n) {
    const int rank = *median_interval_rank(n);
    const auto coverage = [n](int l) {
      uint64_t tail = 0;
      for (int k = 0; k < l; ++k) tail += choose(n, k);
      return 1 - std::ldexp(static_cast<double>(2 * tail), -n);
    };
    EXPECT_GE(coverage(rank), 0.95) << n;
    EXPECT_LT(coverage(rank + 1), 0.95) << n;
    EXPECT_NEAR(median_interval(one_to(n))->coverage, coverage(rank), 1e-12) << n;
  }
}

TEST(MedianInterval, TakesOrderStatisticsOfUnsortedValues) {
  const std::vector<double> values = {11, 3, 7, 1, 9, 5, 2, 10, 4, 8, 6};
  const auto interval = median_interval(values);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->median, 6);
  EXPECT_EQ(interval->low, 2);
  EXPECT_EQ(interval->high, 10);
}

TEST(StoppingRule, LooksAtFixedNumbersOfTimingsOnly) {
  const StoppingRule rule(0.01, 81);
  EXPECT_EQ(rule.next_look(0), 11);
  EXPECT_EQ(rule.next_look(5), 11);
  EXPECT_EQ(rule.next_look(11), 21);
  EXPECT_EQ(rule.next_look(21), 41);
  EXPECT_EQ(rule.next_look(41), 81);
  EXPECT_EQ(StoppingRule(0.01, 21).next_look(11), 21);
  // Equal timings have no width, yet between looks there is no decision.
  const std::vector<double> equal(12, 1.0);
  EXPECT_FALSE(rule.decide(equal, 0, 10).stop);
}

TEST(StoppingRule, StopsWhenTheIntervalIsNarrow) {
  const StopDecision decision = StoppingRule(0.01, 81).decide(std::vector<double>(11, 2.0), 0.1, 10);
  EXPECT_TRUE(decision.stop);
  EXPECT_EQ(decision.reason, "converged");
  EXPECT_EQ(decision.half_width_relative, 0.0);
}

TEST(StoppingRule, GoesOnWhileItIsWide) {
  EXPECT_FALSE(StoppingRule(0.01, 81).decide(one_to(11), 0.1, 10).stop);
}

TEST(StoppingRule, NamesTheUnmetConditionWhenTheBudgetIsSpent) {
  const StopDecision decision = StoppingRule(0.01, 81).decide(one_to(11), 10.1, 10);
  EXPECT_TRUE(decision.stop);
  EXPECT_EQ(decision.reason, "budget_exhausted");
  EXPECT_DOUBLE_EQ(*decision.half_width_relative, (10.0 - 2.0) / 2 / 6.0);
  EXPECT_FALSE(StoppingRule(0.01, 81).decide(one_to(5), 10.1, 10).half_width_relative);
}

TEST(StoppingRule, EndsAtTheLargestNumber) {
  EXPECT_EQ(StoppingRule(0.01, 21).decide(one_to(21), 0.1, 10).reason, "max_timings");
}

}  // namespace
}  // namespace dlbench
