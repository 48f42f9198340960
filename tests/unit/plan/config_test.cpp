#include "core/plan/config.h"

#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "core/plan/plan.h"
#include "core/plan/sweep.h"
#include "unit/plan/expect_error.h"
#include "workloads/catalog.h"

namespace dlbench {
namespace {

using test::message_of;
using testing::ElementsAre;
using testing::StartsWith;

Config config_of(const std::string& text, const Overrides& overrides = {}) {
  return parse_config(parse_json(text, "test.json", JsonComments::kAllow), "test.json", overrides, workload_catalog());
}

std::string error_of(const std::string& text, const Overrides& overrides = {}) {
  return message_of<UsageError>([&] { config_of(text, overrides); });
}
std::string error_of_sweep(const std::string& axes) {
  return error_of(R"({"sweeps": [{"workload": "gemm"}, {)" + axes + "}]}");
}
Overrides set(const std::string& name, const std::string& value) {
  Overrides overrides;
  overrides.set = {{name, value}};
  return overrides;
}
/// The values of an axis of a sweep, as text.
std::string values_of(const Config& config, size_t sweep, const std::string& axis) {
  std::string text;
  for (const auto& [name, values] : config.sweeps.at(sweep).axes) {
    if (name != axis) continue;
    for (const AxisValue& value : values) text += (text.empty() ? "" : ",") + to_string(value);
  }
  return text;
}

TEST(Config, HasTheDocumentedFallbacks) {
  const Config config = config_of(R"({"sweeps": [{"workload": "gemm"}]})");
  EXPECT_EQ(config.name, "test");
  EXPECT_THAT(config.devices, ElementsAre("cpu", "gpu"));
  EXPECT_EQ(config.seed, 42u);
  EXPECT_EQ(config.threads, 0);
  EXPECT_EQ(config.measure.processes, 5);
  EXPECT_EQ(config.measure.point_budget_seconds, 10);
  EXPECT_EQ(config.measure.max_timings, 81);
}

TEST(Config, ProfilesSetNumbersThatKeysOverride) {
  const Config quick = config_of(R"({"measure": {"profile": "quick"}, "sweeps": [{"workload": "gemm"}]})");
  EXPECT_EQ(quick.measure.processes, 3);
  EXPECT_EQ(quick.measure.point_budget_seconds, 2);
  const std::string text = R"({"measure": {"profile": "quick", "processes": 4}, "sweeps": [{"workload": "gemm"}]})";
  EXPECT_EQ(config_of(text).measure.processes, 4);
  Overrides thorough;
  thorough.profile = "thorough";
  EXPECT_EQ(config_of(text, thorough).measure.processes, 10);
  thorough.processes = 7;
  EXPECT_EQ(config_of(text, thorough).measure.processes, 7);
}

TEST(Config, ValuesAreScalarsListsOrRanges) {
  const Config config = config_of(R"({"sweeps": [
    {"workload": "gemm", "batch": [1, "8:32:x2"], "precision": "bf16", "threads": [1, "all"]},
    {"workload": "membw", "bytes": "4KiB:64KiB:x4", "op": ["read", "copy"]}]})");
  EXPECT_EQ(values_of(config, 0, "batch"), "1,8,16,32");
  EXPECT_EQ(values_of(config, 0, "precision"), "bf16");
  EXPECT_EQ(values_of(config, 0, "threads"), "1,0");
  EXPECT_EQ(values_of(config, 1, "bytes"), "4096,16384,65536");
  EXPECT_EQ(values_of(config, 1, "op"), "read,copy");
}

TEST(Config, DefaultsFillWhatSweepsLeaveOpenAndCanTake) {
  const Config config =
      config_of(R"({"defaults": {"precision": ["fp32", "tf32", "bf16"], "layer": "resnet50_fc"}, "sweeps": [
    {"workload": "gemm", "family": "linear"}, {"workload": "gemm"}, {"workload": "elementwise"}, {"workload": "membw"},
    {"workload": "gemm", "precision": "fp16", "batch": 8}]})");
  EXPECT_EQ(values_of(config, 0, "precision"), "fp32,tf32,bf16");
  EXPECT_EQ(values_of(config, 0, "layer"), "resnet50_fc");
  EXPECT_EQ(values_of(config, 1, "layer"), "");
  EXPECT_EQ(values_of(config, 2, "precision"), "fp32,bf16");
  EXPECT_EQ(values_of(config, 3, "precision"), "fp32");
  EXPECT_EQ(values_of(config, 4, "precision"), "fp16");
}

TEST(Config, OverridesReplaceWhatTheFileSays) {
  const std::string text = R"({"sweeps": [{"workload": "gemm", "batch": 8}, {"workload": "membw", "bytes": 4096}]})";
  Overrides overrides;
  overrides.set = {{"batch", "1:4:x2"}, {"precision", "fp32,bf16"}, {"/measure/max_timings", "11"}};
  overrides.devices = {"meta:cpu"};
  overrides.processes = 2;
  overrides.threads = 1;
  overrides.seed = 7;
  overrides.time_budget_seconds = 60;
  const Config config = config_of(text, overrides);
  EXPECT_EQ(values_of(config, 0, "batch"), "1,2,4");
  EXPECT_EQ(values_of(config, 0, "precision"), "fp32,bf16");
  EXPECT_EQ(values_of(config, 1, "bytes"), "4096");
  EXPECT_EQ(values_of(config, 1, "precision"), "fp32");
  EXPECT_EQ(config.measure.max_timings, 11);
  EXPECT_THAT(config.devices, ElementsAre("meta:cpu"));
  EXPECT_EQ(config.measure.processes, 2);
  EXPECT_EQ(config.threads, 1);
  EXPECT_EQ(config.seed, 7u);
  EXPECT_EQ(config.measure.time_budget_seconds, 60);
}

TEST(ConfigError, NamesPlaceValueAndWhatIsAllowed) {
  EXPECT_EQ(error_of(R"([])"), "test.json: /: expected an object {…}, found array");
  EXPECT_EQ(error_of(R"({"sweep": []})"), "test.json: /sweeps: is missing; list at least one {\"workload\": …}");
  EXPECT_EQ(error_of(R"({"sweeps": []})"),
            "test.json: /sweeps: the list is empty; list at least one {\"workload\": …}");
  EXPECT_EQ(error_of(R"({"sweeps": {}})"), "test.json: /sweeps: expected a list […], found object");
  EXPECT_EQ(
      error_of(R"({"sweeps": [{"workload": "gemm"}], "device": ["cpu"]})"),
      "test.json: /device: unknown key \"device\" (did you mean \"devices\"?); known: $schema, defaults, devices, "
      "filters, measure, meta, name, points, require, seed, summary, sweeps, threads");
  EXPECT_EQ(error_of(R"({"sweeps": [{"workload": "gemm"}], "devices": []})"),
            "test.json: /devices: the list is empty; name one of the devices, such as \"cpu\" and \"gpu\"");
  EXPECT_EQ(error_of(R"({"sweeps": [{"workload": "gemm"}], "devices": ["cpu", "cpu"]})"),
            "test.json: /devices/1: \"cpu\" is listed twice; keep one");
  EXPECT_EQ(error_of(R"({"sweeps": [{"workload": "gemm"}], "seed": -1})"),
            "test.json: /seed: -1 is not allowed; must be a whole number from 0 to 9007199254740992");
  EXPECT_EQ(error_of(R"({"sweeps": [{"workload": "gemm"}], "threads": "many"})"),
            "test.json: /threads: \"many\" is not allowed; must be \"all\" or a whole number from 1 to 65536 (0: all)");
  EXPECT_EQ(
      error_of(R"({"sweeps": [{"workload": "gemm"}], "measure": {"profile": "quik"}})"),
      "test.json: /measure/profile: \"quik\" is not known (did you mean \"quick\"?); known: quick, normal, thorough");
  EXPECT_EQ(error_of(R"({"sweeps": [{"workload": "gemm"}], "measure": {"max_timings": 12}})"),
            "test.json: /measure/max_timings: 12 is not allowed; must be 11, 21, 41 or 81");
  EXPECT_EQ(error_of(R"({"sweeps": [{"workload": "gemm"}], "measure": 3})"),
            "test.json: /measure: expected an object {…}, found number");
  EXPECT_EQ(
      error_of(R"({"sweeps": [{"workload": "gemm"}], "meta": {"nois_sd": 1}})"),
      "test.json: /meta/nois_sd: unknown key \"nois_sd\" (did you mean \"noise_sd\"?); known: cpu, crash_after_ops, "
      "drift_per_second, fail_after_ops, gpu, hang_seconds, noise_sd, process_sd, seed, shape, spike_probability");
  EXPECT_THAT(error_of(R"({"sweeps": [{"workload": "gemm"}], "filters": ["batch=("]})"),
              StartsWith("test.json: /filters/0: \"batch=(\" is not a regular expression: "));
  EXPECT_THAT(
      error_of(R"({"points": ["gem/device=cpu"]})"),
      StartsWith("test.json: /points/0: point \"gem/device=cpu\": no workload \"gem\" (did you mean \"gemm\"?)"));
}

TEST(ConfigError, NamesTheSweep) {
  std::string names;
  for (const std::string& name : workload_catalog().names()) names += (names.empty() ? "" : ", ") + name;
  EXPECT_EQ(error_of_sweep(R"("batch": 8)"), "test.json: /sweeps/1/workload: is missing; name one of: " + names);
  EXPECT_EQ(
      error_of_sweep(R"("workload": "elementwse")"),
      "test.json: /sweeps/1/workload: \"elementwse\" is not known (did you mean \"elementwise\"?); known: " + names);
  EXPECT_EQ(error_of_sweep(R"("workload": "dot", "btach": 8)"),
            "test.json: /sweeps/1/btach: unknown key \"btach\" (did you mean \"batch\"?); known: batch, cache, "
            "comment, data, "
            "launch, n, precision, threads, workload");
  EXPECT_EQ(error_of_sweep(R"("workload": "dot", "batch": [])"),
            "test.json: /sweeps/1/batch: the list is empty; give at least one value or leave the key out");
  EXPECT_EQ(error_of_sweep(R"("workload": "dot", "batch": [8, 8])"),
            "test.json: /sweeps/1/batch: 8 is listed twice; keep one");
  EXPECT_EQ(error_of_sweep(R"("workload": "dot", "batch": -3)"),
            "test.json: /sweeps/1/batch: -3 is not allowed; must be a whole number from 1 to 1099511627776");
  EXPECT_EQ(error_of_sweep(R"("workload": "dot", "batch": 1.5)"),
            "test.json: /sweeps/1/batch: 1.5 is not allowed; must be a whole number from 1 to 1099511627776, a range "
            "(\"1:1024:x2\") or a list of them");
  EXPECT_THAT(
      error_of_sweep(R"("workload": "dot", "batch": "1:8")"),
      StartsWith("test.json: /sweeps/1/batch: \"1:8\" is not a range: it has 2 parts between colons, not 3; write "));
  EXPECT_EQ(
      error_of_sweep(R"("workload": "dot", "precision": "tf32")"),
      "test.json: /sweeps/1/precision: \"tf32\" is not known (did you mean \"fp32\"?); known: fp32, bf16, fp16, fp64");
  EXPECT_EQ(
      error_of_sweep(R"("workload": "dot", "precision": 32)"),
      "test.json: /sweeps/1/precision: 32 is not allowed; must be a word or a list of words out of: fp32, bf16, fp16, "
      "fp64");
  EXPECT_EQ(
      error_of_sweep(R"("workload": "gemm", "layer": "resnet50_fc")"),
      "test.json: /sweeps/1: layer: exists only where family is linear, which this sweep never has; leave it out");
  EXPECT_EQ(error_of_sweep(R"("workload": "transfer", "bytes": 6)"),
            "test.json: /sweeps/1: bytes: 6 is not allowed; must be a multiple of 4");
  EXPECT_EQ(
      error_of_sweep(R"("workload": "gemm", "batch": [32, 64])"),
      "test.json: /sweeps/1: its point gemm/family=square/transpose=nn/batch=64/precision=fp32/cache=warm/threads=all/"
      "device=cpu is also in /sweeps/0; each point is measured once, remove it from one of them");
}

TEST(ConfigError, RefusesAbsurdSizes) {
  EXPECT_EQ(
      error_of_sweep(R"("workload": "gemm", "batch": 1099511627776)"),
      "test.json: /sweeps/1: gemm/family=square/transpose=nn/batch=1099511627776/precision=fp32/cache=warm/"
      "threads=all/device=cpu: shape [1099511627776, 1099511627776] has more than 2^63 elements; make it smaller");
  EXPECT_EQ(error_of_sweep(R"("workload": "gemm", "batch": "1:10000:+1", "precision": ["fp32", "bf16", "fp16", "tf32"],
                              "threads": [1, 2, 4, 8])"),
            "test.json: /sweeps/1: the config has more than 100000 points by here; make its lists shorter");
}

TEST(ConfigError, NamesTheOption) {
  const std::string text = R"({"sweeps": [{"workload": "membw"}]})";
  EXPECT_EQ(error_of(text, set("batch", "8")), "--batch: no sweep of test.json can take \"8\"");
  EXPECT_THAT(error_of(text, set("batch", "8:1:x2")),
              StartsWith("--batch: \"8:1:x2\" is not a range: it ends at 1 before it starts at 8; write "));
  EXPECT_EQ(error_of(text, set("precision", "fp31")),
            "--precision: \"fp31\" is not known (did you mean \"fp32\"?); known: fp32, tf32, bf16, fp16, fp64");
  EXPECT_THAT(error_of(text, set("bytez", "8")),
              StartsWith("--set bytez: no workload has an axis \"bytez\" (did you mean \"bytes\"?); known: family, "));
  EXPECT_EQ(error_of(text, set("/sweeps/0/op", "\"red\"")),
            "test.json: /sweeps/0/op: \"red\" is not known (did you mean \"read\"?); known: read, copy, triad");
  EXPECT_EQ(error_of(R"({"defaults": {"batch": 8}, "sweeps": [{"workload": "membw"}]})"),
            "test.json: /defaults/batch: no sweep can take these values; leave it out");
  EXPECT_EQ(error_of(R"({"defaults": [], "sweeps": [{"workload": "membw"}]})"),
            "test.json: /defaults: expected an object {…}, found array");
}

TEST(ConfigError, SaysWhereTheJsonBreaks) {
  const std::string path = testing::TempDir() + "broken.json";
  std::ofstream(path) << "{\n  \"sweeps\": [\n";
  EXPECT_THAT(message_of<UsageError>([&] { load_config(path, {}, workload_catalog()); }), StartsWith(path + ":3:"));
  EXPECT_THAT(message_of<UsageError>([] { load_config("quik", {}, workload_catalog()); }),
              StartsWith("there is no config 'quik' (did you mean 'quick'?): neither a file nor one of the names "));
}

std::vector<std::string> shipped_configs() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(DLBENCH_CONFIGS)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  }
  return paths;
}

class ShippedConfig : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Configs, ShippedConfig, testing::ValuesIn(shipped_configs()),
                         [](const auto& each) { return std::filesystem::path(each.param).stem().string(); });

TEST_P(ShippedConfig, HasUniqueKeysThatReadBackAndPair) {
  const Config config = load_config(GetParam(), {}, workload_catalog());
  EXPECT_EQ(config.name, std::filesystem::path(GetParam()).stem().string());
  std::set<std::string> keys, cpu_pairs, gpu_pairs;
  for (const Sweep& sweep : config.sweeps) {
    const WorkloadDescriptor& workload = *workload_catalog().find(sweep.workload);
    for (const std::string device : {"cpu", "gpu:0"}) {
      for (const Point& point : expand_sweep(workload, sweep, device)) {
        EXPECT_TRUE(keys.insert(point.key()).second) << point.key();
        EXPECT_EQ(parse_point_key(point.key(), workload_catalog()).key(), point.key());
        (device == "cpu" ? cpu_pairs : gpu_pairs).insert(point.pair_key());
        if (!workload.sweep_axis.empty()) {
          EXPECT_EQ(point.sweep_key(workload.sweep_axis).find("/" + workload.sweep_axis + "="), std::string::npos);
        }
      }
    }
  }
  for (const std::string& pair : cpu_pairs) EXPECT_TRUE(gpu_pairs.contains(pair)) << pair;
}

TEST_P(ShippedConfig, GivesTheSamePlanFromItsMergedForm) {
  Overrides meta;
  meta.devices = {"meta:cpu", "meta:gpu"};
  const Config config = load_config(GetParam(), meta, workload_catalog());
  const Config again = parse_config(config.merged, "merged", {}, workload_catalog());
  EXPECT_EQ(again.merged.dump(), config.merged.dump());
  Registry registry({.search_path = {"/nonexistent"}, .meta = config.meta});
  const Plan plan = make_plan(config, workload_catalog(), registry);
  const Plan same = make_plan(again, workload_catalog(), registry);
  ASSERT_EQ(plan.points.size(), same.points.size());
  for (size_t i = 0; i < plan.points.size(); ++i) EXPECT_EQ(plan.points[i].key, same.points[i].key);
}

}  // namespace
}  // namespace dlbench
