// The statistics of `dlbench ab`: two programs measured side by side in rounds, judged without crying wolf.
//
// Why a screen and a confirmation: measuring everything often enough to be sure of each point takes hours; a few rounds
// tell which points are worth it. Why the family-wise error holds whatever the screen did: a verdict rests on the
// confirmation's rounds only, which the screen never saw, with the error shared by the k suspects and the looks
// (Bonferroni). Why Student's t on few rounds: within a round the two programs are exchangeable under the null, so the
// log-ratio is symmetric about 0, and for scale mixtures of normal distributions t is conservative at small levels
// (Bakirov & Szekely 2005; Ibragimov & Mueller 2010); tests/simulation shows it for the noise of real machines.
// Promises: pure functions of the rounds; verdicts never change when rounds are added behind the look that decided.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/result/status.h"

namespace dlbench {

struct AbRule {
  double family_wise_error = 0.01;    ///< of one whole comparison: any wrong regression or improvement
  double margin = 0.01;               ///< relative; a change up to this is never called one (limma's `treat`)
  double min_effect = 0.02;           ///< relative; smaller estimates are neither suspected nor called
  double min_effect_seconds = 20e-9;  ///< per step; noise has an additive part, so the floor has one as well
  double equivalence = 0.03;          ///< relative; a 90 % interval inside it is `equivalent`
  int screen_rounds = 3;
  std::vector<int> looks = {8, 12, 18, 26, 36};  ///< confirming rounds after which a suspect is judged
};

/// One point in one round: what the programs took, side by side.
struct AbRound {
  double base_seconds = 0;  ///< per step: median of the base program's timings
  double ratio = 1;         ///< candidate / base: median over pairs of timings that were taken one after the other
  std::optional<double> null_ratio;  ///< a second process of the base program / base; confirming rounds only
  std::string placement;             ///< label of the machine's state while it was measured
};

struct AbPoint {
  std::string key;
  Status status = Status::ok;  ///< anything else: not judged
  std::string reason;
  std::string failed_in;  ///< base | candidate, of a point that isn't ok; "" when it can't run in either
  std::vector<AbRound> screen, confirm;
};

/// What was observed: enough to judge again.
struct AbSession {
  std::vector<AbPoint> points;
  Json base_tool = Json::object(), candidate_tool = Json::object();  ///< tool records of the two programs
  int screen_rounds = 0, confirm_rounds = 0;                         ///< begun
  int disturbed = 0;  ///< measurements thrown away because the machine changed its state in between
  double elapsed_seconds = 0;
  std::string stopped;  ///< why it ended early, "" when it came to its end
};

enum class AbVerdict : uint8_t { regression, improvement, equivalent, inconclusive, not_judged };
std::string_view to_string(AbVerdict verdict);

struct AbJudgement {
  AbVerdict verdict = AbVerdict::not_judged;
  bool suspect = false;             ///< the screen sent it to the confirmation
  bool open = false;                ///< more rounds may still decide it
  int rounds = 0;                   ///< that the numbers below come from
  int rounds_judged = 0;            ///< of a suspect: the last look that was reached; 0: none
  std::optional<double> effect;     ///< relative change of the seconds per step: 0.05 is 5 % slower
  std::optional<double> low, high;  ///< 90 % interval of the effect
  std::optional<double> p_value;    ///< one-sided, against the margin; of the look that decided, else of the last
  std::optional<double> null_effect;
  bool null_alarm = false;                  ///< the base program differed from itself: the machine isn't to be trusted
  std::optional<double> detectable_effect;  ///< what these rounds find with 80 % probability
};

struct AbOutcome {
  std::vector<AbJudgement> points;  ///< as given
  int suspects = 0;
  double level = 0;         ///< of one test: family-wise error / (2 directions * suspects * looks)
  bool screened = false;    ///< every point that can be judged has its screening rounds
  bool null_alarm = false;  ///< of any point: regressions and improvements are then `inconclusive`
};

AbOutcome judge(std::span<const AbPoint> points, const AbRule& rule);
/// What a gate does with it: 1 for a regression or a candidate that computes wrong results; 3 when the machine can't be
/// trusted (null_alarm), when it ended before suspects were judged, or when nothing could be measured; 5 when points
/// failed; else 0. @param inconclusive_fails 3 for suspects that stay inconclusive as well
ExitCode exit_code_of(const AbSession& session, const AbOutcome& outcome, bool inconclusive_fails);
/// Confirming rounds that an open suspect still needs until its next look; 0 when it is decided or no suspect.
int rounds_to_next_look(const AbPoint& point, const AbJudgement& judgement, const AbRule& rule);

}  // namespace dlbench
