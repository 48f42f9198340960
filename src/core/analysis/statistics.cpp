#include "core/analysis/statistics.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>

#include "core/base/error.h"

namespace dlbench {

double median(std::vector<double> values) {
  if (values.empty()) throw Error("median: there are no values");
  const size_t middle = values.size() / 2;
  const auto at_middle = values.begin() + static_cast<std::ptrdiff_t>(middle);
  std::nth_element(values.begin(), at_middle, values.end());
  if (values.size() % 2 == 1) return *at_middle;
  return (*std::max_element(values.begin(), at_middle) + *at_middle) / 2;
}

double t_quantile(double degrees_of_freedom, double confidence) {
  if (!(degrees_of_freedom > 0) || !(confidence > 0) || !(confidence < 1)) {
    throw Error("t_quantile: degrees of freedom must be above 0 and the confidence between 0 and 1");
  }
  const boost::math::students_t distribution(degrees_of_freedom);
  return boost::math::quantile(boost::math::complement(distribution, (1 - confidence) / 2));
}

namespace {

struct MeanAndDeviation {
  double mean = 0;
  double deviation = 0;  ///< sample standard deviation; 0 for one value
};

MeanAndDeviation mean_and_deviation(const std::vector<double>& sorted) {
  MeanAndDeviation result;
  const auto n = static_cast<double>(sorted.size());
  for (const double v : sorted) result.mean += v;
  result.mean /= n;
  double squares = 0;
  for (const double v : sorted) squares += (v - result.mean) * (v - result.mean);
  if (sorted.size() > 1 && sorted.front() != sorted.back()) result.deviation = std::sqrt(squares / (n - 1));
  return result;
}

}  // namespace

Estimate estimate(std::span<const double> process_medians, double minimum) {
  if (process_medians.empty()) throw Error("estimate: there are no processes");
  std::vector<double> logs;
  for (const double m : process_medians) {
    if (!(m > 0) || !std::isfinite(m)) throw Error("estimate: a process median isn't a positive number");
    logs.push_back(std::log(m));
  }
  std::sort(logs.begin(), logs.end());  // the same sum whatever the order of the processes
  const MeanAndDeviation m = mean_and_deviation(logs);
  Estimate result;
  result.processes = static_cast<int>(logs.size());
  result.log_mean = logs.front() == logs.back() ? logs.front() : m.mean;
  result.value = std::exp(result.log_mean);
  result.minimum = minimum;
  if (logs.size() > 1) {
    const auto n = static_cast<double>(logs.size());
    result.log_sd = m.deviation;
    const double half_width = t_quantile(n - 1, 0.95) * m.deviation / std::sqrt(n);
    result.low = std::exp(result.log_mean - half_width);
    result.high = std::exp(result.log_mean + half_width);
  }
  return result;
}

Estimate ratio(const Estimate& a, const Estimate& b, double confidence) {
  Estimate result;
  result.log_mean = a.log_mean - b.log_mean;
  result.value = std::exp(result.log_mean);
  result.processes = std::min(a.processes, b.processes);
  if (!a.log_sd || !b.log_sd) return result;
  // Welch 1947, Satterthwaite 1946: variance of a difference of means with unequal variances, and its degrees of
  // freedom.
  const double va = *a.log_sd * *a.log_sd / a.processes;
  const double vb = *b.log_sd * *b.log_sd / b.processes;
  const double standard_error = std::sqrt(va + vb);
  result.log_sd = standard_error;
  if (standard_error == 0) {
    result.low = result.high = result.value;
    return result;
  }
  const double degrees = (va + vb) * (va + vb) / (va * va / (a.processes - 1) + vb * vb / (b.processes - 1));
  const double half_width = t_quantile(degrees, confidence) * standard_error;
  result.low = std::exp(result.log_mean - half_width);
  result.high = std::exp(result.log_mean + half_width);
  return result;
}

namespace {

/// Two-sided P(|S| >= |s|) of Kendall's S for n values without ties, from the number of permutations with d inversions
/// (Kendall 1938; recurrence: counts of n are running sums of n counts of n-1).
double kendall_exact_p(size_t n, long discordant) {
  const long pairs = static_cast<long>(n * (n - 1) / 2);
  const long tail = std::min(discordant, pairs - discordant);
  if (2 * tail == pairs) return 1;
  std::vector<double> probability{1};  // of d inversions among the first k values
  for (size_t k = 2; k <= n; ++k) {
    std::vector<double> next(static_cast<size_t>(tail) + 1, 0);
    double window = 0;
    for (size_t d = 0; d < next.size(); ++d) {
      if (d < probability.size()) window += probability[d];
      if (d >= k && d - k < probability.size()) window -= probability[d - k];
      next[d] = window / static_cast<double>(k);
    }
    probability = std::move(next);
  }
  double sum = 0;
  for (const double p : probability) sum += p;
  return std::min(1.0, 2 * sum);
}

/// Normal approximation with the variance corrected for ties in the values (Kendall 1970, eq. 4.3; the index has none).
double kendall_normal_p(size_t n, double s, const std::map<double, size_t>& counts) {
  const auto v = [](double t) { return t * (t - 1) * (2 * t + 5); };
  double variance = v(static_cast<double>(n));
  for (const auto& [value, count] : counts) variance -= v(static_cast<double>(count));
  variance /= 18;
  if (variance <= 0) return 1;
  const double z = std::abs(s) / std::sqrt(variance);
  return 2 * boost::math::cdf(boost::math::complement(boost::math::normal(), z));
}

}  // namespace

Trend trend(std::span<const double> values) {
  const size_t n = values.size();
  if (n < 2) return {};
  std::vector<double> slopes;
  slopes.reserve(n * (n - 1) / 2);
  long concordant = 0, discordant = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      slopes.push_back((values[j] - values[i]) / static_cast<double>(j - i));
      concordant += values[j] > values[i];
      discordant += values[j] < values[i];
    }
  }
  std::map<double, size_t> counts;
  for (const double v : values) ++counts[v];
  Trend result;
  const double middle = median({values.begin(), values.end()});
  if (middle != 0) result.relative_change = median(std::move(slopes)) * static_cast<double>(n - 1) / middle;
  const bool ties = counts.size() < n;
  constexpr size_t kExactUpTo = 33;  // beyond it the normal approximation is good to 1e-4
  result.p_value = !ties && n <= kExactUpTo ? kendall_exact_p(n, discordant)
                                            : kendall_normal_p(n, static_cast<double>(concordant - discordant), counts);
  return result;
}

double lag1_autocorrelation(std::span<const double> values) {
  const size_t n = values.size();
  if (n < 3) return 0;
  double mean = 0;
  for (const double v : values) mean += v;
  mean /= static_cast<double>(n);
  double products = 0, squares = 0;
  for (size_t i = 0; i < n; ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i + 1 < n) products += (values[i] - mean) * (values[i + 1] - mean);
  }
  return squares > 0 ? products / squares : 0;
}

}  // namespace dlbench
