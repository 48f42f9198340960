// Every gate sees the impossibility that is planted for it, and stays silent on the possible thing next to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/analysis/built_result.h"

namespace dlbench {
namespace {

using built::Builder;
using built::find;
using testing::HasSubstr;

Builder cpu_ceilings() {
  Builder b;
  b.add({.workload = "peak", .seconds = 1e-2, .flops = 1e9});                            // 100 GFLOP/s
  b.add({.workload = "membw", .batch = 1 << 18, .seconds = 2.62e-6, .bytes = 1 << 18});  // cache: 100 GB/s
  b.add({.workload = "membw", .batch = 1 << 26, .seconds = 3.36e-3, .bytes = 1 << 26});  // memory: 20 GB/s
  b.add({.workload = "membw", .batch = 1 << 28, .seconds = 1.342e-2, .bytes = 1 << 28});
  return b;
}

void expect_invalid(const AnalyzedPoint& p, const char* reason) {
  EXPECT_EQ(p.status, Status::invalid);
  EXPECT_THAT(p.reason, HasSubstr(reason));
  EXPECT_FALSE(p.seconds || p.samples_per_s || p.achieved_flop_per_s || p.roofline_fraction);
  EXPECT_GT(p.timings_used, 0);
}

TEST(Gates, FasterThanTheMeasuredPeak) {
  Builder b = cpu_ceilings();
  b.add({.batch = 1, .seconds = 1e-3, .flops = 1.02e8, .bytes = 1e4});  // 2 % above, within the margin
  b.add({.batch = 2, .seconds = 1e-3, .flops = 1.2e8, .bytes = 1e4});   // 20 % above
  const Analysis a = analyze(b.result);
  EXPECT_EQ(find(a, "cpu", 1).status, Status::ok);
  expect_invalid(find(a, "cpu", 2), "above the measured peak of");
}

TEST(Gates, APointIsNeverItsOwnPeak) {
  Builder b;  // no `peak` point: the fastest gemm is the ceiling of the roofline, but judges nothing
  b.add({.batch = 1, .seconds = 1e-3, .flops = 1e7, .bytes = 1e4})
      .add({.batch = 2, .seconds = 1e-3, .flops = 1e12, .bytes = 1e4});
  const Analysis a = analyze(b.result);
  EXPECT_EQ(find(a, "cpu", 2).status, Status::ok);
  EXPECT_THAT(a.notes, testing::Contains(HasSubstr("cpu fp32: no peak of the unit")));
}

TEST(Gates, TensorCoresAreNotHeldAgainstFmaLoops) {
  Builder b;
  for (const char* precision : {"fp32", "bf16"}) {
    b.add({.workload = "peak", .device = "gpu:0", .precision = precision, .seconds = 1e-2, .flops = 1e11});
    b.add({.device = "gpu:0",
           .precision = precision,
           .batch = 1,
           .seconds = 1e-3,
           .flops = 1e11,
           .bytes = 1e4});  // ten times
  }
  const Analysis a = analyze(b.result);
  expect_invalid(a.points[1], "above the measured peak");
  EXPECT_EQ(a.points[3].status, Status::ok);
  EXPECT_THAT(a.notes, testing::Contains(HasSubstr("gpu:0 bf16: no peak")));
}

TEST(Gates, EmulatedPrecisionsMayReachThePeakOfFp32) {
  Builder b = cpu_ceilings();
  b.add({.workload = "peak", .precision = "bf16", .seconds = 1e-2, .flops = 1e8});
  b.add({.precision = "bf16", .batch = 1, .seconds = 1e-3, .flops = 9e7, .bytes = 1e4, .support = "emulated"});
  b.add({.precision = "bf16", .batch = 2, .seconds = 1e-3, .flops = 2e8, .bytes = 1e4, .support = "emulated"});
  const Analysis a = analyze(b.result);
  EXPECT_EQ(find(a, "cpu", 1).status, Status::ok);
  expect_invalid(find(a, "cpu", 2), "above the measured peak");
}

TEST(Gates, FasterThanTheMeasuredBandwidthBeyondTheCache) {
  Builder b = cpu_ceilings();
  b.add({.workload = "axpy", .batch = 1, .seconds = 1e-2, .bytes = 2e8});  // 20 GB/s
  b.add({.workload = "axpy", .batch = 2, .seconds = 5e-3, .bytes = 2e8});  // 40 GB/s: impossible
  b.add({.workload = "axpy",
         .batch = 3,
         .seconds = 5e-3,
         .bytes = 2e8,
         .working_set = 1 << 18});  // possible in the cache
  const Analysis a = analyze(b.result);
  EXPECT_EQ(find(a, "cpu", 1, "axpy").status, Status::ok);
  expect_invalid(find(a, "cpu", 2, "axpy"), "above the measured bandwidth of");
  EXPECT_EQ(find(a, "cpu", 3, "axpy").status, Status::ok);
}

TEST(Gates, BelowTheLaunchFloor) {
  Builder b;
  b.add({.workload = "launch", .device = "gpu:0", .batch = 100, .seconds = 4e-4});  // 4 us each
  b.add({.device = "gpu:0", .batch = 1, .seconds = 4.1e-6, .flops = 10});
  b.add({.device = "gpu:0", .batch = 2, .seconds = 2e-6, .flops = 20});
  b.add({.device = "gpu:0", .batch = 3, .seconds = 2e-6, .flops = 20, .launch = "graph"});  // its floor wasn't measured
  b.add({.device = "cpu", .batch = 4, .seconds = 1e-7, .flops = 20});  // a CPU step needs no launch
  const Analysis a = analyze(b.result);
  EXPECT_EQ(find(a, "gpu:0", 1).status, Status::ok);
  expect_invalid(find(a, "gpu:0", 2), "below the measured launch floor of");
  EXPECT_EQ(find(a, "gpu:0", 3).status, Status::ok);
  EXPECT_EQ(find(a, "cpu", 4).status, Status::ok);
}

TEST(Gates, WithoutAnyVariance) {
  Builder b;
  b.add({.batch = 1, .noise = 0}).add({.batch = 2}).add({.device = "meta:cpu", .batch = 3, .noise = 0});
  const Analysis a = analyze(b.result);
  expect_invalid(find(a, "cpu", 1), "all 18 timings are exactly 1 ms");
  EXPECT_EQ(find(a, "cpu", 2).status, Status::ok);
  EXPECT_EQ(find(a, "meta:cpu", 3).status, Status::ok);
}

TEST(Gates, NoTimeAtAll) {
  Builder b;
  b.add({.batch = 1});
  b.result.timings[1].wall_seconds[2] = 0;
  expect_invalid(find(analyze(b.result), "cpu", 1), "is not a time");
}

TEST(Gates, NotGrowingWhileTheWorkDoes) {
  Builder b;
  b.add({.batch = 1, .seconds = 1e-2, .flops = 1e6, .bytes = 1e6})
      .add({.batch = 16, .seconds = 1e-2, .flops = 1.6e7, .bytes = 1.6e7});
  b.add({.workload = "dot", .batch = 1, .seconds = 1e-2, .flops = 1e6})
      .add({.workload = "dot", .batch = 16, .seconds = 1.3e-2, .flops = 1.6e7});
  // The weights of a layer are read whatever the batch: their time need not grow.
  b.add({.workload = "gemv", .batch = 1, .seconds = 1e-2, .flops = 1e6, .bytes = 1e8});
  b.add({.workload = "gemv", .batch = 16, .seconds = 1e-2, .flops = 1.6e7, .bytes = 1e8});
  // Below a fixed cost nothing need grow.
  b.add({.workload = "axpy", .batch = 1, .seconds = 1e-5, .flops = 1e3})
      .add({.workload = "axpy", .batch = 16, .seconds = 1e-5, .flops = 1.6e4});
  const Analysis a = analyze(b.result);
  EXPECT_EQ(find(a, "cpu", 1).status, Status::ok);
  expect_invalid(find(a, "cpu", 16), "no longer than 10 ms at 1 although the work grew 16-fold");
  EXPECT_EQ(find(a, "cpu", 16, "dot").status, Status::ok);
  EXPECT_EQ(find(a, "cpu", 16, "gemv").status, Status::ok);
  EXPECT_EQ(find(a, "cpu", 16, "axpy").status, Status::ok);
}

TEST(Gates, InvalidPointsAreNeverUsedInASpeedupOrACeiling) {
  Builder b = cpu_ceilings();
  b.add({.device = "cpu", .batch = 1, .seconds = 1e-3, .flops = 1e9, .bytes = 1e4});  // ten times the peak
  b.add({.device = "gpu:0", .batch = 1, .seconds = 1e-3, .flops = 1e9, .bytes = 1e4});
  const Analysis a = analyze(b.result);
  EXPECT_TRUE(a.pairs.empty());
  for (const Peak& peak : a.peaks) EXPECT_NE(peak.source, find(a, "cpu", 1).row->key);
}

TEST(Gates, AnInvalidPeakIsNoCeiling) {
  Builder b;
  b.add({.workload = "peak", .seconds = 1e-2, .flops = 1e6, .noise = 0});  // without variance
  b.add({.batch = 1, .seconds = 1e-3, .flops = 1e8, .bytes = 1e4});
  EXPECT_EQ(find(analyze(b.result), "cpu", 1).status, Status::ok);
}

}  // namespace
}  // namespace dlbench
