#include "core/analysis/moderation.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/interpolators/pchip.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <map>
#include <numeric>

#include "core/base/error.h"

namespace dlbench {

namespace {

constexpr double kLowTail = 0.05, kHighTail = 0.10;  // limma's winsor.tail.p, Phipson et al. 2016
constexpr double kLeastPriorDegrees = 0.1;

struct Moments {
  double mean = 0, variance = 0;
};

/// Quantile of ln F(f, d0); of ln(chi^2_f / f) where d0 stands for infinity.
double log_f_quantile(double degrees, double prior_degrees, double p) {
  if (prior_degrees >= kMaxPriorDegrees) return std::log(quantile(boost::math::chi_squared(degrees), p) / degrees);
  return std::log(quantile(boost::math::fisher_f(degrees, prior_degrees), p));
}

/// Mean and variance of ln F(f, d0) with its tails moved to their quantiles.
Moments winsorised_moments(double degrees, double prior_degrees) {
  // By Gauss-Legendre over the probability: the integrand is the smooth middle of a quantile function.
  const auto quantile_at = [&](double p) { return log_f_quantile(degrees, prior_degrees, p); };
  const double low = quantile_at(kLowTail), high = quantile_at(1 - kHighTail);
  double first = 0, second = 0;
  const double center = (kLowTail + 1 - kHighTail) / 2, half = (1 - kHighTail - kLowTail) / 2;
  using Rule = boost::math::quadrature::gauss<double, 10>;
  for (size_t i = 0; i < Rule::abscissa().size(); ++i) {
    for (const double sign : {-1.0, 1.0}) {
      const double z = quantile_at(center + sign * half * Rule::abscissa()[i]);
      first += half * Rule::weights()[i] * z;
      second += half * Rule::weights()[i] * z * z;
    }
  }
  Moments m;
  m.mean = first + kLowTail * low + kHighTail * high;
  m.variance = second + kLowTail * low * low + kHighTail * high * high - m.mean * m.mean;
  return m;
}

/// The most common number of degrees of freedom, the larger one of two.
double common_degrees(std::span<const SampleVariance> points) {
  std::map<double, size_t> count;
  for (const SampleVariance& p : points) {
    if (p.degrees > 0) ++count[p.degrees];
  }
  double best = 0;
  size_t most = 0;
  for (const auto& [degrees, n] : count) {
    if (n >= most) {
      best = degrees;
      most = n;
    }
  }
  return best;
}

/// Winsorised mean and variance of a sample.
Moments winsorised_moments(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  // Linear interpolation between order statistics (Hyndman & Fan 1996, type 7), as R's quantile().
  const auto at = [&](double p) {
    const double place = p * (n - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
  };
  const double low = at(kLowTail), high = at(1 - kHighTail);
  Moments m;
  for (double& v : values) {
    v = std::clamp(v, low, high);
    m.mean += v / n;
  }
  for (const double v : values) m.variance += (v - m.mean) * (v - m.mean) / (n - 1);
  return m;
}

}  // namespace

/// Winsorised moments of ln F(f, d0) over ln d0, in steps fine enough for four digits of d0.
struct PriorFitter::Table {
  explicit Table(double degrees) : limit(winsorised_moments(degrees, kMaxPriorDegrees)) {
    constexpr int kNodes = 64;
    std::vector<double> x, means, variances;
    const double least = std::log(kLeastPriorDegrees), most = std::log(kMaxPriorDegrees / 2);
    for (int i = 0; i < kNodes; ++i) {
      x.push_back(least + (most - least) * i / (kNodes - 1));
      const Moments m = winsorised_moments(degrees, std::exp(x.back()));
      means.push_back(m.mean);
      variances.push_back(m.variance);
    }
    low = x.front();
    high = x.back();
    at_low = {means.front(), variances.front()};
    at_high = {means.back(), variances.back()};
    auto copy = x;
    mean = std::make_unique<Curve>(std::move(copy), std::move(means));
    variance = std::make_unique<Curve>(std::move(x), std::move(variances));
  }
  using Curve = boost::math::interpolators::pchip<std::vector<double>>;
  std::unique_ptr<Curve> mean, variance;
  double low = 0, high = 0;  ///< ln d0
  Moments at_low, at_high, limit;
};

PriorFitter::PriorFitter() = default;
PriorFitter::~PriorFitter() = default;

SampleVariance PriorFitter::fit(std::span<const SampleVariance> points) {
  const double degrees = common_degrees(points);
  std::vector<double> variances;
  for (const SampleVariance& p : points) {
    if (p.degrees == degrees && degrees > 0) variances.push_back(p.variance);
  }
  if (variances.size() < kLeastPointsForPrior) return {};
  std::vector<double> sorted = variances;
  std::sort(sorted.begin(), sorted.end());
  const double middle = sorted[sorted.size() / 2];
  if (!(middle > 0)) return {};
  // ln 0 has no moments: points that vary not at all count as a 1e-5th of the usual variance, as limma does it.
  for (double& v : variances) v = std::log(std::max(v, 1e-5 * middle));
  const Moments seen = winsorised_moments(std::move(variances));

  std::unique_ptr<Table>& table = tables_[degrees];
  if (!table) table = std::make_unique<Table>(degrees);
  const auto prior = [&seen](double mean, double d0) { return SampleVariance{std::exp(seen.mean - mean), d0}; };
  // The variance of ln F falls with d0.
  if (table->at_high.variance >= seen.variance) return prior(table->limit.mean, kMaxPriorDegrees);
  if (table->at_low.variance <= seen.variance) return prior(table->at_low.mean, kLeastPriorDegrees);
  std::uintmax_t iterations = 60;
  const auto bracket = boost::math::tools::toms748_solve(
      [&](double x) { return (*table->variance)(x)-seen.variance; }, table->low, table->high,
      table->at_low.variance - seen.variance, table->at_high.variance - seen.variance,
      [](double a, double b) { return std::abs(b - a) < 1e-6; }, iterations);
  const double log_degrees = (bracket.first + bracket.second) / 2;
  return prior((*table->mean)(log_degrees), std::exp(log_degrees));
}

SampleVariance fit_variance_prior(std::span<const SampleVariance> points) {
  return PriorFitter().fit(points);
}

std::vector<SampleVariance> priors_by_point(std::span<const SampleVariance> points, const SampleVariance& prior) {
  constexpr double kFalseRate = 0.01;
  std::vector<SampleVariance> priors(points.size(), prior);
  if (!(prior.degrees > 0) || !(prior.variance > 0)) return priors;
  std::vector<double> p_values;
  for (const SampleVariance& own : points) {
    const double ratio = own.variance / prior.variance;
    if (!(own.degrees > 0) || ratio <= 1) {
      p_values.push_back(1);
    } else if (prior.degrees >= kMaxPriorDegrees) {
      p_values.push_back(cdf(complement(boost::math::chi_squared(own.degrees), ratio * own.degrees)));
    } else {
      p_values.push_back(cdf(complement(boost::math::fisher_f(own.degrees, prior.degrees), ratio)));
    }
  }
  const std::vector<double> q = benjamini_hochberg(p_values);
  for (size_t i = 0; i < q.size(); ++i) {
    if (q[i] <= kFalseRate) priors[i] = {};
  }
  return priors;
}

SampleVariance moderate(const SampleVariance& own, const SampleVariance& prior) {
  const double degrees = own.degrees + prior.degrees;
  if (!(degrees > 0)) return {};
  return {(prior.degrees * prior.variance + own.degrees * own.variance) / degrees, degrees};
}

namespace {
double mean_of(const std::vector<double>& values) {
  if (values.empty()) throw Error("a session of a comparison has no process");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
}  // namespace

double mean_over_sessions(const Sessions& side) {
  if (side.empty()) throw Error("a side of a comparison has no session");
  double sum = 0;
  for (const auto& session : side) sum += mean_of(session);
  return sum / static_cast<double>(side.size());
}

SampleVariance pooled_variance(std::span<const Sessions* const> sides) {
  double squares = 0, degrees = 0;
  for (const Sessions* side : sides) {
    for (const auto& session : *side) {
      const double mean = mean_of(session);
      for (const double y : session) squares += (y - mean) * (y - mean);
      degrees += static_cast<double>(session.size()) - 1;
    }
  }
  return degrees > 0 ? SampleVariance{squares / degrees, degrees} : SampleVariance{};
}

double variance_of_mean(const Sessions& side, double process_variance, double between_session_sd) {
  const auto sessions = static_cast<double>(side.size());
  double inverse = 0;
  for (const auto& session : side) inverse += 1 / static_cast<double>(session.size());
  return process_variance * inverse / (sessions * sessions) + between_session_sd * between_session_sd / sessions;
}

Sessions winsorise_one(const Sessions& side, int sign, double prior_variance) {
  constexpr double kDeviations = 2.5, kPriorDegrees = 4;
  Sessions result = side;
  for (auto& session : result) {
    const size_t n = session.size();
    if (n < 4) continue;
    const auto farther = [sign](double a, double b) { return sign > 0 ? a < b : a > b; };
    const auto extreme = std::max_element(session.begin(), session.end(), farther);
    std::iter_swap(extreme, session.end() - 1);
    double mean = 0, squares = 0;
    for (size_t i = 0; i + 1 < n; ++i) mean += session[i] / static_cast<double>(n - 1);
    for (size_t i = 0; i + 1 < n; ++i) squares += (session[i] - mean) * (session[i] - mean);
    const double degrees = static_cast<double>(n) - 2;
    const double deviation = std::sqrt((squares + kPriorDegrees * prior_variance) / (degrees + kPriorDegrees));
    const double limit = mean + sign * kDeviations * deviation;
    if (farther(limit, session.back())) session.back() = limit;
  }
  return result;
}

double effective_degrees(double estimated, double known, double degrees) {
  if (!(estimated > 0)) return degrees;
  const double ratio = (estimated + known) / estimated;
  return std::min(degrees * ratio * ratio, kMaxPriorDegrees);
}

double margin_p_value(double effect, double margin, double standard_error, double degrees) {
  if (!(degrees > 0)) return 1;
  if (!(standard_error > 0)) return effect > margin ? 0 : 1;
  return cdf(complement(boost::math::students_t(degrees), (effect - margin) / standard_error));
}

std::vector<double> benjamini_hochberg(std::span<const double> p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> q(p_values.size());
  double least = 1;
  for (size_t rank = order.size(); rank > 0; --rank) {
    const size_t i = order[rank - 1];
    least = std::min(least, p_values[i] * static_cast<double>(order.size()) / static_cast<double>(rank));
    q[i] = least;
  }
  return q;
}

double minimum_detectable_effect(double margin, double standard_error, double degrees, double alpha, double power) {
  if (!(degrees > 0) || !(alpha > 0) || !(alpha < 1) || !(power > 0) || !(power < 1))
    throw Error("minimum_detectable_effect: degrees must be above 0, alpha and power between 0 and 1");
  const boost::math::students_t t(degrees);
  return margin + (quantile(complement(t, alpha)) + quantile(t, power)) * standard_error;
}

int processes_to_detect(double effect, double margin, double process_variance, double between_session_sd,
                        double prior_degrees, double alpha, int most) {
  for (int processes = 2; processes <= most; ++processes) {
    const double error = std::sqrt(2 * process_variance / processes + 2 * between_session_sd * between_session_sd);
    const double degrees = prior_degrees + 2.0 * processes - 2;
    if (minimum_detectable_effect(margin, error, degrees, alpha) <= effect) return processes;
  }
  return 0;
}

}  // namespace dlbench
