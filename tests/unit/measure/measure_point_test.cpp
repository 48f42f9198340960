#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/base/error.h"
#include "core/device/meta_device.h"
#include "core/device/reference_device.h"
#include "core/measure/runner.h"
#include "support/forwarding_device.h"
#include "unit/measure/test_workload.h"

namespace dlbench {
namespace {

using test::buffer;
using test::LambdaWorkload;
using testing::HasSubstr;

/// The step of the workload that the catalog below creates; set by each test.
test::Step& current_step() {
  static test::Step step;
  return step;
}
std::vector<BufferSpec>& current_buffers() {
  static std::vector<BufferSpec> buffers;
  return buffers;
}

const WorkloadCatalog& catalog() {
  static const WorkloadDescriptor descriptor = [] {
    WorkloadDescriptor d;
    d.name = "made";
    d.create = [](const Point&) -> std::unique_ptr<Workload> {
      return std::make_unique<LambdaWorkload>(current_buffers(), current_step());
    };
    return d;
  }();
  static const WorkloadCatalog all({&descriptor});
  return all;
}

class MeasurePoint : public testing::Test {
 protected:
  MeasurePoint() {
    current_buffers().clear();
    current_step() = [](Device& d, const Binding&) { d.ops().noop(); };
    planned.point.workload = "made";
    planned.point.axes = {{"precision", "fp32"}, {"launch", "stream"}, {"data", "resident"}, {"device", "meta:cpu"}};
    planned.key = planned.point.key();
  }
  PointMeasurement on(Device& device, const ProbeFunction& probe = {}) {
    planned.side = device.info().side;
    return measure_point(planned, config, catalog(), device, 3, probe);
  }
  PointMeasurement on_meta(Side side = Side::cpu) {
    const auto device = make_meta_device(side, meta);
    return on(*device);
  }
  void set_axis(const std::string& name, const std::string& value) {
    for (auto& [axis, old] : planned.point.axes) {
      if (axis == name) old = value;
    }
  }

  PlannedPoint planned;
  Config config;
  MetaOptions meta;
};

TEST_F(MeasurePoint, IsExactOnAVirtualClock) {
  const PointMeasurement m = on_meta();
  ASSERT_EQ(m.status, Status::ok) << m.reason;
  EXPECT_EQ(m.timing.wall_seconds.size(), 11u);
  EXPECT_EQ(m.timing.stop_reason, "converged");
  EXPECT_EQ(m.timing.half_width_relative.value(), 0);
  for (const double seconds : m.timing.wall_seconds) EXPECT_NEAR(seconds, meta.cpu.launch_seconds, 1e-12);
  // The smallest power of two that takes 10 ms at 1 microsecond a step.
  EXPECT_EQ(m.timing.steps_per_timing, 16384);
  EXPECT_GE(m.timing.warmup_seconds, 0.3);
  EXPECT_EQ(m.timing.process, 3);
  EXPECT_EQ(m.timing.allocations_in_timed_region, 0);
  EXPECT_EQ(m.row.verification, "none");
  EXPECT_THAT(m.timing.placement, testing::Each("unknown"));
  EXPECT_EQ(m.timing.block.size(), m.timing.wall_seconds.size());
}

TEST_F(MeasurePoint, AGpuTimingHasAtLeastEightSteps) {
  meta.gpu.launch_seconds = 1;
  const PointMeasurement m = on_meta(Side::gpu);
  EXPECT_EQ(m.timing.steps_per_timing, 8);
  EXPECT_GE(m.timing.warmup_steps, 24);
}

TEST_F(MeasurePoint, RecoversAKnownNoise) {
  meta.noise_sd = 0.05;
  config.measure.max_timings = 81;
  config.measure.point_budget_seconds = 1000;
  const PointMeasurement m = on_meta();
  ASSERT_EQ(m.timing.wall_seconds.size(), 81u);
  double mean = 0, variance = 0;
  for (const double s : m.timing.wall_seconds) mean += std::log(s) / 81;
  for (const double s : m.timing.wall_seconds) variance += std::pow(std::log(s) - mean, 2) / 80;
  // 80 degrees of freedom: chi-square quantiles 0.0005 and 0.9995 over 80 are 0.55 and 1.60.
  EXPECT_GT(variance, 0.55 * 0.05 * 0.05);
  EXPECT_LT(variance, 1.60 * 0.05 * 0.05);
  // The mean of the logarithms within 3.5 standard errors.
  EXPECT_NEAR(mean, std::log(meta.cpu.launch_seconds), 3.5 * 0.05 / 9);
  EXPECT_EQ(m.timing.stop_reason, "max_timings");
}

TEST_F(MeasurePoint, RecoversAKnownSleep) {
  current_step() = [](Device&, const Binding&) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  config.measure.warmup_seconds = 0;
  config.measure.max_timings = 11;
  const auto device = make_reference_device({});
  const PointMeasurement m = on(*device);
  ASSERT_EQ(m.status, Status::ok) << m.reason;
  EXPECT_EQ(m.timing.steps_per_timing, 2);
  const double fastest = *std::min_element(m.timing.wall_seconds.begin(), m.timing.wall_seconds.end());
  EXPECT_GE(fastest, 0.005);
  EXPECT_LT(fastest, 0.0055);
  EXPECT_GT(m.timing.fma_before_flop_per_s.at(0), 0);
}

TEST_F(MeasurePoint, FlagsADrift) {
  meta.drift_per_second = 0.2;
  meta.noise_sd = 0.001;
  EXPECT_THAT(on_meta().timing.flags, testing::Contains("drift"));
}

TEST_F(MeasurePoint, FlagsASpentBudget) {
  meta.noise_sd = 0.3;
  config.measure.point_budget_seconds = 0.2;
  const PointMeasurement m = on_meta();
  EXPECT_EQ(m.timing.stop_reason, "budget_exhausted");
  EXPECT_THAT(m.timing.flags, testing::Contains("budget_exhausted"));
  EXPECT_THAT(m.timing.flags, testing::Contains("noisy"));
}

TEST_F(MeasurePoint, ABlockInWhichTheMachineChangedIsRepeated) {
  int probes = 0;
  const auto device = make_meta_device(Side::cpu, meta);
  // near, far, far, far, …: the first block is thrown away, the second one stands.
  const PointMeasurement m = on(*device, [&probes] { return ProbeValues{++probes == 1 ? 50e-9 : 330e-9, 4e10}; });
  EXPECT_EQ(m.timing.repeated_blocks, 1);
  EXPECT_EQ(m.timing.wall_seconds.size(), 11u);
  EXPECT_THAT(m.timing.ping_pong_before_seconds, testing::Each(330e-9));
}

TEST_F(MeasurePoint, ARestlessMachineStillGivesTimings) {
  int probes = 0;
  const auto device = make_meta_device(Side::cpu, meta);
  const auto restless = [&probes] { return ProbeValues{++probes % 2 ? 50e-9 : 330e-9, 4e10}; };
  EXPECT_EQ(on(*device, restless).timing.repeated_blocks, 4);
  config.measure.point_budget_seconds = 1e-3;  // shorter than one block
  const PointMeasurement m = on(*device, restless);
  EXPECT_EQ(m.status, Status::ok) << m.reason;
  EXPECT_FALSE(m.timing.wall_seconds.empty());
}

TEST_F(MeasurePoint, AnAllocatingStepFails) {
  current_step() = [](Device& d, const Binding&) {
    d.ops().noop();
    d.deallocate(d.allocate(64));
  };
  const PointMeasurement m = on_meta();
  EXPECT_EQ(m.status, Status::failed);
  EXPECT_GT(m.timing.allocations_in_timed_region, 0);
  EXPECT_THAT(m.reason, HasSubstr("allocations"));
}

TEST_F(MeasurePoint, EachErrorHasItsStatus) {
  const auto status_of = [this](auto error) {
    current_step() = [error](Device&, const Binding&) { throw error; };
    const PointMeasurement m = on_meta();
    EXPECT_EQ(m.reason, std::string(error.what()));
    EXPECT_EQ(m.row.status, m.status);
    EXPECT_TRUE(m.timing.wall_seconds.empty());
    return m.status;
  };
  EXPECT_EQ(status_of(OutOfMemoryError("wanted 3 GiB, 1 GiB was free")), Status::out_of_memory);
  EXPECT_EQ(status_of(UnsupportedError("no tf32 here")), Status::unsupported);
  EXPECT_EQ(status_of(DeviceLostError("sticky error")), Status::device_lost);
  EXPECT_EQ(status_of(std::runtime_error("planted")), Status::failed);
}

TEST_F(MeasurePoint, AnErrorInTheTimedRegionEndsThePoint) {
  int calls = 0;
  config.measure.min_timing_seconds = 1e-6;
  config.measure.warmup_seconds = 0;
  current_step() = [&calls](Device& d, const Binding&) {
    d.ops().noop();
    if (++calls == 10) throw DeviceLostError("lost on the way");
  };
  EXPECT_EQ(on_meta().status, Status::device_lost);
}

TEST_F(MeasurePoint, AWrongResultIsAMismatchAndIsNotTimed) {
  current_buffers() = {buffer("y", BufferRole::output, 16)};
  int steps = 0;
  current_step() = [&steps](Device& d, const Binding& b) {
    // Right on the oracle, half as long on the device under test: the first step is the device's.
    d.set_bytes(b[0], 0, ++steps == 1 ? 32 : 64);
  };
  test::ForwardingDevice device(make_reference_device({}));
  const PointMeasurement m = on(device);
  EXPECT_EQ(m.status, Status::mismatch);
  EXPECT_THAT(m.reason, HasSubstr("never written"));
  EXPECT_TRUE(m.timing.wall_seconds.empty());
  EXPECT_EQ(steps, 2);
}

TEST_F(MeasurePoint, AnEmulatedDeviceIsNeverTimed) {
  test::ForwardingDevice device(make_reference_device({}));
  DeviceInfo info = device.info();
  info.emulated = true;
  device.set_info(info);
  const PointMeasurement m = on(device);
  EXPECT_EQ(m.status, Status::unsupported);
  EXPECT_THAT(m.reason, HasSubstr("emulated"));
}

TEST_F(MeasurePoint, RotatesTheInputs) {
  current_buffers() = {buffer("x", BufferRole::input, 4)};
  std::vector<void*> seen;
  current_step() = [&seen](Device& d, const Binding& b) {
    d.ops().noop();
    if (std::find(seen.begin(), seen.end(), b[0]) == seen.end()) seen.push_back(b[0]);
  };
  planned.buffer_sets = 3;
  ASSERT_EQ(on_meta().status, Status::ok);
  EXPECT_EQ(seen.size(), 3u);
}

TEST_F(MeasurePoint, AGraphIsCapturedOncePerSetAndReplayed) {
  int steps = 0;
  current_step() = [&steps](Device& d, const Binding&) {
    d.ops().noop();
    ++steps;
  };
  set_axis("launch", "graph");
  const PointMeasurement m = on_meta(Side::gpu);
  ASSERT_EQ(m.status, Status::ok) << m.reason;
  EXPECT_LE(steps, 4);
}

TEST_F(MeasurePoint, StreamedDataCostTheirTransfer) {
  current_buffers() = {buffer("x", BufferRole::input, 1 << 20)};
  const double resident = on_meta(Side::gpu).timing.wall_seconds.at(0);
  set_axis("data", "streamed");
  const double streamed = on_meta(Side::gpu).timing.wall_seconds.at(0);
  EXPECT_GE(streamed - resident, (4 << 20) / meta.gpu.link_bytes_per_s * 0.99);
}

}  // namespace
}  // namespace dlbench
