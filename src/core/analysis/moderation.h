// Moderated variances and tests with a margin: what `compare`, `ab` and `calibrate` conclude from few processes.
//
// Why: with five processes a side, a variance alone has so few degrees of freedom that one point in hundreds looks
// precise by luck and raises a false alarm; points of one device borrow from each other.
// Sources: Smyth 2004 (moderated variance), Phipson et al. 2016 (winsorised fit of the prior), McCarthy & Smyth 2009
// (`treat`: a test against a margin), Benjamini & Hochberg 1995. All effects are differences of ln(seconds).
// Promises: pure functions; distributions come from Boost.Math; nothing here knows a file or a device.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace dlbench {

/// A variance and the degrees of freedom it was estimated with; degrees 0: nothing is known.
struct SampleVariance {
  double variance = 0;
  double degrees = 0;
};

/// Fewer points than this have no prior of their own (METHODS section 5: d0 = 0 under 10 points).
inline constexpr size_t kLeastPointsForPrior = 10;
/// Stands for an infinite d0: all points share one variance. Finite, so that it can stand in JSON.
inline constexpr double kMaxPriorDegrees = 1e6;

/// Fits Smyth's s0^2 and d0 to the variances of the points of one device class: the moments of ln s^2, winsorised (5 %
/// at the low end, 10 % at the high end) and matched with the winsorised moments of ln F(f, d0), so that a few points
/// with wild or with no variation don't decide what all others borrow. An object, because the moments of ln F are
/// tabulated once per f (Fritsch-Carlson interpolation over ln d0): fits after the first are cheap. Not for several
/// threads at once.
class PriorFitter {
 public:
  PriorFitter();
  ~PriorFitter();
  PriorFitter(const PriorFitter&) = delete;
  PriorFitter& operator=(const PriorFitter&) = delete;

  /// Uses the points with the most common number of degrees of freedom (the larger one, when two are as common).
  /// @returns degrees 0 with fewer than kLeastPointsForPrior of those, or when half of them vary not at all.
  SampleVariance fit(std::span<const SampleVariance> points);

 private:
  struct Table;
  std::map<double, std::unique_ptr<Table>> tables_;  ///< by degrees of freedom
};
/// With a fitter of its own.
SampleVariance fit_variance_prior(std::span<const SampleVariance> points);

/// The prior for each point: none (degrees 0) for a point that varies by more than the prior explains (F test with d0
/// and f degrees, Benjamini-Hochberg at 1 %), else the common one; Phipson et al. 2016, hypervariable genes. Measured:
/// of 200 equal points, 10 that jump by 20 % in every fifth process gave a false alarm in 44 % of 800 comparisons when
/// they borrowed the variance of the calm ones, and in none of 800 when they didn't.
std::vector<SampleVariance> priors_by_point(std::span<const SampleVariance> points, const SampleVariance& prior);

/// s~^2 = (d0 s0^2 + f s^2) / (d0 + f), with d0 + f degrees. Degrees 0 when neither says anything.
SampleVariance moderate(const SampleVariance& own, const SampleVariance& prior);

/// One side of a comparison for one point: ln(median seconds) of every process, by session (a run of dlbench).
using Sessions = std::vector<std::vector<double>>;

/// Mean over sessions of the mean over processes. @throws Error without a value, or for an empty session.
double mean_over_sessions(const Sessions& side);
/// Variance between processes of the same session, pooled over all sessions of all sides; degrees 0 when every session
/// has one process.
SampleVariance pooled_variance(std::span<const Sessions* const> sides);
/// Variance of mean_over_sessions: s~^2 (1/S^2) sum 1/P_i + tau^2 / S, for S sessions of P_i processes. Two sides of
/// one session each give s~^2 (1/P_b + 1/P_c) + 2 tau^2, METHODS section 5 (4).
/// @param between_session_sd tau
double variance_of_mean(const Sessions& side, double process_variance, double between_session_sd);

/// The process of each session that is farthest on the side of `sign` (+1 slow, -1 fast), moved to 2.5 standard
/// deviations beyond the mean of the others where it is farther; sessions of fewer than 4 processes stay as they are.
/// The deviation is that of the others, moderated by `prior`'s variance with 4 degrees.
///
/// Why one side only: an outlier that speaks for a change (a slow process of the candidate, a fast one of the base)
/// must neither make the change nor hide it in the variance; one that speaks against it stays, or two modes of a
/// machine would be taken for one.
Sessions winsorise_one(const Sessions& side, int sign, double prior_variance);

/// Degrees of freedom of s~^2 * factor + known, where `known` is no estimate (Satterthwaite 1946).
double effective_degrees(double estimated, double known, double degrees);

/// P(T_f >= (effect - margin) / standard_error): against "the change is at most the margin". A standard error of 0
/// gives 0 or 1. @param degrees 0: nothing is known, 1.
double margin_p_value(double effect, double margin, double standard_error, double degrees);

/// q-values of Benjamini & Hochberg's step-up procedure: rejecting q <= Q keeps the false discovery rate at Q.
std::vector<double> benjamini_hochberg(std::span<const double> p_values);

/// The smallest true change of ln(seconds) that a test at level `alpha` finds with probability `power`, where the point
/// stands alone: margin + (t_{1-alpha} + t_power) * standard_error.
double minimum_detectable_effect(double margin, double standard_error, double degrees, double alpha,
                                 double power = 0.8);

/// Least processes per side, up to `most`, with which minimum_detectable_effect is at most `effect`; 0 when none is
/// enough, because tau alone hides it. For one session a side.
/// @param prior_degrees d0; the degrees of freedom grow with the processes.
int processes_to_detect(double effect, double margin, double process_variance, double between_session_sd,
                        double prior_degrees, double alpha, int most = 100);

}  // namespace dlbench
