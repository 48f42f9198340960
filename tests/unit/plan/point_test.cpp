#include "core/plan/point.h"

#include "core/base/error.h"
#include "unit/plan/expect_error.h"
#include "workloads/catalog.h"

namespace dlbench {
namespace {

using test::message_of;

const char* const kCpuKey =
    "gemm/family=linear/layer=mlp_base_fc1/pass=forward/epilogue=bias/batch=8/precision=fp32/cache=warm/threads=2/"
    "device=cpu";
const char* const kGpuKey =
    "gemm/family=linear/layer=mlp_base_fc1/pass=forward/epilogue=bias/batch=8/precision=fp32/launch=graph/"
    "data=resident/"
    "cache=warm/device=gpu:0";

TEST(PointKey, ReadsBackToTheSamePoint) {
  for (const std::string key : {kCpuKey, kGpuKey}) {
    const Point point = parse_point_key(key, workload_catalog());
    EXPECT_EQ(point.key(), key);
    EXPECT_EQ(point.integer("batch"), 8);
    EXPECT_EQ(point.word("layer"), "mlp_base_fc1");
    EXPECT_EQ(point.precision(), Precision::fp32);
  }
}

TEST(PointKey, PairsOverTheTwoSides) {
  const Point cpu = parse_point_key(kCpuKey, workload_catalog()), gpu = parse_point_key(kGpuKey, workload_catalog());
  const std::string pair =
      "gemm/family=linear/layer=mlp_base_fc1/pass=forward/epilogue=bias/batch=8/precision=fp32/cache=warm";
  EXPECT_EQ(cpu.pair_key(), pair);
  EXPECT_EQ(gpu.pair_key(), pair);
  EXPECT_EQ(cpu.sweep_key("batch"),
            "gemm/family=linear/layer=mlp_base_fc1/pass=forward/epilogue=bias/precision=fp32/cache=warm");
}

TEST(PointKey, FillsAxesThatWereLeftOut) {
  const Point point = parse_point_key("gemm/batch=128/device=cpu", workload_catalog());
  EXPECT_EQ(point.key(), "gemm/family=square/transpose=nn/batch=128/precision=fp32/cache=warm/threads=all/device=cpu");
  EXPECT_EQ(parse_point_key(point.key(), workload_catalog()).key(), point.key());
}

TEST(PointKey, SaysWhatIsWrong) {
  const auto message = [](const std::string& key) {
    return message_of<UsageError>([&key] { parse_point_key(key, workload_catalog()); });
  };
  EXPECT_THAT(message("gem/batch=8/device=cpu"),
              testing::StartsWith(
                  R"(point "gem/batch=8/device=cpu": no workload "gem" (did you mean "gemm"?); known: gemm, )"));
  EXPECT_EQ(message("gemm/batch=8"), R"(point "gemm/batch=8": it names no device; add /device=cpu or /device=gpu:0)");
  EXPECT_EQ(message("gemm/batch/device=cpu"),
            R"(point "gemm/batch/device=cpu": "batch" is not of the form axis=value)");
  EXPECT_EQ(message("gemm/batch=8/batch=8/device=cpu"),
            R"(point "gemm/batch=8/batch=8/device=cpu": batch is given twice)");
  EXPECT_EQ(
      message("gemm/batch=0/device=cpu"),
      R"(point "gemm/batch=0/device=cpu": batch: 0 is not allowed; must be a whole number from 1 to 1099511627776)");
  EXPECT_EQ(
      message("gemm/batch=08/device=cpu"),
      R"(point "gemm/batch=08/device=cpu": batch: "08" is not allowed; must be a whole number from 1 to 1099511627776)");
  EXPECT_EQ(message("gemm/family=squre/device=cpu"),
            R"(point "gemm/family=squre/device=cpu": family: "squre" is not known (did you mean "square"?); )"
            "known: square, linear, attention");
  EXPECT_EQ(message("gemm/layer=resnet50_fc/device=cpu"),
            R"(point "gemm/layer=resnet50_fc/device=cpu": layer: exists only where family is linear; leave it out)");
  EXPECT_EQ(message("gemm/launch=graph/device=cpu"),
            R"(point "gemm/launch=graph/device=cpu": launch: exists on gpu devices only; leave it out)");
  EXPECT_EQ(message("gemm/threads=2/device=gpu:0"),
            R"(point "gemm/threads=2/device=gpu:0": threads: exists on cpu devices only; leave it out)");
  EXPECT_EQ(message("gemm/bacth=2/device=cpu"),
            R"(point "gemm/bacth=2/device=cpu": gemm has no axis "bacth" (did you mean "batch"?); its axes: family, )"
            "transpose, layer, n, k, pass, epilogue, product, seq, head_dim, batch, precision, launch, data, cache, "
            "threads, device");
  EXPECT_EQ(message("membw/precision=bf16/device=cpu"),
            R"(point "membw/precision=bf16/device=cpu": precision: "bf16" is not known; known: fp32)");
}

}  // namespace
}  // namespace dlbench
