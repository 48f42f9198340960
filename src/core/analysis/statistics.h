// Statistics of replicates. The replicate is the process: y = ln(median of its timings); METHODS: value = exp(mean y),
// interval exp(mean +- t_{.975,P-1} * s / sqrt(P)). Distributions come from Boost.Math.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlbench {

double median(std::vector<double> values);  ///< @throws Error when empty

/// Two-sided quantile of Student's t: P(|T| <= q) = confidence. @throws Error unless degrees > 0 and 0 < confidence
/// < 1.
double t_quantile(double degrees_of_freedom, double confidence);

/// A value with a 95 % interval between processes; the interval is empty with one process.
struct Estimate {
  double value = 0;
  std::optional<double> low, high;
  int processes = 0;
  double log_mean = 0;
  std::optional<double> log_sd;  ///< between processes; of a ratio: the standard error of its logarithm
  double minimum = 0;            ///< fastest single timing: reported, never judged by; of a ratio: 0, there is none
};

/// @param process_medians seconds per step, one per process, all > 0.
Estimate estimate(std::span<const double> process_medians, double minimum);

/// Slope per index by Theil-Sen, and Kendall's two-sided p. METHODS: `drift` when slope over the window > 1 % and p <
/// 0.01.
struct Trend {
  double relative_change = 0;  ///< slope * (n - 1) / median
  double p_value = 1;          ///< exact for n <= 33 without ties, else normal with tie correction
};
Trend trend(std::span<const double> values);
/// sum (x_i - mean)(x_{i+1} - mean) / sum (x_i - mean)^2; 0 for fewer than 3 values or no variance.
double lag1_autocorrelation(std::span<const double> values);

/// Ratio a/b of two independent estimates with its interval (Welch-Satterthwaite on logs), at `confidence`.
/// `processes` is the smaller of the two; without a standard deviation on both sides the interval is empty.
Estimate ratio(const Estimate& a, const Estimate& b, double confidence = 0.95);

}  // namespace dlbench
