// JSON in: strict, with the place of every error. JSON out: finite, and the same number when read back.
#include "core/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "core/base/error.h"

namespace dlbench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(const std::string& text, JsonComments comments = JsonComments::kReject) {
  try {
    parse_json(text, "x.json", comments);
  } catch (const InputError& e) {
    EXPECT_EQ(e.exit_code(), ExitCode::kUnreadable);
    return e.what();
  }
  return "no error";
}

TEST(ParseJson, KeepsOrderAndTypes) {
  const Json json = parse_json(R"({"b": 1, "a": [true, null, 2.5, "x"], "c": -7})", "x.json");
  EXPECT_EQ(json.dump(), R"({"b":1,"a":[true,null,2.5,"x"],"c":-7})");
  EXPECT_TRUE(json["b"].is_number_integer());
  EXPECT_TRUE(json["a"][2].is_number_float());
}

TEST(ParseJson, NamesLineAndColumn) {
  EXPECT_THAT(error_of("{\n  \"a\": 1,\n  \"b\" 2\n}"), AllOf(StartsWith("x.json:3:"), HasSubstr("not JSON")));
  EXPECT_THAT(error_of("{\"a\": 1}}"), StartsWith("x.json:1:9"));
  EXPECT_THAT(error_of("{\"a\": 1} x"), StartsWith("x.json:1:"));
}

TEST(ParseJson, EveryTruncationIsAnError) {
  const std::string text =
      R"({"schema_version": "1.0.0", "points": [{"key": "gemm/batch=8", "seconds": 1.5e-3}], "partial": false})";
  EXPECT_NO_THROW(parse_json(text, "x.json"));
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW(parse_json(text.substr(0, length), "x.json"), InputError) << text.substr(0, length);
  }
  EXPECT_THAT(error_of(text.substr(0, 50)), HasSubstr("cut short"));
  EXPECT_THAT(error_of(""), HasSubstr("the file is empty"));
  EXPECT_THAT(error_of(" \n\t "), HasSubstr("the file is empty"));
}

TEST(ParseJson, RefusesWhatStrictJsonHasNot) {
  for (const char* text :
       {"{\"a\": NaN}", "{\"a\": Infinity}", "{'a': 1}", "{\"a\": 1,}", "[1,]", "{a: 1}", "{\"a\": 01}", "{\"a\": .5}",
        "{\"a\": +1}", "{\"a\": 0x10}", "\"\t\"", "{\"a\": \"\xff\"}", "\xef\xbb\xbf"}) {
    EXPECT_THROW(parse_json(text, "x.json"), InputError) << text;
  }
}

TEST(ParseJson, RefusesDuplicateKeysInOneObjectOnly) {
  EXPECT_THAT(error_of(R"({"a": 1, "b": {"c": 1, "c": 2}})"), HasSubstr("\"c\" occurs twice"));
  EXPECT_THAT(error_of(R"({"a": 1, "a": 1})"), HasSubstr("\"a\" occurs twice"));
  EXPECT_EQ(error_of(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})"), "no error");
}

TEST(ParseJson, CommentsWhereAllowed) {
  const std::string text = "// first\n{\"a\": 1 /* one */}\n";
  EXPECT_NE(error_of(text), "no error");
  EXPECT_EQ(parse_json(text, "x.json", JsonComments::kAllow)["a"], 1);
}

TEST(ParseJson, NumbersBeyondDouble) {
  EXPECT_THROW(parse_json("{\"a\": 1e999}", "x.json"), InputError);
  EXPECT_EQ(parse_json("[9223372036854775807]", "x.json")[0].get<int64_t>(), std::numeric_limits<int64_t>::max());
}

TEST(ReadJsonFile, SaysWhyItCannot) {
  const auto what = [](const std::string& path) -> std::string {
    try {
      read_json_file(path);
    } catch (const InputError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(what("/nowhere/at/all.json"), AllOf(HasSubstr("/nowhere/at/all.json"), HasSubstr("No such file")));
  EXPECT_THAT(what(::testing::TempDir()), HasSubstr("is a directory"));
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / ("dlbench_json_" + std::to_string(::getpid()));
  std::ofstream(file) << "{\"a\": [1, 2";
  EXPECT_THAT(what(file), AllOf(HasSubstr(file.string() + ":1:"), HasSubstr("cut short")));
  std::filesystem::remove(file);
}

TEST(DumpJson, RefusesNaNAndInfinityWithTheirPlace) {
  for (const double bad :
       {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    Json json = {{"points", Json::array({{{"ok", 1.0}}, {{"seconds", bad}}})}};
    try {
      dump_json(json);
      FAIL() << "was written";
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("/points/1/seconds"));
    }
  }
}

TEST(DumpJson, DoublesReadBackAsTheyWere) {
  for (const double value : {0.1, 1.0 / 3, 1e-300, 4.9e-324, 1.7976931348623157e308, -0.0, 123456789.123456789, 1e22}) {
    const Json back = parse_json(dump_json(Json::array({value})), "x.json");
    EXPECT_EQ(back[0].get<double>(), value);
    EXPECT_EQ(std::signbit(back[0].get<double>()), std::signbit(value));
  }
}

TEST(NearestWord, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string> known{"batch", "precision", "device"};
  EXPECT_EQ(nearest_word("bacth", known), "batch");
  EXPECT_EQ(nearest_word("precison", known), "precision");
  EXPECT_EQ(nearest_word("colour", known), "");
  EXPECT_EQ(nearest_word("x", {}), "");
}

}  // namespace
}  // namespace dlbench
