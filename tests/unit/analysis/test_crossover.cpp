// Crossovers with known answers, and properties that hold for any.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/analysis/pairing.h"
#include "unit/analysis/built_result.h"

namespace dlbench {
namespace {

using built::Builder;
using testing::HasSubstr;

/// A sweep over batch 1, 2, 4, … with these speedups (CPU time / GPU time); the CPU takes `cpu` seconds at each.
Builder sweep(const std::vector<double>& speedups, double scale = 1, bool swapped = false, double noise = 1e-3) {
  Builder b;
  int64_t batch = 1;
  for (const double s : speedups) {
    const double cpu = scale * 1e-4 * std::pow(static_cast<double>(batch), 0.9), gpu = cpu / s;
    b.add({.device = "cpu", .batch = batch, .seconds = swapped ? gpu : cpu, .noise = noise});
    b.add({.device = "gpu:0", .batch = batch, .seconds = swapped ? cpu : gpu, .noise = noise});
    batch *= 2;
  }
  return b;
}

Crossover only(const Builder& b) {
  const Analysis a = analyze(b.result);
  EXPECT_EQ(a.crossovers.size(), 1u);
  return a.crossovers.at(0);
}

TEST(CrossoverTest, EveryVerdict) {
  EXPECT_EQ(only(sweep({2, 3, 4})).verdict, "gpu_always");
  EXPECT_EQ(only(sweep({0.2, 0.3, 0.4})).verdict, "gpu_never");
  EXPECT_EQ(only(sweep({0.5, 0.9, 2, 4})).verdict, "single");
  EXPECT_EQ(only(sweep({4, 2, 0.9, 0.5})).verdict, "reversed");
  EXPECT_EQ(only(sweep({0.5, 2, 0.5})).verdict, "multiple");
  EXPECT_EQ(only(sweep({1, 1, 1})).verdict, "tie");
  EXPECT_EQ(only(sweep({5})).verdict, "too_few_points");
}

TEST(CrossoverTest, BracketsAreMeasuredBatches) {
  const Crossover c = only(sweep({0.25, 0.5, 2, 4}));
  ASSERT_EQ(c.changes.size(), 1u);
  EXPECT_EQ(c.changes[0].from, Winner::cpu);
  EXPECT_EQ(c.changes[0].to, Winner::gpu);
  EXPECT_EQ(c.changes[0].last_before, 2);
  EXPECT_EQ(c.changes[0].first_after, 4);
  EXPECT_NEAR(c.changes[0].estimate, std::sqrt(8), 1e-6);  // 0.5 and 2 lie equally far from 1
}

TEST(CrossoverTest, TheEstimateIsExactForAPowerLaw) {
  std::vector<double> speedups;
  for (int i = 0; i < 8; ++i) speedups.push_back(std::pow(std::exp2(i) / 11.3, 0.7));
  EXPECT_NEAR(only(sweep(speedups)).changes.at(0).estimate, 11.3, 1e-3);
}

TEST(CrossoverTest, TwoCrossingsAreListed) {
  const Crossover c = only(sweep({0.5, 2, 4, 0.5, 0.4}));
  ASSERT_EQ(c.changes.size(), 2u);
  EXPECT_EQ(c.changes[0].first_after, 2);
  EXPECT_EQ(c.changes[1].last_before, 4);
  EXPECT_EQ(c.changes[1].first_after, 8);
  EXPECT_EQ(c.changes[1].to, Winner::cpu);
}

TEST(CrossoverTest, TiesDecideNothingAndWidenTheBracket) {
  const Crossover c = only(sweep({0.5, 1, 1, 2}));
  EXPECT_EQ(c.verdict, "single");
  EXPECT_THAT(c.winner, testing::ElementsAre(Winner::cpu, Winner::tie, Winner::tie, Winner::gpu));
  EXPECT_EQ(c.changes[0].last_before, 1);
  EXPECT_EQ(c.changes[0].first_after, 8);
}

TEST(CrossoverTest, AWideIntervalIsATie) {
  EXPECT_EQ(only(sweep({1.2, 1.3}, 1, false, 0.3)).verdict, "tie");
  EXPECT_EQ(only(sweep({1.2, 1.3}, 1, false, 1e-3)).verdict, "gpu_always");
}

TEST(CrossoverTest, OneProcessDecidesNothing) {
  Builder b = sweep({0.5, 2, 4});
  std::erase_if(b.result.timings, [](const TimingRow& t) { return t.process > 0; });
  EXPECT_EQ(only(b).verdict, "tie");
}

TEST(CrossoverTest, TheBandIsSimultaneousOverTheSweep) {
  const Builder b = sweep({2, 3, 4, 5});
  const Analysis a = analyze(b.result);
  EXPECT_LT(*a.crossovers[0].speedup[0].low, *a.pairs[0].speedup.low);
}

const std::vector<std::vector<double>> kSweeps = {
    {2, 3, 4},        {0.2, 0.3}, {0.5, 0.9, 2, 4}, {4, 2, 0.9, 0.5},    {0.5, 2, 0.5},
    {2, 0.5, 3, 0.4}, {1, 1, 2},  {0.5, 1, 1},      {0.5, 1, 2, 1, 0.3}, {1, 1}};

std::string mirrored(const std::string& verdict) {
  if (verdict == "gpu_always") return "gpu_never";
  if (verdict == "gpu_never") return "gpu_always";
  if (verdict == "single") return "reversed";
  return verdict == "reversed" ? "single" : verdict;
}

Winner mirrored(Winner w) {
  return w == Winner::tie ? w : w == Winner::cpu ? Winner::gpu : Winner::cpu;
}

TEST(CrossoverTest, SwappingTheSidesMirrorsEverything) {
  for (const auto& speedups : kSweeps) {
    const Crossover c = only(sweep(speedups)), m = only(sweep(speedups, 1, true));
    EXPECT_EQ(m.verdict, mirrored(c.verdict));
    ASSERT_EQ(m.changes.size(), c.changes.size());
    for (size_t i = 0; i < c.changes.size(); ++i) {
      EXPECT_EQ(m.changes[i].from, mirrored(c.changes[i].from));
      EXPECT_EQ(m.changes[i].last_before, c.changes[i].last_before);
      EXPECT_EQ(m.changes[i].first_after, c.changes[i].first_after);
      EXPECT_NEAR(m.changes[i].estimate, c.changes[i].estimate, 1e-9 * c.changes[i].estimate);
    }
    for (size_t i = 0; i < c.batch.size(); ++i) EXPECT_EQ(m.winner[i], mirrored(c.winner[i]));
  }
}

TEST(CrossoverTest, ScalingAllTimesChangesNothing) {
  for (const auto& speedups : kSweeps) {
    const Crossover a = only(sweep(speedups)), b = only(sweep(speedups, 37));
    EXPECT_EQ(a.verdict, b.verdict);
    EXPECT_EQ(a.winner, b.winner);
    for (size_t i = 0; i < a.changes.size(); ++i)
      EXPECT_NEAR(a.changes[i].estimate, b.changes[i].estimate, 1e-9 * a.changes[i].estimate);
  }
}

TEST(CrossoverTest, EachVariantOfTheGpuHasItsOwn) {
  Builder b = sweep({0.5, 0.9, 2});
  for (const int64_t batch : {1, 2, 4})
    b.add({.device = "gpu:0", .batch = batch, .seconds = 1e-6, .launch = "graph", .noise = 1e-3});
  const Analysis a = analyze(b.result);
  ASSERT_EQ(a.crossovers.size(), 2u);
  EXPECT_EQ(a.crossovers[0].gpu_variant, "launch=stream");
  EXPECT_EQ(a.crossovers[0].verdict, "single");
  EXPECT_EQ(a.crossovers[1].verdict, "gpu_always");
}

/// CPU points at this fraction of a roofline of 100 GFLOP/s; the GPU wins from batch 4 up.
Crossover against_baseline(double fraction) {
  Builder b;
  b.add({.workload = "peak", .seconds = 1e-2, .flops = 1e9});
  b.add({.workload = "membw", .batch = 1 << 28, .seconds = 1e-2, .bytes = 1 << 28});
  for (const int64_t batch : {1, 2, 4, 8}) {
    const double work = 1e8 * static_cast<double>(batch), cpu = work / (1e11 * fraction);
    b.add({.device = "cpu", .batch = batch, .seconds = cpu, .flops = work, .bytes = 1e3});
    b.add({.device = "gpu:0", .batch = batch, .seconds = cpu / (batch < 4 ? 0.5 : 2), .flops = work, .bytes = 1e3});
  }
  return only(b);
}

TEST(CrossoverTest, AgainstASlowCpuIsSuspect) {
  EXPECT_FALSE(against_baseline(0.9).suspect);
  EXPECT_FALSE(against_baseline(0.6).suspect);
  const Crossover c = against_baseline(0.3);
  EXPECT_EQ(c.verdict, "single");
  ASSERT_TRUE(c.suspect);
  EXPECT_THAT(*c.suspect, HasSubstr("the CPU reaches 30.0 % of its measured roofline"));
}

}  // namespace
}  // namespace dlbench
