// When to stop repeating a timing: METHODS: looks at K = 11, 21, 41, 81 only, with the order-statistic interval of the
// median.
//
// Why only at fixed looks: a rule that looks after every timing stops on lucky streaks.
// Source of the ranks: binomial coverage 1 - 2 * sum_{k<l} C(n,k) / 2^n of the interval (x_(l), x_(n+1-l)).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlbench {

struct MedianInterval {
  double median = 0, low = 0, high = 0;
  double coverage = 0;  ///< exact, at least 0.95
  double half_width_relative() const { return (high - low) / 2 / median; }
};

/// Ranks (l, n+1-l) of the narrowest symmetric interval that covers the median with at least 95 %; empty for n < 6.
std::optional<int> median_interval_rank(int n);
/// Empty for fewer than 6 values.
std::optional<MedianInterval> median_interval(std::span<const double> values);

struct StopDecision {
  bool stop = false;
  std::string reason;                         ///< converged | max_timings | budget_exhausted
  std::optional<double> half_width_relative;  ///< what it was; the unmet condition if not converged
};

class StoppingRule {
 public:
  StoppingRule(double target_half_width_relative, int max_timings)
      : target_(target_half_width_relative), max_(max_timings) {}
  /// How many timings to take before the next look, given how many there are.
  int next_look(int taken) const;
  StopDecision decide(std::span<const double> timings, double spent_seconds, double budget_seconds) const;

 private:
  double target_;
  int max_;
};

}  // namespace dlbench
