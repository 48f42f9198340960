#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/analysis/ab.h"

namespace dlbench {
namespace {

AbRound round_of(double base, double effect, double null_effect = 0) {
  AbRound r;
  r.base_seconds = base;
  r.ratio = 1 + effect;
  r.null_ratio = 1 + null_effect;
  return r;
}

/// `n` rounds that scatter by `noise` around an effect: alternately above and below.
std::vector<AbRound> rounds(int n, double effect, double noise, double base = 1e-3, double null_effect = 0) {
  std::vector<AbRound> all;
  for (int i = 0; i < n; ++i) {
    all.push_back(round_of(base, effect + (i % 2 ? noise : -noise), null_effect + (i % 2 ? -noise : noise)));
  }
  return all;
}

AbPoint point(const std::string& key, std::vector<AbRound> screen, std::vector<AbRound> confirm = {}) {
  AbPoint p;
  p.key = key;
  p.screen = std::move(screen);
  p.confirm = std::move(confirm);
  return p;
}

TEST(Ab, NothingIsJudgedBeforeEveryPointIsScreened) {
  const std::vector<AbPoint> points{point("a", rounds(3, 0.10, 0.001)), point("b", rounds(2, 0, 0.001))};
  const AbOutcome outcome = judge(points, {});
  EXPECT_FALSE(outcome.screened);
  for (const AbJudgement& j : outcome.points) EXPECT_EQ(j.verdict, AbVerdict::inconclusive);
  AbSession session;
  session.points = points;
  EXPECT_EQ(exit_code_of(session, outcome, false), ExitCode::kInconclusive);
}

TEST(Ab, TheScreenSuspectsFromTheSmallestEffectOnAndAccusesNobody) {
  const std::vector<AbPoint> points{point("slower", rounds(3, 0.05, 0.001)), point("faster", rounds(3, -0.05, 0.001)),
                                    point("little", rounds(3, 0.015, 0.001))};
  const AbOutcome outcome = judge(points, {});
  EXPECT_EQ(outcome.suspects, 2);
  EXPECT_TRUE(outcome.points[0].suspect && outcome.points[1].suspect && !outcome.points[2].suspect);
  EXPECT_EQ(outcome.points[0].verdict, AbVerdict::inconclusive);
  EXPECT_EQ(outcome.points[2].verdict, AbVerdict::equivalent);
  EXPECT_EQ(rounds_to_next_look(points[0], outcome.points[0], {}), 8);
  EXPECT_EQ(rounds_to_next_look(points[2], outcome.points[2], {}), 0);
}

TEST(Ab, FreshRoundsDecide) {
  const std::vector<AbPoint> points{point("slower", rounds(3, 0.05, 0.001), rounds(8, 0.05, 0.005)),
                                    point("faster", rounds(3, -0.05, 0.001), rounds(8, -0.05, 0.005)),
                                    point("luck", rounds(3, 0.05, 0.001), rounds(8, 0.0, 0.005))};
  const AbOutcome outcome = judge(points, {});
  EXPECT_EQ(outcome.points[0].verdict, AbVerdict::regression);
  EXPECT_EQ(outcome.points[1].verdict, AbVerdict::improvement);
  EXPECT_EQ(outcome.points[2].verdict, AbVerdict::equivalent);
  EXPECT_NEAR(*outcome.points[0].effect, 0.05, 1e-4);
  EXPECT_LT(*outcome.points[0].low, 0.05);
  EXPECT_GT(*outcome.points[0].high, 0.05);
  EXPECT_LT(*outcome.points[0].p_value, outcome.level);
  AbSession session;
  session.points = points;
  EXPECT_EQ(exit_code_of(session, outcome, false), ExitCode::kRegression);
}

TEST(Ab, TheErrorIsSharedByDirectionsSuspectsAndLooks) {
  const std::vector<AbPoint> one{point("a", rounds(3, 0.05, 0.001))};
  EXPECT_DOUBLE_EQ(judge(one, {}).level, 0.01 / (2 * 1 * 5));
  const std::vector<AbPoint> two{one[0], point("b", rounds(3, -0.05, 0.001))};
  EXPECT_DOUBLE_EQ(judge(two, {}).level, 0.01 / (2 * 2 * 5));
}

TEST(Ab, APointThatFailsLaterStillHasItsShare) {
  std::vector<AbPoint> points{point("a", rounds(3, 0.05, 0.001)), point("b", rounds(3, 0.05, 0.001))};
  points[1].status = Status::failed;
  EXPECT_DOUBLE_EQ(judge(points, {}).level, 0.01 / (2 * 2 * 5));
}

TEST(Ab, RoundsBehindTheDecidingLookChangeNothing) {
  std::vector<AbPoint> points{point("a", rounds(3, 0.05, 0.001), rounds(8, 0.05, 0.005))};
  const AbJudgement before = judge(points, {}).points[0];
  for (const AbRound& r : rounds(4, -0.2, 0.01)) points[0].confirm.push_back(r);
  const AbJudgement after = judge(points, {}).points[0];
  EXPECT_EQ(after.verdict, AbVerdict::regression);
  EXPECT_EQ(after.rounds, 8);
  EXPECT_EQ(after.effect, before.effect);
}

TEST(Ab, BetweenLooksASuspectIsOpen) {
  const std::vector<AbPoint> points{point("a", rounds(3, 0.05, 0.001), rounds(9, 0.04, 0.06))};
  const AbOutcome outcome = judge(points, {});
  EXPECT_EQ(outcome.points[0].verdict, AbVerdict::inconclusive);
  EXPECT_TRUE(outcome.points[0].open);
  EXPECT_EQ(outcome.points[0].rounds_judged, 8);
  EXPECT_EQ(rounds_to_next_look(points[0], outcome.points[0], {}), 3);
}

TEST(Ab, AfterTheLastLookASuspectStaysInconclusive) {
  const std::vector<AbPoint> points{point("a", rounds(3, 0.05, 0.001), rounds(36, 0.03, 0.2))};
  const AbOutcome outcome = judge(points, {});
  EXPECT_EQ(outcome.points[0].verdict, AbVerdict::inconclusive);
  EXPECT_FALSE(outcome.points[0].open);
  EXPECT_GT(*outcome.points[0].detectable_effect, 0.05);
  AbSession session;
  session.points = points;
  EXPECT_EQ(exit_code_of(session, outcome, false), ExitCode::kOk);
  EXPECT_EQ(exit_code_of(session, outcome, true), ExitCode::kInconclusive);
}

TEST(Ab, AProgramThatDiffersFromItselfAccusesTheMachine) {
  const std::vector<AbPoint> points{point("a", rounds(3, 0.05, 0.001), rounds(8, 0.05, 0.005, 1e-3, 0.05))};
  const AbOutcome outcome = judge(points, {});
  EXPECT_TRUE(outcome.null_alarm);
  EXPECT_EQ(outcome.points[0].verdict, AbVerdict::inconclusive);
  EXPECT_FALSE(outcome.points[0].open);
  AbSession session;
  session.points = points;
  EXPECT_EQ(exit_code_of(session, outcome, false), ExitCode::kInconclusive);
}

TEST(Ab, AFewNanosecondsAreNoRegressionWhateverTheirRatio) {
  const std::vector<AbPoint> points{point("a", rounds(3, 0.1, 0.001, 1e-7), rounds(8, 0.1, 0.001, 1e-7))};
  EXPECT_FALSE(judge(points, {}).points[0].suspect);
  AbRule without_floor;
  without_floor.min_effect_seconds = 0;
  EXPECT_EQ(judge(points, without_floor).points[0].verdict, AbVerdict::regression);
}

TEST(Ab, NoNoiseAtAll) {
  const std::vector<AbPoint> points{point("a", rounds(3, 0.05, 0), rounds(8, 0.05, 0)), point("b", rounds(3, 0, 0)),
                                    point("c", rounds(3, 0.021, 0), rounds(8, 0.009, 0))};
  const AbOutcome outcome = judge(points, {});
  EXPECT_EQ(outcome.points[0].verdict, AbVerdict::regression);
  EXPECT_EQ(outcome.points[0].p_value, 0);
  EXPECT_EQ(outcome.points[1].verdict, AbVerdict::equivalent);
  EXPECT_EQ(outcome.points[2].verdict, AbVerdict::equivalent);
  EXPECT_FALSE(outcome.null_alarm);
}

TEST(Ab, TwoWildRoundsHaveNoBound) {
  std::vector<AbRound> wild{round_of(1e-3, 9), round_of(1e-3, -0.99)};
  const std::vector<AbPoint> points{point("a", rounds(3, 0.5, 0.01), wild)};
  const AbJudgement j = judge(points, {}).points[0];
  EXPECT_FALSE(j.detectable_effect);
  EXPECT_TRUE(j.effect);
}

TEST(AbExitCode, WrongResultsOfTheCandidateAndFailures) {
  AbSession session;
  session.points = {point("a", rounds(3, 0, 0.001)), point("b", {})};
  session.points[1].status = Status::mismatch;
  session.points[1].failed_in = "candidate";
  EXPECT_EQ(exit_code_of(session, judge(session.points, {}), false), ExitCode::kRegression);
  session.points[1].failed_in = "base";
  EXPECT_EQ(exit_code_of(session, judge(session.points, {}), false), ExitCode::kSomeFailed);
  session.points[1].status = Status::unsupported;
  session.points[1].failed_in = "";
  EXPECT_EQ(exit_code_of(session, judge(session.points, {}), false), ExitCode::kOk);
  session.points[0].status = Status::unsupported;
  EXPECT_EQ(exit_code_of(session, judge(session.points, {}), false), ExitCode::kInconclusive);
}

TEST(AbExitCode, EndedBeforeTheSuspectsWereJudged) {
  AbSession session;
  session.points = {point("a", rounds(3, 0.05, 0.001), rounds(4, 0.05, 0.001))};
  session.stopped = "the time budget of 5 s was spent";
  EXPECT_EQ(exit_code_of(session, judge(session.points, {}), false), ExitCode::kInconclusive);
}

}  // namespace
}  // namespace dlbench
