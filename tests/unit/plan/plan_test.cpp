#include "core/plan/plan.h"

#include "core/base/error.h"
#include "unit/plan/expect_error.h"
#include "workloads/catalog.h"

namespace dlbench {
namespace {

using test::message_of;

Config config_of(const std::string& text, const Overrides& overrides = {}) {
  return parse_config(parse_json(text, "test.json", JsonComments::kAllow), "test.json", overrides, workload_catalog());
}

Plan plan_of(const std::string& text, const Overrides& overrides = {}) {
  const Config config = config_of(text, overrides);
  Registry registry({.search_path = {"/nonexistent"}, .meta = config.meta});
  return make_plan(config, workload_catalog(), registry);
}

std::vector<std::string> keys_of(const Plan& plan) {
  std::vector<std::string> keys;
  for (const PlannedPoint& point : plan.points) keys.push_back(point.key);
  return keys;
}

TEST(Plan, ExpandsSweepsOverDevices) {
  const Plan plan = plan_of(R"({"devices": ["meta:cpu", "meta:gpu"], "sweeps": [
    {"workload": "membw", "op": "copy", "bytes": [4096, 8192], "launch": ["stream", "graph"], "threads": [1, 2]}]})");
  EXPECT_THAT(keys_of(plan),
              testing::ElementsAre(
                  "membw/op=copy/bytes=4096/precision=fp32/cache=warm/threads=1/device=meta:cpu",
                  "membw/op=copy/bytes=4096/precision=fp32/cache=warm/threads=2/device=meta:cpu",
                  "membw/op=copy/bytes=8192/precision=fp32/cache=warm/threads=1/device=meta:cpu",
                  "membw/op=copy/bytes=8192/precision=fp32/cache=warm/threads=2/device=meta:cpu",
                  "membw/op=copy/bytes=4096/precision=fp32/launch=stream/data=resident/cache=warm/device=meta:gpu",
                  "membw/op=copy/bytes=4096/precision=fp32/launch=graph/data=resident/cache=warm/device=meta:gpu",
                  "membw/op=copy/bytes=8192/precision=fp32/launch=stream/data=resident/cache=warm/device=meta:gpu",
                  "membw/op=copy/bytes=8192/precision=fp32/launch=graph/data=resident/cache=warm/device=meta:gpu"));
  for (const PlannedPoint& point : plan.points) {
    EXPECT_EQ(point.status, Status::ok) << point.key << ": " << point.reason;
    EXPECT_GT(point.estimated_seconds, 0);
    EXPECT_EQ(parse_point_key(point.key, workload_catalog()).key(), point.key);
  }
}

TEST(Plan, GivesAbsentDevicesRowsWithTheReason) {
  const Plan plan = plan_of(R"({"devices": ["gpu"], "sweeps": [{"workload": "gemm", "batch": 64}]})");
  ASSERT_EQ(plan.points.size(), 1u);
  EXPECT_EQ(plan.points[0].status, Status::unsupported);
  EXPECT_THAT(plan.points[0].key, testing::EndsWith("/device=gpu:0"));
  EXPECT_THAT(plan.points[0].reason, testing::HasSubstr("libdlbench_backend_gpu.so"));
  EXPECT_EQ(plan.estimated_seconds, 0);
}

TEST(Plan, RefusesToGoOnWithoutARequiredDevice) {
  const auto plan = [] {
    plan_of(R"({"devices": ["meta:cpu"], "require": ["gpu"], "sweeps": [{"workload": "gemm"}]})");
  };
  EXPECT_THAT(message_of<DeviceAbsentError>(plan),
              testing::StartsWith("device gpu is required and isn't usable here: "));
}

TEST(Plan, RefusesMoreMemoryThanTheDeviceHasWithTheEstimate) {
  const Plan plan = plan_of(R"({"devices": ["meta:cpu"], "meta": {"cpu": {"memory_bytes": 1073741824}},
                               "sweeps": [{"workload": "gemm", "batch": [4096, 16384]}]})");
  ASSERT_EQ(plan.points.size(), 2u);
  EXPECT_EQ(plan.points[0].status, Status::ok);
  EXPECT_EQ(plan.points[1].status, Status::out_of_memory);
  EXPECT_EQ(plan.points[1].reason, "needs 3.0 GiB for its tensors, meta:cpu has 1.0 GiB");
  EXPECT_EQ(plan.points[1].tensor_bytes, int64_t{3} << 30);
}

TEST(Plan, RotatesThroughMoreThanTwiceTheCache) {
  const Plan plan =
      plan_of(R"({"devices": ["meta:cpu"], "meta": {"cpu": {"last_level_cache_bytes": 1048576}}, "sweeps": [
    {"workload": "elementwise", "features": 256, "batch": [1, 1024], "cache": ["warm", "rotate"]}]})");
  ASSERT_EQ(plan.points.size(), 4u);
  EXPECT_EQ(plan.points[0].buffer_sets, 1);
  EXPECT_EQ(plan.points[1].buffer_sets, 2049);
  EXPECT_EQ(plan.points[3].buffer_sets, 3);
}

TEST(Plan, KeepsWhatFiltersLeave) {
  const std::string text = R"({"devices": ["meta:cpu"], "sweeps": [{"workload": "gemm", "batch": [8, 16, 32]}]})";
  Overrides overrides;
  overrides.filters = {"batch=(8|16)/", "-batch=8/"};
  const Plan plan = plan_of(text, overrides);
  ASSERT_EQ(plan.points.size(), 1u);
  EXPECT_EQ(plan.points[0].point.integer("batch"), 16);
  overrides.filters = {"conv"};
  EXPECT_EQ(message_of<UsageError>([&] { plan_of(text, overrides); }),
            "nothing is left to measure: none of the 3 points of test passes the filters \"conv\"; "
            "`dlbench run --dry-run` lists the keys");
}

TEST(Plan, MeasuresExactlyTheNamedPoints) {
  const std::string key = "gemm/family=square/transpose=nn/batch=8/precision=fp32/cache=warm/threads=1/device=meta:cpu";
  Overrides overrides;
  overrides.points = {key};
  const Plan plan = plan_of(R"({"sweeps": [{"workload": "membw"}]})", overrides);
  EXPECT_THAT(keys_of(plan), testing::ElementsAre(key));
}

TEST(Plan, RendersWhatWillAndWhatWontBeMeasured) {
  const Plan plan = plan_of(R"({"name": "small", "devices": ["meta:cpu"], "measure": {"profile": "quick"},
                               "meta": {"cpu": {"memory_bytes": 1073741824}},
                               "sweeps": [{"workload": "gemm", "batch": [256, 16384]}]})");
  EXPECT_EQ(
      render_plan(plan),
      "plan of small: 1 point to measure in 3 processes, about 1.9 s; 1 can't be measured here\n\n"
      "  work/step bytes/step     memory sets estimated  point\n"
      " 33.6 MFLOP     786 kB    768 KiB    1     1.9 s  gemm/family=square/transpose=nn/batch=256/precision=fp32/"
      "cache=warm/threads=2/device=meta:cpu\n"
      "\nout_of_memory: needs 3.0 GiB for its tensors, meta:cpu has 1.0 GiB\n"
      "  gemm/family=square/transpose=nn/batch=16384/precision=fp32/cache=warm/threads=2/device=meta:cpu\n");
}

}  // namespace
}  // namespace dlbench
