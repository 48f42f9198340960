#include "core/measure/gbench.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <stdexcept>

#include "core/base/json.h"

namespace dlbench {
namespace {

TEST(GoogleBenchmark, DrivesOneRepetitionPerTiming) {
  std::vector<int64_t> calls;
  const auto seconds = time_under_google_benchmark("a/b=1", 16, 5, [&](int64_t steps) {
    calls.push_back(steps);
    return 0.016 * static_cast<double>(calls.size());
  });
  EXPECT_THAT(calls, testing::ElementsAre(16, 16, 16, 16, 16));
  ASSERT_EQ(seconds.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_DOUBLE_EQ(seconds[i], 0.001 * static_cast<double>(i + 1));
}

TEST(GoogleBenchmark, HandsErrorsOnAndWorksAgain) {
  int calls = 0;
  const auto failing = [&calls](int64_t) -> double {
    if (++calls == 2) throw std::runtime_error("planted");
    return 1;
  };
  EXPECT_THROW(time_under_google_benchmark("x", 1, 3, failing), std::runtime_error);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(time_under_google_benchmark("x", 1, 2, [](int64_t) { return 1.0; }).size(), 2u);
}

TEST(GoogleBenchmark, WritesItsOwnJson) {
  Result result;
  PointRow point;
  point.key = "gemm/batch=8/device=cpu";
  point.status = Status::ok;
  result.points.push_back(point);
  for (int process = 0; process < 2; ++process) {
    TimingRow row;
    row.key = point.key;
    row.process = process;
    row.steps_per_timing = 4;
    row.wall_seconds = {1e-3, 3e-3};
    result.timings.push_back(row);
  }
  const std::string path = testing::TempDir() + "dlbench_gbench.json";
  write_google_benchmark_json(result, path);
  const Json json = read_json_file(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(json.at("context").contains("num_cpus"));
  const Json& rows = json.at("benchmarks");
  ASSERT_EQ(rows.size(), 8u);  // 4 timings, mean, median, stddev, cv
  EXPECT_EQ(rows[0].at("name"), point.key);
  EXPECT_EQ(rows[0].at("run_type"), "iteration");
  EXPECT_EQ(rows[0].at("repetitions"), 4);
  EXPECT_EQ(rows[3].at("repetition_index"), 3);
  EXPECT_EQ(rows[0].at("iterations"), 4);
  EXPECT_EQ(rows[0].at("time_unit"), "ns");
  EXPECT_NEAR(rows[0].at("real_time").get<double>(), 1e6, 1e-3);
  EXPECT_NEAR(rows[1].at("real_time").get<double>(), 3e6, 1e-3);
  EXPECT_EQ(rows[4].at("name"), point.key + "_mean");
  EXPECT_NEAR(rows[4].at("real_time").get<double>(), 2e6, 1e-3);
  EXPECT_NEAR(rows[6].at("real_time").get<double>(), 1e6 * std::sqrt(4.0 / 3), 1);
  EXPECT_NEAR(rows[7].at("real_time").get<double>(), std::sqrt(4.0 / 3) / 2, 1e-6);
}

}  // namespace
}  // namespace dlbench
