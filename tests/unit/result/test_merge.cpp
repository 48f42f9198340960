#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/error.h"
#include "core/result/result_io.h"
#include "unit/result/made_result.h"

namespace dlbench {
namespace {

using testing::HasSubstr;

/// A machine with a GPU that measured nothing else.
Result gpu_box() {
  Result r = made::result("gpu box");
  r.points = {made::point("cpu", 64, Status::skipped), made::point("gpu:0", 64)};
  r.timings.clear();
  for (int p = 0; p < 3; ++p) r.timings.push_back(made::timing(r.points[1].key, p, 1e-5));
  return r;
}

TEST(Merge, TakesTheMeasuredRowOfEachKey) {
  const Result merged = merge_results({made::result(), gpu_box()}, {"cpu.json", "gpu.json"});
  ASSERT_EQ(merged.points.size(), 3u);
  for (const PointRow& row : merged.points) {
    EXPECT_EQ(row.status, Status::ok) << row.key;
    EXPECT_EQ(row.source, row.side == "gpu" ? "gpu.json" : "cpu.json");
  }
  EXPECT_EQ(merged.timings.size(), 9u);
  EXPECT_EQ(merged.environment["machines"].size(), 2u);
  EXPECT_EQ(merged.environment["machines"][1]["environment"]["fingerprint"], "gpu box");
  EXPECT_THAT(merged.warnings[1], HasSubstr("gpu.json: "));
}

TEST(Merge, LabelsOfTheSameKindOfMachineMeanTheSame) {
  Result near = made::result(), far = gpu_box();
  for (Result* r : {&near, &far}) r->environment["cpu"] = {{"model", "EPYC"}, {"usable_cpus", 2}};
  for (TimingRow& t : near.timings) t.placement.assign(2, "uniform");
  for (TimingRow& t : far.timings) {
    t.placement.assign(2, "uniform");
    for (auto* values : {&t.ping_pong_before_seconds, &t.ping_pong_after_seconds}) values->assign(2, 3.3e-7);
  }
  const auto labels = [](const Result& merged) {
    std::map<std::string, std::set<std::string>> seen;
    for (const TimingRow& t : merged.timings) seen[t.key].insert(t.placement.begin(), t.placement.end());
    return seen;
  };
  auto seen = labels(merge_results({near, far}, {"a.json", "b.json"}));
  EXPECT_THAT(seen[near.points[0].key], testing::ElementsAre("near"));
  EXPECT_THAT(seen[far.points[1].key], testing::ElementsAre("far"));
  far.environment["cpu"]["model"] = "Xeon";  // nanoseconds of two machines say nothing about each other
  seen = labels(merge_results({near, far}, {"a.json", "b.json"}));
  EXPECT_THAT(seen[near.points[0].key], testing::ElementsAre("uniform"));
  EXPECT_THAT(seen[far.points[1].key], testing::ElementsAre("uniform"));
}

TEST(Merge, ProcessesAreNumberedOn) {
  const Result merged = merge_results({made::result(), gpu_box()}, {"cpu.json", "gpu.json"});
  std::set<std::pair<std::string, int>> seen;
  for (const TimingRow& t : merged.timings) EXPECT_TRUE(seen.insert({t.key, t.process}).second);
  std::set<int> processes;
  for (const ProcessRow& p : merged.processes) EXPECT_TRUE(processes.insert(p.process).second);
}

TEST(Merge, DoesNotDependOnTheOrderExceptOfRows) {
  const Result a = merge_results({made::result(), gpu_box()}, {"cpu.json", "gpu.json"});
  const Result b = merge_results({gpu_box(), made::result()}, {"gpu.json", "cpu.json"});
  std::set<std::string> keys_a, keys_b;
  for (const PointRow& r : a.points) keys_a.insert(to_json(r).dump() + r.source);
  for (const PointRow& r : b.points) keys_b.insert(to_json(r).dump() + r.source);
  EXPECT_EQ(keys_a, keys_b);
}

TEST(Merge, TheSameMeasurementTwiceCountsOnce) {
  const Result merged = merge_results({made::result(), made::result()}, {"a.json", "copy.json"});
  EXPECT_EQ(merged.points.size(), 3u);
  EXPECT_EQ(merged.timings.size(), 6u);
}

TEST(Merge, AKeyMeasuredTwiceIsRefusedUnlessOneIsPreferred) {
  Result second = made::result("another box");
  second.timings[0].wall_seconds[0] *= 2;
  try {
    merge_results({made::result(), second}, {"a.json", "b.json"});
    FAIL() << "nothing was thrown";
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("a.json and b.json both measured gemm/"));
    EXPECT_THAT(e.what(), HasSubstr("--prefer b.json"));
  }
  const Result merged = merge_results({made::result(), second}, {"a.json", "b.json"}, "b.json");
  for (const PointRow& row : merged.points) {
    if (row.status == Status::ok) {
      EXPECT_EQ(row.source, "b.json");
    }
  }
  EXPECT_EQ(merged.timings[0].wall_seconds[0], second.timings[0].wall_seconds[0]);
}

TEST(Merge, TwoRowsOfOneKeyInOneFileAreRefused) {
  Result twice = made::result();
  twice.points.push_back(twice.points[0]);
  EXPECT_THROW(merge_results({twice, gpu_box()}, {"a.json", "b.json"}), InputError);
}

TEST(Merge, APreferredFileMustBeAmongThem) {
  EXPECT_THROW(merge_results({made::result(), gpu_box()}, {"a.json", "b.json"}, "c.json"), UsageError);
}

}  // namespace
}  // namespace dlbench
