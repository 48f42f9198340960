#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "core/base/error.h"
#include "core/result/result_io.h"
#include "unit/result/made_result.h"

namespace dlbench {
namespace {

using testing::HasSubstr;

std::string input_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

std::string error_after(const std::string& pointer, const Json& value) {
  Json json = to_json(made::result());
  json[Json::json_pointer(pointer)] = value;
  return input_error_of([&] { result_from_json(json, "r.json"); });
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_(std::filesystem::path(testing::TempDir()) / (std::to_string(::getpid()) + name)) {}
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }
  std::string text() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path path_;
};

TEST(ResultIo, WhatIsWrittenReadsBackEqual) {
  const Result result = made::result();
  const Json json = to_json(result);
  EXPECT_EQ(to_json(result_from_json(json, "r.json")), json);
}

TEST(ResultIo, TheFileHoldsTheSameJsonAsToJson) {
  const TemporaryFile file("io.json");
  write_result(made::result(), file.path());
  EXPECT_EQ(read_json_file(file.path()), to_json(made::result()));
  EXPECT_EQ(to_json(read_result(file.path())), to_json(made::result()));
}

TEST(ResultIo, AnEmptyResultReadsBack) {
  const Json json = to_json(Result{});
  EXPECT_EQ(parse_json(result_text(Result{}), "r.json"), json);
  EXPECT_EQ(to_json(result_from_json(json, "r.json")), json);
}

TEST(ResultIo, AxesAreColumnsWithAPrefixAndKeepTheirOrder) {
  const Json row = to_json(made::point("cpu", 64));
  EXPECT_EQ(row["axis_family"], "square");
  EXPECT_EQ(row["axis_batch"], 64);
  const PointRow back = point_row_from_json(row, "r.json", "/points/0");
  EXPECT_EQ(back.point.axes, made::point("cpu", 64).point.axes);
}

TEST(ResultIo, NumbersThatAreNotKnownAreNull) {
  PointRow row = made::point("cpu", 64);
  row.verification_error = std::numeric_limits<double>::infinity();
  row.peak_memory_bytes.reset();
  EXPECT_TRUE(to_json(row)["verification_error"].is_null());
  EXPECT_TRUE(to_json(row)["peak_memory_bytes"].is_null());
}

TEST(ResultIo, ATimeThatIsNotFiniteIsNeverWritten) {
  Result result = made::result();
  result.timings[0].wall_seconds[1] = std::nan("");
  EXPECT_THROW(result_text(result), Error);
}

TEST(ResultIo, EveryCutOfAFileIsRefusedWithOneSentence) {
  const std::string text = result_text(made::result());
  for (const double part : {0.01, 0.3, 0.5, 0.9, 0.999}) {
    const auto cut = text.substr(0, static_cast<size_t>(part * static_cast<double>(text.size() - 2)));
    const std::string error = input_error_of([&] { result_from_json(parse_json(cut, "r.json"), "r.json"); });
    EXPECT_THAT(error, HasSubstr("r.json:"));
    EXPECT_THAT(error, HasSubstr("cut short"));
  }
}

TEST(ResultIo, ErrorsNameTheFileAndThePlace) {
  EXPECT_THAT(error_after("/points/1/flops_per_step", "many"),
              HasSubstr("r.json: /points/1/flops_per_step: \"many\" is not allowed; must be a number"));
  EXPECT_THAT(error_after("/timings/2/wall_seconds/1", "x"), HasSubstr("r.json: /timings/2/wall_seconds/1: \"x\""));
  EXPECT_THAT(error_after("/timings/0/process", 1.5), HasSubstr("must be a whole number"));
  EXPECT_THAT(error_after("/timings/0/process", 99999999999), HasSubstr("must be a whole number that fits"));
  EXPECT_THAT(error_after("/points/0/status", "fine"),
              HasSubstr("r.json: /points/0/status: unknown status 'fine'; known: ok"));
  EXPECT_THAT(error_after("/points/0/axis_batch", Json::array()), HasSubstr("r.json: /points/0/axis_batch: []"));
  EXPECT_THAT(error_after("/points/0", 7), HasSubstr("r.json: /points/0: 7 is not allowed; must be an object"));
  EXPECT_THAT(error_after("/warnings", 7), HasSubstr("r.json: /warnings: 7 is not allowed; must be an array"));
  EXPECT_THAT(error_after("/environment", "x"),
              HasSubstr("r.json: /environment: \"x\" is not allowed; must be an object"));
  EXPECT_THAT(error_after("/partial", 1), HasSubstr("true or false"));
}

TEST(ResultIo, AMissingFieldIsNamed) {
  Json json = to_json(made::result());
  json["points"][2].erase("workload");
  EXPECT_THAT(input_error_of([&] { result_from_json(json, "r.json"); }),
              HasSubstr("r.json: /points/2: the field \"workload\" is missing"));
}

TEST(ResultIo, AnotherKindOrNoKindIsRefused) {
  EXPECT_THAT(error_after("/kind", "report"), HasSubstr("/kind: is \"report\"; name the result file"));
  EXPECT_THAT(input_error_of([&] { result_from_json(Json{{"points", 1}}, "r.json"); }), HasSubstr("/kind: missing"));
  EXPECT_THAT(input_error_of([&] { result_from_json(Json::array(), "r.json"); }), HasSubstr("not a result"));
}

TEST(ResultIo, AnotherMajorVersionIsRefusedAndALaterMinorIsRead) {
  EXPECT_THAT(error_after("/schema_version", "2.0.0"), HasSubstr("another major version"));
  EXPECT_THAT(error_after("/schema_version", "soon"), HasSubstr("/schema_version: missing or no version"));
  Json later = to_json(made::result());
  later["schema_version"] = "1.9.3";
  later["points"][0]["field_of_the_future"] = 1;
  later["more_of_the_future"] = {{"a", 1}};
  const Result read = result_from_json(later, "r.json");
  EXPECT_EQ(read.points.size(), 3u);
  EXPECT_FALSE(to_json(read)["points"][0].contains("field_of_the_future"));
}

TEST(ResultIo, AFileThatIsNotThereOrCannotBeWrittenIsNamed) {
  EXPECT_THAT(input_error_of([] { read_result("/nonexistent/r.json"); }), HasSubstr("/nonexistent/r.json"));
  EXPECT_THROW(write_result(made::result(), "/nonexistent/r.json"), Error);
}

}  // namespace
}  // namespace dlbench
