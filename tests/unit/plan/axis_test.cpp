#include "core/plan/axis.h"

#include "core/base/error.h"
#include "unit/plan/expect_error.h"

namespace dlbench {
namespace {

using test::message_of;
using testing::ElementsAre;

TEST(ParseRange, AcceptsOneNumberListsAndBothKindsOfSteps) {
  EXPECT_THAT(parse_range("32"), ElementsAre(32));
  EXPECT_THAT(parse_range("4,8,32"), ElementsAre(4, 8, 32));
  EXPECT_THAT(parse_range("1:16:x2"), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(parse_range("8:32:+8"), ElementsAre(8, 16, 24, 32));
  EXPECT_THAT(parse_range("1:4:x2,100"), ElementsAre(1, 2, 4, 100));
}

TEST(ParseRange, LeavesAnEndOutThatIsNotHit) {
  EXPECT_THAT(parse_range("1:10:x3"), ElementsAre(1, 3, 9));
  EXPECT_THAT(parse_range("1:4:+2"), ElementsAre(1, 3));
  EXPECT_THAT(parse_range("5:5:x2"), ElementsAre(5));
}

TEST(ParseRange, KnowsBinaryUnits) {
  EXPECT_THAT(parse_range("4KiB:64KiB:x4"), ElementsAre(4096, 16384, 65536));
  EXPECT_THAT(parse_range("1GiB"), ElementsAre(int64_t{1} << 30));
}

TEST(ParseRange, StopsAtTheLargestNumber) {
  const std::vector<int64_t> values = parse_range("4611686018427387904:9223372036854775807:x2");
  EXPECT_THAT(values, ElementsAre(int64_t{1} << 62));
}

TEST(ParseRange, SaysWhatIsWrong) {
  const std::string end =
      R"(; write first:last:xFACTOR ("1:1024:x2"), first:last:+STEP ("8:64:+8"), a list ("4,8,32") or one number)";
  const auto message = [](const std::string& text) { return message_of<UsageError>([&text] { parse_range(text); }); };
  EXPECT_EQ(message(""), R"("" is not a range: a number is missing)" + end);
  EXPECT_EQ(message("4,,8"), R"("4,,8" is not a range: a number is missing)" + end);
  EXPECT_EQ(message("1:8"), R"("1:8" is not a range: it has 2 parts between colons, not 3)" + end);
  EXPECT_EQ(message("8:1:x2"), R"("8:1:x2" is not a range: it ends at 1 before it starts at 8)" + end);
  EXPECT_EQ(message("1:8:2"), R"("1:8:2" is not a range: the third part is no xFACTOR or +STEP)" + end);
  EXPECT_EQ(message("1:8:x1"),
            R"("1:8:x1" is not a range: a geometric range starts at 1 or more and has a factor of 2 or more)" + end);
  EXPECT_EQ(message("1:8:+0"), R"("1:8:+0" is not a range: a step must be 1 or more)" + end);
  EXPECT_EQ(message("-4"), R"("-4" is not a range: "-4" is no whole number)" + end);
  EXPECT_EQ(message("many"), R"("many" is not a range: "many" is no whole number)" + end);
  EXPECT_EQ(message("4KB"), R"("4KB" is not a range: "KB" is no unit (KiB, MiB, GiB))" + end);
  EXPECT_EQ(message("9223372036854775808"),
            R"("9223372036854775808" is not a range: 9223372036854775808 doesn't fit 63 bits)" + end);
  EXPECT_EQ(message("1:100000:+1"), R"("1:100000:+1" is not a range: it has more than 10000 values)" + end);
}

TEST(CommonAxes, StandInKeyOrder) {
  std::vector<std::string> names;
  for (const AxisSpec& axis : common_axes()) names.push_back(axis.name);
  EXPECT_THAT(names, ElementsAre("precision", "launch", "data", "cache", "threads", "device"));
}

}  // namespace
}  // namespace dlbench
