#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/analysis/calibration.h"
#include "core/base/error.h"
#include "core/device/meta_noise.h"
#include "unit/analysis/built_result.h"

namespace dlbench {
namespace {

/// Sessions with a known variance between sessions and between their processes.
std::vector<Result> sessions(int count, int processes, int points, double session_sd, double process_sd) {
  std::vector<Result> results;
  uint64_t next = 0;
  for (int s = 0; s < count; ++s) {
    built::Builder builder;
    for (int p = 0; p < points; ++p)
      builder.add({.batch = p + 1, .seconds = 1e-3 * (p + 1), .processes = processes, .noise = 0});
    for (int p = 0; p < points; ++p) {
      const double shift = session_sd * noise_value(NoiseShape::normal, 5, 1, next++);
      for (TimingRow& row : builder.result.timings) {
        if (row.key != builder.result.points[static_cast<size_t>(p)].key) continue;
        const double factor = std::exp(shift + process_sd * noise_value(NoiseShape::normal, 5, 2, next++));
        for (double& seconds : row.wall_seconds) seconds *= factor;
      }
    }
    builder.result.environment = {{"fingerprint", "0123456789abcdef"}, {"cpu", {{"model", "Z80"}, {"usable_cpus", 2}}}};
    builder.result.config = {{"name", "built"}};
    results.push_back(builder.result);
  }
  return results;
}

TEST(Calibration, FindsTheVarianceComponentsThatWerePutIn) {
  const NoiseProfile profile = calibrate(sessions(20, 5, 100, 0.02, 0.01));
  ASSERT_EQ(profile.devices.size(), 1u);
  const DeviceNoise& cpu = profile.devices[0];
  EXPECT_EQ(cpu.device_class, "cpu");
  EXPECT_EQ(cpu.points, 100);
  EXPECT_NEAR(cpu.between_session_sd, 0.02, 0.001);
  EXPECT_NEAR(std::sqrt(cpu.prior_variance), 0.01, 0.0005);
  EXPECT_EQ(profile.sessions, 20);
  EXPECT_EQ(profile.processes, 5);
  EXPECT_EQ(profile.machine, "Z80, 2 CPUs");
}

TEST(Calibration, SessionsThatDifferByTheirProcessesOnlyHaveNoNoiseOfTheirOwn) {
  EXPECT_LT(calibrate(sessions(20, 5, 100, 0, 0.01)).devices[0].between_session_sd, 0.0015);
}

TEST(Calibration, MoreNoiseMeansLessToSeeAndMoreProcessesMore) {
  const NoiseProfile quiet = calibrate(sessions(8, 5, 40, 0.002, 0.005)),
                     noisy = calibrate(sessions(8, 5, 40, 0.02, 0.05));
  for (size_t i = 0; i < quiet.devices[0].detectable.size(); ++i) {
    EXPECT_LT(quiet.devices[0].detectable[i].effect, noisy.devices[0].detectable[i].effect);
    if (i == 0) continue;
    EXPECT_LT(quiet.devices[0].detectable[i].effect, quiet.devices[0].detectable[i - 1].effect);
  }
  EXPECT_THAT(calibration_sentences(noisy).at(0),
              testing::ContainsRegex("cpu: this machine can see [0-9]+ % at 5 processes"));
}

TEST(Calibration, OnlyTimingsOfOnePlacementCount) {
  std::vector<Result> results = sessions(6, 6, 12, 0, 0.001);
  for (Result& result : results) {
    for (TimingRow& row : result.timings) {
      if (row.process != 5) continue;
      row.placement = {"far"};
      for (double& seconds : row.wall_seconds) seconds *= 3;
    }
  }
  EXPECT_LT(std::sqrt(calibrate(results).devices[0].prior_variance), 0.002);
}

TEST(Calibration, WhatCantBeToldIsRefusedOrWarnedOf) {
  EXPECT_THROW(calibrate(sessions(1, 5, 20, 0, 0.01)), InputError);
  EXPECT_THROW(calibrate(sessions(3, 1, 20, 0, 0.01)), InputError);
  std::vector<Result> two_machines = sessions(2, 3, 20, 0, 0.01);
  two_machines[1].environment["fingerprint"] = "fedcba9876543210";
  EXPECT_THROW(calibrate(two_machines), InputError);
  const NoiseProfile few = calibrate(sessions(2, 3, 4, 0, 0.01));
  EXPECT_THAT(few.warnings, testing::Contains(testing::HasSubstr("4 points are too few")));
  EXPECT_THAT(few.warnings, testing::Contains(testing::HasSubstr("2 sessions tell little")));
  EXPECT_EQ(few.devices[0].prior_degrees, 0);
}

}  // namespace
}  // namespace dlbench
