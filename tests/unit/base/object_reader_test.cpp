// ObjectReader: every wrong entry is named with file, JSON pointer, value and what is allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"
#include "core/base/json.h"

namespace dlbench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(const std::string& object, const std::function<void(ObjectReader&)>& read) {
  const Json json = parse_json(object, "c.json");
  try {
    ObjectReader reader(json, "c.json", "/sweeps/0");
    read(reader);
    reader.finish();
  } catch (const UsageError& e) {
    return e.what();
  }
  return "no error";
}

TEST(ObjectReader, ReadsWithFallbacks) {
  const Json json = parse_json(R"({"s": "x", "i": -3, "n": 1.5, "b": true, "c": "two"})", "c.json");
  ObjectReader reader(json, "c.json", "");
  EXPECT_EQ(reader.string_or("s", "y"), "x");
  EXPECT_EQ(reader.string_or("absent", "y"), "y");
  EXPECT_EQ(reader.integer_or("i", 0, -10, 10), -3);
  EXPECT_EQ(reader.number_or("n", 0, 0, 2), 1.5);
  EXPECT_EQ(reader.number_or("i", 0, -10, 10), -3);  // a whole number is a number
  EXPECT_TRUE(reader.boolean_or("b", false));
  EXPECT_EQ(reader.choice_or("c", "one", {"one", "two"}), "two");
  EXPECT_EQ(reader.find("nothing"), nullptr);
  EXPECT_NO_THROW(reader.finish());
  EXPECT_EQ(reader.pointer_of("s"), "/s");
}

TEST(ObjectReader, WrongTypesAndRanges) {
  const auto integer = [](ObjectReader& r) { r.integer_or("k", 1, 1, 100); };
  EXPECT_EQ(error_of(R"({"k": -3})", integer),
            "c.json: /sweeps/0/k: -3 is not allowed; must be a whole number from 1 to 100");
  for (const char* bad :
       {"\"5\"", "1.5", "5.0", "true", "null", "[5]", "{}", "101", "18446744073709551615", "-9223372036854775808"}) {
    EXPECT_THAT(error_of("{\"k\": " + std::string(bad) + "}", integer),
                AllOf(HasSubstr("/sweeps/0/k"), HasSubstr("whole number from 1 to 100")))
        << bad;
  }
  EXPECT_THAT(error_of(R"({"k": 7})", [](ObjectReader& r) { r.string_or("k", ""); }),
              HasSubstr("7 is not allowed; must be a string"));
  EXPECT_THAT(error_of(R"({"k": 2.5})", [](ObjectReader& r) { r.number_or("k", 0, 0, 1); }),
              HasSubstr("a number from 0 to 1"));
  EXPECT_THAT(error_of(R"({"k": 1})", [](ObjectReader& r) { r.boolean_or("k", false); }),
              HasSubstr("must be true or false"));
}

TEST(ObjectReader, ChoicesSuggestTheNearest) {
  const auto choice = [](ObjectReader& r) { r.choice_or("k", "normal", {"quick", "normal", "thorough"}); };
  EXPECT_THAT(error_of(R"({"k": "quik"})", choice),
              AllOf(HasSubstr("\"quik\" is not known"), HasSubstr("did you mean \"quick\"?"),
                    HasSubstr("quick, normal, thorough")));
  EXPECT_THAT(error_of(R"({"k": "zzzzzzzz"})", choice), ::testing::Not(HasSubstr("did you mean")));
  EXPECT_THAT(error_of(R"({"k": 5})", choice), HasSubstr("must be one of: quick, normal, thorough"));
}

TEST(ObjectReader, UnknownKeysAreErrors) {
  const auto read = [](ObjectReader& r) {
    r.integer_or("batch", 1, 1, 10);
    r.string_or("precision", "");
  };
  EXPECT_THAT(error_of(R"({"batch": 1, "bacth": 2})", read),
              AllOf(HasSubstr("/sweeps/0/bacth: unknown key"), HasSubstr("did you mean \"batch\"?"),
                    HasSubstr("known: batch, precision")));
  EXPECT_EQ(error_of(R"({"batch": 1})", read), "no error");
}

TEST(ObjectReader, NeedsAnObject) {
  for (const char* text : {"[1]", "5", "\"x\"", "null"}) {
    const Json json = parse_json(text, "c.json");
    EXPECT_THROW(ObjectReader(json, "c.json", "/a"), UsageError) << text;
  }
}

}  // namespace
}  // namespace dlbench
