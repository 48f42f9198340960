// Points of an analysis: selection of placements, rates, roofline, scaling, and speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "core/report/report.h"
#include "unit/analysis/built_result.h"

namespace dlbench {
namespace {

using built::Builder;
using built::find;
using built::PointSpec;
using testing::HasSubstr;

TEST(Points, RatesAreWorkOverTime) {
  Builder b;
  b.add({.batch = 64, .seconds = 1e-3, .flops = 2e8, .bytes = 1e6});
  const Analysis a = analyze(b.result);
  const AnalyzedPoint& p = a.points[0];
  const double t = p.seconds->value;
  EXPECT_NEAR(t, 1e-3 * std::exp(0.01 / 3), 1e-8);
  EXPECT_DOUBLE_EQ(*p.samples_per_s, 64 / t);
  EXPECT_DOUBLE_EQ(*p.samples_per_s_low, 64 / *p.seconds->high);
  EXPECT_DOUBLE_EQ(*p.samples_per_s_high, 64 / *p.seconds->low);
  EXPECT_DOUBLE_EQ(*p.achieved_flop_per_s, 2e8 / t);
  EXPECT_DOUBLE_EQ(*p.achieved_bytes_per_s, 1e6 / t);
  EXPECT_DOUBLE_EQ(*p.arithmetic_intensity, 200);
}

TEST(Points, OfAnyStatusButOkHaveNoNumbers) {
  Builder b;
  for (const Status s : {Status::unsupported, Status::mismatch, Status::failed, Status::skipped, Status::device_lost}) {
    b.add({.batch = static_cast<int64_t>(s) + 1, .flops = 1e6, .bytes = 1e6});
    b.result.points.back().status = s;  // its timings stay
    b.result.points.back().reason = "planted";
  }
  const Analysis a = analyze(b.result);
  for (const AnalyzedPoint& p : a.points) {
    EXPECT_FALSE(p.seconds || p.samples_per_s || p.achieved_flop_per_s || p.roofline_fraction) << p.row->key;
    EXPECT_EQ(p.reason, "planted");
  }
  EXPECT_TRUE(a.peaks.empty());
}

TEST(Points, WhatIsNotKnownIsEmpty) {
  Builder b;
  b.add({.processes = 1});
  const Analysis a = analyze(b.result);
  EXPECT_TRUE(a.points[0].seconds);
  EXPECT_FALSE(a.points[0].seconds->low || a.points[0].samples_per_s_low);
  EXPECT_FALSE(a.points[0].achieved_flop_per_s || a.points[0].achieved_bytes_per_s || a.points[0].arithmetic_intensity);
  EXPECT_FALSE(a.points[0].roofline_seconds);
  EXPECT_EQ(a.points[0].bound, Bound::unknown);
}

TEST(Placement, TheLabelOfMostProcessesIsUsedAndTheOthersAreCounted) {
  Builder b;
  b.add({.seconds = 1e-3, .processes = 5, .noise = 1e-4, .placement = {"near", "far", "near", "far", "near"}});
  for (TimingRow& t : b.result.timings) {
    if (t.placement[0] == "far") {
      for (double& s : t.wall_seconds) s *= 3;
    }
  }
  const Analysis a = analyze(b.result);
  EXPECT_EQ(a.points[0].placement, "near");
  EXPECT_EQ(a.points[0].seconds->processes, 3);
  EXPECT_EQ(a.points[0].timings_used, 18);
  EXPECT_EQ(a.points[0].timings_left_out, 12);
  EXPECT_NEAR(a.points[0].seconds->value, 1e-3, 1e-6);
  EXPECT_THAT(a.notes, testing::Contains(HasSubstr("12 timings of 1 point were left out")));
}

TEST(Placement, PairsUseEqualLabelsAndNameThem) {
  Builder b;
  b.add({.device = "cpu", .seconds = 4e-3, .processes = 5, .placement = {"near", "near", "near", "far", "far"}});
  for (TimingRow& t : b.result.timings) {
    if (t.placement[0] == "far") {
      for (double& s : t.wall_seconds) s *= 2;
    }
  }
  b.add({.device = "gpu:0", .seconds = 1e-3, .processes = 5, .placement = {"far"}});
  const Analysis a = analyze(b.result);
  ASSERT_EQ(a.pairs.size(), 1u);
  EXPECT_EQ(a.pairs[0].placement, "far");
  EXPECT_NEAR(a.pairs[0].speedup.value, 8, 0.2);
}

TEST(Placement, PairsWithoutACommonLabelAreNotCompared) {
  Builder b;
  b.add({.device = "cpu", .placement = {"near"}}).add({.device = "gpu:0", .placement = {"far"}});
  const Analysis a = analyze(b.result);
  EXPECT_TRUE(a.pairs.empty());
  EXPECT_THAT(a.notes, testing::Contains(HasSubstr("no placement label in common")));
}

TEST(Placement, LabelsOfTwoMachinesAreBothNamed) {
  Builder b;
  b.add({.device = "cpu", .placement = {"near"}}).add({.device = "gpu:0", .placement = {"far"}});
  b.result.points[0].source = "a.json";
  b.result.points[1].source = "b.json";
  const Analysis a = analyze(b.result);
  ASSERT_EQ(a.pairs.size(), 1u);
  EXPECT_EQ(a.pairs[0].placement, "cpu: near, gpu: far");
}

Builder with_ceilings() {
  Builder b;
  b.add({.workload = "peak", .seconds = 1e-2, .flops = 2e9});  // 200 GFLOP/s
  b.add({.workload = "membw", .batch = 1 << 20, .seconds = 1e-5, .bytes = 1 << 20});
  b.add({.workload = "membw", .batch = 1 << 28, .seconds = 1e-2, .bytes = 1 << 28});
  return b;
}

TEST(RooflineTest, NamesWhatBoundsAPoint) {
  Builder b = with_ceilings();
  b.add({.batch = 1, .seconds = 2e-3, .flops = 2e8, .bytes = 1e6});      // 1 ms of compute, 10 us of memory
  b.add({.batch = 2, .seconds = 2e-2, .flops = 1e6, .bytes = 1 << 28});  // 10 ms of memory
  b.add({.batch = 3, .seconds = 2e-5, .flops = 1e3, .bytes = 1 << 20, .working_set = 1 << 20});  // 10 us of cache
  const Analysis a = analyze(b.result);
  EXPECT_EQ(find(a, "cpu", 1).bound, Bound::compute);
  EXPECT_NEAR(*find(a, "cpu", 1).roofline_fraction, 0.5, 1e-9);
  EXPECT_EQ(find(a, "cpu", 2).bound, Bound::bandwidth);
  EXPECT_NEAR(*find(a, "cpu", 2).roofline_fraction, 0.5, 1e-9);
  EXPECT_EQ(find(a, "cpu", 3).bound, Bound::cache);
  EXPECT_NEAR(*find(a, "cpu", 3).roofline_fraction, 0.5, 1e-9);
}

TEST(RooflineTest, HoldsForItsOwnDevicePrecisionAndThreadsOnly) {
  Builder b = with_ceilings();
  b.add({.batch = 1, .flops = 1e8, .bytes = 1e6, .threads = 1});
  b.add({.device = "gpu:0", .batch = 1, .flops = 1e8, .bytes = 1e6});
  const Analysis a = analyze(b.result);
  EXPECT_FALSE(find(a, "cpu", 1).roofline_fraction);
  EXPECT_FALSE(find(a, "gpu:0", 1).roofline_fraction);
}

TEST(RooflineTest, CountsAllCopiesOfRotatedBuffers) {
  Builder b = with_ceilings();
  b.add({.batch = 1, .seconds = 1e-2, .bytes = 1 << 20});
  b.result.points.back().tensor_bytes = 1 << 20;
  b.result.points.back().buffer_sets = 256;
  EXPECT_EQ(find(analyze(b.result), "cpu", 1).bound, Bound::bandwidth);
}

TEST(RooflineTest, ACeilingOfAnotherPlacementIsNamed) {
  Builder b = with_ceilings();
  b.add({.batch = 1, .seconds = 2e-3, .flops = 2e8, .bytes = 1e3, .placement = {"far"}});
  const Analysis a = analyze(b.result);
  EXPECT_NEAR(*find(a, "cpu", 1).roofline_fraction, 0.5, 1e-9);
  EXPECT_EQ(find(a, "cpu", 1).roofline_placement, "near");
}

TEST(RooflineTest, AMemoryCeilingOfAnotherPlacementIsNone) {
  Builder b = with_ceilings();
  b.add({.batch = 1, .seconds = 2e-2, .bytes = 1 << 28, .placement = {"far"}});
  const Analysis a = analyze(b.result);
  EXPECT_FALSE(find(a, "cpu", 1).roofline_fraction);
  EXPECT_THAT(find(a, "cpu", 1).roofline_missing, HasSubstr("placement of the cores"));
  EXPECT_THAT(a.notes, testing::Contains(HasSubstr("1 point has no fraction of the roofline: no bandwidth was measured "
                                                   "in the same placement")));
}

TEST(RooflineTest, ACeilingOfAnotherCacheLevelIsNone) {
  Builder b = with_ceilings();
  b.add({.batch = 1, .seconds = 2e-3, .bytes = 1 << 24});  // 105 GB/s at 1 MiB, 27 GB/s at 256 MiB
  b.add({.batch = 2, .seconds = 2e-5, .bytes = 1 << 20, .working_set = 1 << 18});  // may be in a faster cache
  b.add({.batch = 3, .seconds = 2e-5, .bytes = 1 << 20, .working_set = 3 << 19});
  const Analysis a = analyze(b.result);
  EXPECT_THAT(find(a, "cpu", 1).roofline_missing, HasSubstr("near its working set"));
  EXPECT_THAT(find(a, "cpu", 2).roofline_missing, HasSubstr("near its working set"));
  EXPECT_NEAR(*find(a, "cpu", 3).roofline_fraction, 0.5, 1e-9);
  EXPECT_EQ(find(a, "cpu", 3).roofline_missing, "");
}

TEST(RooflineTest, BeyondTheLastCacheEverythingIsMemory) {
  Builder b = with_ceilings();
  b.add({.batch = 1, .seconds = 5e-3, .bytes = 1 << 26});
  EXPECT_FALSE(find(analyze(b.result), "cpu", 1).roofline_fraction);
  b.result.environment["devices"] = {{{"id", "cpu"}, {"facts", {{"last_level_cache_bytes", "33554432"}}}}};
  const Analysis a = analyze(b.result);
  EXPECT_NEAR(*find(a, "cpu", 1).roofline_fraction, 0.5, 1e-9);
  EXPECT_EQ(find(a, "cpu", 1).bound, Bound::bandwidth);
}

TEST(RooflineTest, AStreamThatWritesAnotherShareIsNoCeiling) {
  Builder b;
  b.add({.workload = "membw", .batch = 1 << 28, .seconds = 1e-2, .bytes = 1 << 28, .written_share = 1.0 / 3});
  b.add({.batch = 1, .seconds = 2e-2, .bytes = 1 << 28});
  b.add({.batch = 2, .seconds = 2e-2, .bytes = 1 << 28, .written_share = 0.5});
  const Analysis a = analyze(b.result);
  EXPECT_THAT(find(a, "cpu", 1).roofline_missing, HasSubstr("share of its bytes"));
  EXPECT_NEAR(*find(a, "cpu", 2).roofline_fraction, 0.5, 1e-9);
  // The nearest mix counts, though another is faster.
  b.result.points.clear(), b.result.timings.clear();
  b.add({.workload = "membw", .batch = 1 << 28, .seconds = 1e-2, .bytes = 1 << 28, .written_share = 1.0 / 3});
  b.add({.workload = "membw", .batch = (1 << 28) + 64, .seconds = 1.6e-2, .bytes = 1 << 28, .written_share = 0.5});
  b.add({.batch = 2, .seconds = 2e-2, .bytes = 1 << 28, .written_share = 0.5});
  EXPECT_NEAR(*find(analyze(b.result), "cpu", 2).roofline_fraction, 0.8, 1e-9);
}

TEST(RooflineTest, ALaunchNeedsNoOtherCeiling) {
  Builder b;
  b.add({.workload = "membw", .device = "gpu:0", .batch = 1 << 28, .seconds = 1e-3, .bytes = 1 << 28});
  b.add({.workload = "launch", .device = "gpu:0", .batch = 1, .seconds = 4e-6});
  b.add({.device = "gpu:0", .batch = 1, .seconds = 8e-6, .bytes = 1e3, .written_share = 1});
  const Analysis a = analyze(b.result);
  EXPECT_EQ(find(a, "gpu:0", 1).bound, Bound::launch);
  EXPECT_NEAR(*find(a, "gpu:0", 1).roofline_fraction, 0.5, 1e-9);
}

TEST(RooflineTest, WhatAPointExceedsIsNoCeiling) {
  Builder b = with_ceilings();
  b.add({.batch = 1, .seconds = 8e-6, .bytes = 1 << 20});
  const Analysis a = analyze(b.result);
  EXPECT_FALSE(find(a, "cpu", 1).roofline_fraction);
  EXPECT_THAT(find(a, "cpu", 1).roofline_missing, HasSubstr("faster than the ceiling"));
}

TEST(RooflineTest, CeilingsOfOneMachineAreNoneOnAnother) {
  Builder b = with_ceilings();
  for (PointRow& row : b.result.points) row.source = "a.json";
  b.add({.batch = 1, .seconds = 2e-2, .flops = 1e6, .bytes = 1 << 28});
  b.result.points.back().source = "b.json";
  EXPECT_FALSE(find(analyze(b.result), "cpu", 1).roofline_fraction);
  b.result.points.back().source = "a.json";
  EXPECT_NEAR(*find(analyze(b.result), "cpu", 1).roofline_fraction, 0.5, 1e-9);
}

TEST(RooflineTest, AGpuStepIsAtLeastOneLaunch) {
  Builder b;
  b.add({.workload = "peak", .device = "gpu:0", .seconds = 1e-2, .flops = 1e11});
  b.add({.workload = "membw", .device = "gpu:0", .batch = 1 << 28, .seconds = 1e-3, .bytes = 1 << 28});
  b.add({.workload = "launch", .device = "gpu:0", .batch = 1, .seconds = 4e-6});
  b.add({.device = "gpu:0", .batch = 1, .seconds = 8e-6, .flops = 1e3, .bytes = 1e3});
  const Analysis a = analyze(b.result);
  EXPECT_EQ(find(a, "gpu:0", 1).bound, Bound::launch);
  EXPECT_NEAR(*find(a, "gpu:0", 1).roofline_fraction, 0.5, 1e-9);
}

TEST(RooflineTest, EmulatedPrecisionsAreHeldAgainstWhatComputesThem) {
  Builder b = with_ceilings();
  b.add({.precision = "bf16", .batch = 1, .seconds = 2e-3, .flops = 2e8, .bytes = 1e3, .support = "emulated"});
  EXPECT_NEAR(*find(analyze(b.result), "cpu", 1).roofline_fraction, 0.5, 1e-9);
}

TEST(RooflineTest, TheBestProductIsTheCeilingWhereNoPeakWasMeasuredAndSaysSo) {
  Builder b;
  b.add({.workload = "membw", .batch = 1 << 28, .seconds = 1e-2, .bytes = 1 << 28});
  b.add({.batch = 1, .seconds = 2e-3, .flops = 2e8, .bytes = 1e3});
  b.add({.batch = 2, .seconds = 1e-3, .flops = 2e8, .bytes = 1e3});
  const Analysis a = analyze(b.result);
  EXPECT_THAT(find(a, "cpu", 2).flags, testing::Contains("own_ceiling"));
  EXPECT_THAT(find(a, "cpu", 1).flags, testing::Not(testing::Contains("own_ceiling")));
  EXPECT_NEAR(*find(a, "cpu", 1).roofline_fraction, 0.5, 1e-9);
}

TEST(Scaling, IsTheRateOverThatOfOneThread) {
  Builder b;
  b.add({.seconds = 4e-3, .flops = 1e8, .threads = 1}).add({.seconds = 2.5e-3, .flops = 1e8, .threads = 2});
  b.add({.workload = "peak", .seconds = 1e-2, .flops = 1e9, .threads = 1});
  b.add({.workload = "peak", .seconds = 1e-2, .flops = 2e9, .threads = 2});
  b.add({.batch = 7, .threads = 2});  // without one thread to compare with
  const Analysis a = analyze(b.result);
  ASSERT_EQ(a.scaling.size(), 2u);
  EXPECT_THAT(a.scaling[0].threads, testing::ElementsAre(1, 2));
  EXPECT_NEAR(a.scaling[0].speedup[1], 1.6, 1e-9);
  EXPECT_NEAR(a.scaling[0].efficiency[1], 0.8, 1e-9);
  EXPECT_NEAR(a.scaling[1].speedup[1], 2, 1e-9);
}

/// Everything derived, as text, in the order of the keys.
std::vector<std::string> derived(const Analysis& a) {
  std::vector<std::string> lines;
  const Json report = render_json(a, {});
  for (const char* part : {"points", "pairs", "peaks", "crossovers", "scaling"}) {
    for (const Json& row : report[part]) lines.push_back(row.dump());
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(Analyze, DoesNotDependOnTheOrderOfRows) {
  Builder b = with_ceilings();
  for (const int64_t batch : {1, 4, 16, 64}) {
    for (const int threads : {1, 2}) {
      b.add({.device = "cpu",
             .batch = batch,
             .seconds = 1e-4 * static_cast<double>(batch) / threads,
             .flops = 1e6 * static_cast<double>(batch),
             .bytes = 1e5,
             .threads = threads,
             .placement = {"near", "far", "near"}});
    }
    b.add(
        {.device = "gpu:0", .batch = batch, .seconds = 1e-3, .flops = 1e6 * static_cast<double>(batch), .bytes = 1e5});
  }
  const std::vector<std::string> expected = derived(analyze(b.result));
  std::mt19937 random(7);
  for (int round = 0; round < 10; ++round) {
    std::shuffle(b.result.points.begin(), b.result.points.end(), random);
    std::shuffle(b.result.timings.begin(), b.result.timings.end(), random);
    EXPECT_EQ(derived(analyze(b.result)), expected);
  }
}

TEST(Analyze, MetaDevicesPairAmongThemselvesOnly) {
  Builder b;
  b.add({.device = "cpu"}).add({.device = "meta:gpu"}).add({.device = "reference", .kind = "reference"});
  EXPECT_TRUE(analyze(b.result).pairs.empty());
  b.add({.device = "meta:cpu"});
  const Analysis a = analyze(b.result);
  ASSERT_EQ(a.pairs.size(), 1u);
  EXPECT_EQ(a.pairs[0].cpu->row->device, "meta:cpu");
}

TEST(Analyze, TheFastestThreadCountStandsForTheCpu) {
  Builder b;
  b.add({.seconds = 3e-3, .threads = 1})
      .add({.seconds = 4e-3, .threads = 2})
      .add({.device = "gpu:0"})
      .add({.device = "gpu:0", .launch = "graph"});
  const Analysis a = analyze(b.result);
  ASSERT_EQ(a.pairs.size(), 2u);
  EXPECT_EQ(a.pairs[0].cpu->row->point.integer("threads"), 1);
  EXPECT_EQ(a.pairs[0].gpu_variant, "launch=stream");
  EXPECT_EQ(a.pairs[1].gpu_variant, "launch=graph");
}

TEST(Analyze, TakesNoQuadraticTimeOverFiveThousandPoints) {
  Builder b = with_ceilings();
  for (int64_t batch = 1; batch <= 2500; ++batch) {
    const auto n = static_cast<double>(batch);
    for (const char* device : {"cpu", "gpu:0"}) {
      b.add(
          {.device = device, .batch = batch, .seconds = 1e-5 * n, .flops = 1e5 * n, .bytes = 1e3 * n, .processes = 5});
    }
  }
  for (TimingRow& t : b.result.timings) {
    while (t.wall_seconds.size() < 41) t.wall_seconds.push_back(t.wall_seconds.back() * 1.0001);
    t.block.assign(t.wall_seconds.size(), 0);
  }
  const std::clock_t start = std::clock();
  const Analysis a = analyze(b.result);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(a.pairs.size(), 2500u);
  RecordProperty("seconds", std::to_string(seconds));
  std::printf("analyze: %.3f s of processor time\n", seconds);
  EXPECT_LT(seconds, 5);  // ten times the aim: a quadratic step shows, a busy machine or a sanitizer doesn't
}

}  // namespace
}  // namespace dlbench
