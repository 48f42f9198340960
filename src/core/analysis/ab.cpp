#include "core/analysis/ab.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>

#include "core/analysis/statistics.h"
#include "core/base/error.h"

namespace dlbench {

std::string_view to_string(AbVerdict verdict) {
  switch (verdict) {
    case AbVerdict::regression:
      return "regression";
    case AbVerdict::improvement:
      return "improvement";
    case AbVerdict::equivalent:
      return "equivalent";
    case AbVerdict::inconclusive:
      return "inconclusive";
    case AbVerdict::not_judged:
      return "not_judged";
  }
  throw Error("not a verdict of ab");
}

namespace {

constexpr double kIntervalConfidence = 0.90;
constexpr double kPower = 0.8;

struct Sample {
  int n = 0;
  double mean = 0, standard_error = 0;
};

Sample sample_of(std::span<const double> values) {
  Sample s{.n = static_cast<int>(values.size())};
  if (s.n == 0) return s;
  for (const double v : values) s.mean += v / s.n;
  double squares = 0;
  for (const double v : values) squares += (v - s.mean) * (v - s.mean);
  if (s.n > 1) s.standard_error = std::sqrt(squares / (s.n - 1) / s.n);
  // Equal ratios leave rounding errors of the mean behind; below this they are no variance.
  if (s.standard_error < 1e-13) s.standard_error = 0;
  return s;
}

/// Quantiles of Student's t for the sample sizes at hand, each computed once: they cost more than all the rest.
class Quantiles {
 public:
  explicit Quantiles(double level) : level_(level) {}
  struct OfSize {
    double at_level = 0;  ///< P(T >= q) = level
    double interval = 0;  ///< two-sided, kIntervalConfidence
    double power = 0;     ///< P(T <= q) = kPower
  };
  /// @param n at least 2
  const OfSize& of(int n) {
    const auto [entry, fresh] = of_.try_emplace(n);
    if (fresh) {
      const boost::math::students_t t(n - 1);
      entry->second = {.at_level = boost::math::quantile(boost::math::complement(t, level_)),
                       .interval = t_quantile(n - 1, kIntervalConfidence),
                       .power = boost::math::quantile(t, kPower)};
    }
    return entry->second;
  }

 private:
  double level_;
  std::map<int, OfSize> of_;
};

/// Whether `distance` is beyond `quantile` standard errors; without any error every distance is.
bool beyond(double distance, double quantile, const Sample& s) {
  return s.n >= 2 && distance > 0 && distance >= quantile * s.standard_error;
}

/// P(T >= distance / standard error).
double upper_tail(const Sample& s, double distance) {
  if (s.n < 2) return 1;
  if (s.standard_error == 0) return distance > 0 ? 0 : 1;
  return boost::math::cdf(boost::math::complement(boost::math::students_t(s.n - 1), distance / s.standard_error));
}

std::vector<double> log_ratios(std::span<const AbRound> rounds) {
  std::vector<double> ratios;
  for (const AbRound& r : rounds) ratios.push_back(std::log(r.ratio));
  return ratios;
}

std::vector<double> null_log_ratios(std::span<const AbRound> rounds) {
  std::vector<double> ratios;
  for (const AbRound& r : rounds) {
    if (r.null_ratio) ratios.push_back(std::log(*r.null_ratio));
  }
  return ratios;
}

double base_seconds(std::span<const AbRound> rounds) {
  std::vector<double> seconds;
  for (const AbRound& r : rounds) seconds.push_back(r.base_seconds);
  return median(seconds);
}

bool large_enough(double log_effect, std::span<const AbRound> rounds, const AbRule& rule) {
  const double effect = std::fabs(std::expm1(log_effect));
  return std::fabs(log_effect) >= std::log1p(rule.min_effect) &&
         effect * base_seconds(rounds) >= rule.min_effect_seconds;
}

/// With two wild rounds an interval can reach beyond what a double holds: then there is no bound.
std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

void describe(AbJudgement& j, const Sample& s, Quantiles& quantiles) {
  j.rounds = s.n;
  if (s.n == 0) return;
  j.effect = std::expm1(s.mean);
  if (s.n < 2) return;
  const double half = quantiles.of(s.n).interval * s.standard_error;
  j.low = std::expm1(s.mean - half);
  j.high = finite(std::expm1(s.mean + half));
}

bool inside_equivalence(const AbJudgement& j, const AbRule& rule) {
  return j.low && j.high && *j.low > -rule.equivalence && *j.high < rule.equivalence &&
         std::fabs(*j.effect) < rule.min_effect;
}

/// A point that the screen did not suspect: its numbers come from the screen.
void judge_screen(AbJudgement& j, const AbPoint& point, const AbRule& rule, Quantiles& quantiles) {
  const Sample s = sample_of(log_ratios(point.screen));
  describe(j, s, quantiles);
  if (s.n >= 2) {  // suspected from min_effect on
    j.detectable_effect = finite(std::expm1(std::log1p(rule.min_effect) + quantiles.of(s.n).power * s.standard_error));
  }
  j.verdict = inside_equivalence(j, rule) ? AbVerdict::equivalent : AbVerdict::inconclusive;
}

/// What the first `n` confirming rounds of a suspect say.
AbJudgement look(const AbPoint& point, int n, const AbRule& rule, Quantiles& quantiles) {
  AbJudgement j;
  j.verdict = AbVerdict::inconclusive;
  j.suspect = true;
  const std::span<const AbRound> rounds = std::span(point.confirm).first(static_cast<size_t>(n));
  const Sample s = sample_of(log_ratios(rounds)), null = sample_of(null_log_ratios(rounds));
  describe(j, s, quantiles);
  if (null.n > 0) j.null_effect = std::expm1(null.mean);
  if (s.n < 2) return j;
  const double distance = std::fabs(s.mean) - std::log1p(rule.margin);
  if (beyond(distance, quantiles.of(s.n).at_level, s) && large_enough(s.mean, rounds, rule)) {
    j.verdict = s.mean > 0 ? AbVerdict::regression : AbVerdict::improvement;
  } else if (inside_equivalence(j, rule)) {
    j.verdict = AbVerdict::equivalent;
  }
  // No margin: the same program may differ from itself by noise only.
  j.null_alarm = null.n >= 2 && beyond(std::fabs(null.mean), quantiles.of(null.n).at_level, null);
  return j;
}

/// The numbers that nothing is decided by, of the rounds that the judgement rests on.
void complete(AbJudgement& j, const AbPoint& point, const AbRule& rule, Quantiles& quantiles) {
  const Sample s = sample_of(log_ratios(std::span(point.confirm).first(static_cast<size_t>(j.rounds))));
  if (s.n < 2) return;
  const double margin = std::log1p(rule.margin);
  const Quantiles::OfSize& q = quantiles.of(s.n);
  j.p_value = upper_tail(s, std::fabs(s.mean) - margin);
  j.detectable_effect =
      finite(std::max(std::expm1(margin + (q.at_level + q.power) * s.standard_error), rule.min_effect));
}

AbJudgement judge_suspect(const AbPoint& point, const AbRule& rule, Quantiles& quantiles) {
  const int measured = static_cast<int>(point.confirm.size());
  AbJudgement judgement;
  bool decided = false;
  int looked = 0;
  for (const int n : rule.looks) {
    if (measured < n || decided) break;
    judgement = look(point, n, rule, quantiles);
    looked = n;
    decided = judgement.null_alarm || judgement.verdict != AbVerdict::inconclusive;
  }
  if (!decided && measured > looked) {  // between looks nothing is decided
    judgement = look(point, measured, rule, quantiles);
    judgement.verdict = AbVerdict::inconclusive;
    judgement.null_alarm = false;
  }
  judgement.suspect = true;
  if (judgement.rounds == 0) judgement.verdict = AbVerdict::inconclusive;
  judgement.open = !decided && looked != rule.looks.back();
  judgement.rounds_judged = looked;
  complete(judgement, point, rule, quantiles);
  return judgement;
}

bool suspected(const AbPoint& point, const AbRule& rule) {
  const std::span<const AbRound> rounds = std::span(point.screen).first(static_cast<size_t>(rule.screen_rounds));
  return large_enough(sample_of(log_ratios(rounds)).mean, rounds, rule);
}

}  // namespace

AbOutcome judge(std::span<const AbPoint> points, const AbRule& rule) {
  AbOutcome outcome;
  outcome.points.resize(points.size());
  outcome.screened = true;
  for (size_t i = 0; i < points.size(); ++i) {
    if (static_cast<int>(points[i].screen.size()) >= rule.screen_rounds) {
      // A point that failed later was a suspect when the error was shared out.
      outcome.points[i].suspect = suspected(points[i], rule);
      outcome.suspects += outcome.points[i].suspect ? 1 : 0;
    } else if (points[i].status == Status::ok) {
      outcome.screened = false;
    }
  }
  const double tests = 2.0 * std::max(1, outcome.suspects) * static_cast<double>(rule.looks.size());
  outcome.level = rule.family_wise_error / tests;
  Quantiles quantiles(outcome.level);
  for (size_t i = 0; i < points.size(); ++i) {
    AbJudgement& j = outcome.points[i];
    if (points[i].status != Status::ok) continue;
    if (!j.suspect || !outcome.screened) {
      const bool suspect = j.suspect;
      judge_screen(j, points[i], rule, quantiles);
      if (suspect || !outcome.screened) j.verdict = AbVerdict::inconclusive;
    } else {
      j = judge_suspect(points[i], rule, quantiles);
      outcome.null_alarm = outcome.null_alarm || j.null_alarm;
    }
  }
  if (!outcome.null_alarm) return outcome;
  for (AbJudgement& j : outcome.points) {
    if (j.verdict == AbVerdict::regression || j.verdict == AbVerdict::improvement) j.verdict = AbVerdict::inconclusive;
    j.open = false;
  }
  return outcome;
}

ExitCode exit_code_of(const AbSession& session, const AbOutcome& outcome, bool inconclusive_fails) {
  bool regressed = false, failed = false, unjudged = false, unresolved = false, measured = false;
  for (size_t i = 0; i < session.points.size(); ++i) {
    const AbPoint& point = session.points[i];
    const AbJudgement& j = outcome.points[i];
    const bool wrong = point.status == Status::mismatch || point.status == Status::invalid;
    regressed = regressed || j.verdict == AbVerdict::regression || (wrong && point.failed_in == "candidate");
    failed = failed || !point.failed_in.empty();
    measured = measured || point.status == Status::ok;
    unresolved = unresolved || (j.suspect && j.verdict == AbVerdict::inconclusive);
    unjudged = unjudged || (j.suspect && j.open && j.rounds_judged == 0);
  }
  if (regressed) return ExitCode::kRegression;
  if (outcome.null_alarm || !outcome.screened || unjudged || !measured) return ExitCode::kInconclusive;
  if (failed) return ExitCode::kSomeFailed;
  return inconclusive_fails && unresolved ? ExitCode::kInconclusive : ExitCode::kOk;
}

int rounds_to_next_look(const AbPoint& point, const AbJudgement& judgement, const AbRule& rule) {
  if (!judgement.open) return 0;
  const int measured = static_cast<int>(point.confirm.size());
  for (const int n : rule.looks) {
    if (n > measured) return n - measured;
  }
  return 0;
}

}  // namespace dlbench
