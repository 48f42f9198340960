// Judge: from ln(seconds) of processes on two sides to verdicts (METHODS section 5, steps 2 to 8).
//
// Why apart from files: the simulation that proves the alarm rate runs exactly this on millions of made-up points
// (tests/simulation), and found three places where the plain formulas sleep or cry wolf; the reasons stand in
// judge.cpp. Promises: pure; swapping the sides mirrors every effect and turns regressions into improvements; a verdict
// other than `inconclusive` needs a variance that was estimated or calibrated, never one that was assumed.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/analysis/moderation.h"

namespace dlbench {

enum class Change : uint8_t {
  regression,
  improvement,
  equivalent,
  inconclusive,
  incomparable,  ///< steps per timing or work differ: other questions were asked
  missing,       ///< one side has no result
  invalid,       ///< the candidate's result is wrong (mismatch) or impossible (invalid) where the base's is not
};
std::string_view to_string(Change change);

struct JudgeOptions {
  double margin = 0.01;       ///< a change up to this is no change: what the test is against
  double false_rate = 0.01;   ///< q of Benjamini & Hochberg over all points
  double min_effect = 0.02;   ///< --min-effect: a smaller change is never a regression or an improvement
  double equivalence = 0.03;  ///< `equivalent`: the 90 % interval is inside of 1 -+ this
  double control_shift = 0.02;
  bool describe =
      true;  ///< also fill what verdicts don't need: `detectable` to the digit, `processes_needed`, `reason`
};

/// What is known of the noise of a device class apart from the compared points.
struct ClassNoise {
  std::string device_class;
  double between_session_sd = 0.01;     ///< tau
  bool calibrated = false;              ///< tau and prior come from a noise profile
  std::optional<SampleVariance> prior;  ///< of the profile: used where the points are too few for a prior
  double additive_seconds = 0;          ///< a change of a step by less is noise whatever its ratio
};

struct PointSample {
  size_t noise = 0;    ///< index of its ClassNoise
  std::string device;  ///< a control kernel's shift demotes the points of its device
  Sessions base, cand;
};

struct ControlSample {
  std::string name, device;
  Sessions base, cand;  ///< ln of each process' median over start, middle and end
};

struct JudgedPoint {
  Change change = Change::inconclusive;
  double effect = 0;  ///< d, of ln(seconds): positive is slower
  double standard_error = 0, degrees = 0;
  std::optional<double> low, high;  ///< 95 % interval of d
  double p_slower = 1, q_slower = 1, p_faster = 1, q_faster = 1;
  bool enough = false;               ///< there was enough data for a test
  std::optional<double> detectable;  ///< smallest slowdown, of ln(seconds), found with 80 % probability if alone
  int processes_needed = 0;          ///< per side, to resolve what is inconclusive; 0: more processes don't help
  std::string reason;                ///< why inconclusive; "" otherwise
};

struct JudgedControl {
  double effect = 0;
  std::optional<double> half_width;  ///< of its 95 % interval; empty with one process a side
  bool shifted = false;
};

struct JudgedNoise {
  double between_session_sd = 0;
  bool from_sessions = false;  ///< the sessions of a side differ by more than the tau that was given
  SampleVariance prior;        ///< what the points share; degrees 0: nothing
  int points = 0;
};

struct Judgement {
  std::vector<JudgedPoint> points;      ///< in the order of the samples
  std::vector<JudgedControl> controls;  ///< likewise
  std::vector<JudgedNoise> noise;       ///< likewise, by ClassNoise
  bool drifted = false;                 ///< a control kernel shifted
};

Judgement judge_points(const std::vector<PointSample>& points, const std::vector<ControlSample>& controls,
                       const std::vector<ClassNoise>& noise, const JudgeOptions& options);
/// The same with a fitter that keeps its tables, for many comparisons.
Judgement judge_points(const std::vector<PointSample>& points, const std::vector<ControlSample>& controls,
                       const std::vector<ClassNoise>& noise, const JudgeOptions& options, PriorFitter& fitter);

}  // namespace dlbench
