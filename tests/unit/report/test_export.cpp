// Exports against what their consumers say they read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/report/export.h"
#include "unit/analysis/built_result.h"

namespace dlbench {
namespace {

built::Builder two_points() {
  built::Builder b;
  b.add({.batch = 1, .seconds = 1e-3, .flops = 1e6, .bytes = 1e4})
      .add({.device = "gpu:0", .batch = 1, .seconds = 1e-4, .processes = 1});
  b.add({.batch = 2, .status = Status::failed});
  return b;
}

// https://github.com/google/benchmark: tools/gbench/report.py reads name, run_type, real_time, cpu_time, time_unit and
// repetition_index; tools/gbench/util.py wants "benchmarks".
TEST(Export, GoogleBenchmark) {
  const built::Builder b = two_points();
  const Analysis a = analyze(b.result);
  const Json json = export_gbench(a);
  ASSERT_EQ(json["benchmarks"].size(), 4u);  // three processes and one
  for (const Json& entry : json["benchmarks"]) {
    for (const char* field : {"name", "run_name", "time_unit", "run_type"})
      EXPECT_TRUE(entry[field].is_string()) << field;
    for (const char* field : {"real_time", "cpu_time", "iterations", "repetitions", "repetition_index", "threads"}) {
      EXPECT_TRUE(entry[field].is_number()) << field;
    }
    EXPECT_EQ(entry["time_unit"], "ns");
    EXPECT_EQ(entry["run_type"], "iteration");
  }
  EXPECT_NEAR(json["benchmarks"][0]["real_time"].get<double>(), 1e6 * std::exp(0.01), 1);
  EXPECT_EQ(json["benchmarks"][2]["repetition_index"], 2);
  EXPECT_TRUE(json["context"].is_object());
}

// https://github.com/benchmark-action/github-action-benchmark, "customSmallerIsBetter": an array of objects with name,
// unit, value and optional range (text) and extra (text).
TEST(Export, GithubActionBenchmark) {
  const built::Builder b = two_points();
  const Analysis a = analyze(b.result);
  const Json json = export_github_action_benchmark(a);
  ASSERT_TRUE(json.is_array());
  ASSERT_EQ(json.size(), 2u);
  std::set<std::string> names;
  for (const Json& entry : json) {
    names.insert(entry["name"].get<std::string>());
    EXPECT_EQ(entry["unit"], "s/step");
    EXPECT_TRUE(entry["value"].is_number());
    EXPECT_TRUE(entry["extra"].is_string());
    for (const auto& [field, value] : entry.items()) {
      EXPECT_TRUE(std::set<std::string>({"name", "unit", "value", "range", "extra"}).contains(field)) << field;
    }
  }
  EXPECT_EQ(names.size(), 2u);
  EXPECT_TRUE(json[0]["range"].is_string());
  EXPECT_FALSE(json[1].contains("range"));  // one process has no interval
}

// https://bencher.dev/docs/reference/bencher-metric-format: {name: {measure: {value, lower_value?, upper_value?}}}.
TEST(Export, BencherMetricFormat) {
  const built::Builder b = two_points();
  const Analysis a = analyze(b.result);
  const Json json = export_bencher(a);
  ASSERT_EQ(json.size(), 2u);
  for (const auto& [name, measures] : json.items()) {
    EXPECT_EQ(measures.size(), 2u);
    for (const char* measure : {"latency", "throughput"}) {
      const Json& m = measures[measure];
      EXPECT_TRUE(m["value"].is_number());
      if (!m.contains("lower_value")) continue;
      EXPECT_LE(m["lower_value"].get<double>(), m["value"].get<double>());
      EXPECT_GE(m["upper_value"].get<double>(), m["value"].get<double>());
    }
    EXPECT_NEAR(measures["latency"]["value"].get<double>() * measures["throughput"]["value"].get<double>(), 1e9, 1);
  }
}

// https://pyperf.readthedocs.io/en/latest/api.html (JSON): version 1.0, benchmarks with runs; a run has values in
// seconds; metadata has name and unit.
TEST(Export, Pyperf) {
  const built::Builder b = two_points();
  const Analysis a = analyze(b.result);
  const Json json = export_pyperf(a);
  EXPECT_EQ(json["version"], "1.0");
  ASSERT_EQ(json["benchmarks"].size(), 2u);
  EXPECT_EQ(json["benchmarks"][0]["runs"].size(), 3u);
  for (const Json& benchmark : json["benchmarks"]) {
    EXPECT_TRUE(benchmark["metadata"]["name"].is_string());
    EXPECT_EQ(benchmark["metadata"]["unit"], "second");
    for (const Json& run : benchmark["runs"]) {
      ASSERT_FALSE(run["values"].empty());
      for (const Json& value : run["values"]) EXPECT_GT(value.get<double>(), 0);
    }
  }
}

TEST(Export, UsesTheTimingsThatTheReportUses) {
  built::Builder b;
  b.add({.seconds = 1e-3, .processes = 3, .placement = {"near", "far", "near"}});
  const Analysis a = analyze(b.result);
  EXPECT_EQ(export_pyperf(a)["benchmarks"][0]["runs"].size(), 2u);
  EXPECT_EQ(export_gbench(a)["benchmarks"].size(), 2u);
}

}  // namespace
}  // namespace dlbench
