#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/report/report.h"
#include "core/result/result_io.h"
#include "core/result/validate.h"
#include "unit/result/made_result.h"

namespace dlbench {
namespace {

using testing::HasSubstr;

std::string text_of(const std::vector<Violation>& list) {
  std::string text;
  for (const Violation& v : list) text += v.pointer + ": " + v.what + "\n";
  return text;
}

/// What is found after one change of a valid result.
std::string after(const std::string& pointer, const Json& value) {
  Json json = to_json(made::result());
  json[Json::json_pointer(pointer)] = value;
  return text_of(violations(json, FileKind::result));
}

TEST(Validate, WhatDlbenchWritesIsValid) {
  EXPECT_EQ(text_of(violations(to_json(made::result()), FileKind::result)), "");
  Result empty;
  empty.environment = {{"fingerprint", ""}};
  EXPECT_EQ(text_of(violations(to_json(empty), FileKind::result)), "");
  const Result result = made::result();
  const Json report = render_json(analyze(result), {{"r.json", std::string(64, 'a')}});
  EXPECT_EQ(text_of(violations(report, FileKind::report)), "");
}

TEST(Validate, FindsTheKind) {
  EXPECT_EQ(kind_of(to_json(made::result())), FileKind::result);
  EXPECT_EQ(kind_of({{"kind", "report"}}), FileKind::report);
  EXPECT_EQ(kind_of({{"sweeps", Json::array()}}), FileKind::config);
  EXPECT_FALSE(kind_of({{"kind", "letter"}}));
  EXPECT_FALSE(kind_of(Json::array()));
}

TEST(Validate, TheSchemaSeesEachPlantedMistakeWithItsPlace) {
  EXPECT_THAT(after("/points/1/flops_per_step", "many"), HasSubstr("/points/1/flops_per_step: \"many\": "));
  EXPECT_THAT(after("/points/1/flops_per_step", -1), HasSubstr("/points/1/flops_per_step: -1: "));
  EXPECT_THAT(after("/points/0/status", "fine"), HasSubstr("/points/0/status"));
  EXPECT_THAT(after("/points/2/reason", ""), HasSubstr("/points/2"));  // unsupported, and no word why
  EXPECT_THAT(after("/points/0/colour", "red"), HasSubstr("/points/0"));
  EXPECT_THAT(after("/points/0/axis_batch", 1.5), HasSubstr("/points/0/axis_batch"));
  EXPECT_THAT(after("/timings/3/wall_seconds/1", 0), HasSubstr("/timings/3/wall_seconds/1: 0: "));
  EXPECT_THAT(after("/timings/3/placement/0", "upstairs"), HasSubstr("/timings/3/placement/0"));
  EXPECT_THAT(after("/schema_version", "2.0.0"), HasSubstr("/schema_version"));
  EXPECT_THAT(after("/extra", 1), HasSubstr("/: "));
  Json json = to_json(made::result());
  json["points"][1].erase("workload");
  EXPECT_THAT(text_of(violations(json, FileKind::result)), HasSubstr("/points/1: "));
}

TEST(Validate, TheRulesSeeWhatASchemaCannot) {
  const std::string first = made::point("cpu", 64).key;
  EXPECT_THAT(after("/points/1/key", first), HasSubstr("is the key of /points/0 as well"));
  EXPECT_THAT(after("/points/0/axis_batch", 65), HasSubstr("/points/0/key"));
  EXPECT_THAT(after("/points/0/device", "gpu:9"), HasSubstr("device and axis_device differ"));
  EXPECT_THAT(after("/points/0/sweep_value", 63), HasSubstr("sweep_value and axis_batch differ"));
  EXPECT_THAT(after("/timings/0/key", "gemm/other"), HasSubstr("/timings/0/key: gemm/other is no point of this file"));
  EXPECT_THAT(after("/timings/2/process", 0), HasSubstr("process 0 has timings of"));
  EXPECT_THAT(after("/timings/0/block", Json::array({0, 0})),
              HasSubstr("/timings/0/block: has 2 entries where wall_seconds has 3"));
  EXPECT_THAT(after("/timings/0/block/1", 7), HasSubstr("/timings/0/block/1: 7 is no block"));
  EXPECT_THAT(after("/timings/0/fma_after_flop_per_s", Json::array({1.0})),
              HasSubstr("has 1 entries where placement has 2"));
  Json json = to_json(made::result());
  json["timings"] = Json::array();
  EXPECT_THAT(text_of(violations(json, FileKind::result)), HasSubstr("/points/0: is ok and has no timings"));
  json["partial"] = true;
  EXPECT_EQ(text_of(violations(json, FileKind::result)), "");
}

TEST(Validate, AReportIsHeldAgainstItsRules) {
  const Result result = made::result();
  Json report = render_json(analyze(result), {{"r.json", std::string(64, 'a')}});
  Json changed = report;
  changed["results"][0]["sha256"] = "xyz";
  EXPECT_THAT(text_of(violations(changed, FileKind::report)), HasSubstr("/results/0/sha256"));
  changed = report;
  changed["points"][0]["seconds"] = 1e9;
  EXPECT_THAT(text_of(violations(changed, FileKind::report)), HasSubstr("lies outside of its interval"));
  changed = report;
  changed["points"][2]["seconds"] = 1.0;
  EXPECT_THAT(text_of(violations(changed, FileKind::report)),
              HasSubstr("/points/2/seconds: a point that is not ok has no numbers"));
  changed = report;
  changed["peaks"][0]["source"] = "nowhere";
  EXPECT_THAT(text_of(violations(changed, FileKind::report)), HasSubstr("/peaks/0/source: nowhere is no point"));
}

TEST(Validate, WritesFilesForTheSecondValidator) {
  const char* folder = std::getenv("DLBENCH_WRITTEN_DIR");
  const std::string path = (folder ? std::string(folder) : testing::TempDir()) + "/";
  const Result result = made::result();
  write_result(result, path + "made.result.json");
  write_file_atomic(path + "made.report.json",
                    dump_json(render_json(analyze(result), {{"made.result.json", std::string(64, 'b')}})));
  EXPECT_EQ(text_of(violations(read_json_file(path + "made.result.json"), FileKind::result)), "");
}

}  // namespace
}  // namespace dlbench
