#include "core/measure/stopping_rule.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace dlbench {

namespace {
/// The only numbers of timings at which the rule looks.
constexpr std::array<int, 4> kLooks = {11, 21, 41, 81};
constexpr double kCoverage = 0.95;

/// C(n, k) / 2^n; in logarithms, so that any n works.
double binomial_half(int n, int k) {
  return std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) - n * std::log(2.0));
}

/// 1 - 2 * sum_{k<l} C(n,k) / 2^n: how often (x_(l), x_(n+1-l)) covers the median.
double coverage_of(int n, int l) {
  double tail = 0;
  for (int k = 0; k < l; ++k) tail += binomial_half(n, k);
  return 1 - 2 * tail;
}
}  // namespace

std::optional<int> median_interval_rank(int n) {
  int rank = 0;
  while (2 * (rank + 1) <= n && coverage_of(n, rank + 1) >= kCoverage) ++rank;
  if (rank == 0) return std::nullopt;
  return rank;
}

std::optional<MedianInterval> median_interval(std::span<const double> values) {
  const int n = static_cast<int>(values.size());
  const std::optional<int> rank = median_interval_rank(n);
  if (!rank) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  MedianInterval interval;
  interval.median = sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  interval.low = sorted[static_cast<size_t>(*rank) - 1];
  interval.high = sorted[sorted.size() - static_cast<size_t>(*rank)];
  interval.coverage = coverage_of(n, *rank);
  return interval;
}

int StoppingRule::next_look(int taken) const {
  for (const int look : kLooks) {
    if (look > taken) return std::min(look, max_);
  }
  return max_;
}

StopDecision StoppingRule::decide(std::span<const double> timings, double spent_seconds, double budget_seconds) const {
  StopDecision decision;
  const int taken = static_cast<int>(timings.size());
  if (const auto interval = median_interval(timings); interval && interval->median > 0) {
    decision.half_width_relative = interval->half_width_relative();
  }
  const bool at_look = std::find(kLooks.begin(), kLooks.end(), taken) != kLooks.end() || taken >= max_;
  if (at_look && decision.half_width_relative && *decision.half_width_relative <= target_) {
    return {.stop = true, .reason = "converged", .half_width_relative = decision.half_width_relative};
  }
  if (taken >= max_) {
    decision.stop = true;
    decision.reason = "max_timings";
  } else if (spent_seconds >= budget_seconds) {
    decision.stop = true;
    decision.reason = "budget_exhausted";
  }
  return decision;
}

}  // namespace dlbench
