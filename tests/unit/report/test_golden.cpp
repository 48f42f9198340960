// The renderers on tests/golden/small.json, compared with what a person looked at and committed.
// After a wanted change: DLBENCH_UPDATE_GOLDEN=1 build/<preset>/tests/test_report --gtest_filter='Golden.*', then read
// the diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/sha256.h"
#include "core/report/report.h"
#include "core/result/result_io.h"
#include "core/result/validate.h"

namespace dlbench {
namespace {

const std::filesystem::path kFolder = DLBENCH_GOLDEN_DIR;

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool updating() {
  return std::getenv("DLBENCH_UPDATE_GOLDEN") != nullptr;
}

void expect_golden(const std::string& text, const std::string& name) {
  if (updating()) write_file_atomic(kFolder / name, text);
  EXPECT_EQ(text, read(kFolder / name)) << "see the top of this file for how to update " << name;
}

/// Equal but for the last digits of numbers, which differ between versions of the mathematical library.
void expect_close(const Json& got, const Json& expected, const std::string& pointer) {
  if (got.is_number() && expected.is_number()) {
    EXPECT_NEAR(got.get<double>(), expected.get<double>(), 1e-10 * std::abs(expected.get<double>())) << pointer;
  } else if (got.is_structured() && got.type() == expected.type() && got.size() == expected.size()) {
    const Json a = got.flatten(), b = expected.flatten();
    for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end(); ++i, ++j) {
      ASSERT_EQ(i.key(), j.key());
      if (!i.value().is_structured()) expect_close(i.value(), j.value(), i.key());
    }
  } else {
    EXPECT_EQ(got, expected) << pointer;
  }
}

class Golden : public testing::Test {
 protected:
  const Result result_ = read_result((kFolder / "small.json").string());
  const Analysis analysis_ = analyze(result_);
};

TEST_F(Golden, Console) {
  expect_golden(render_console(analysis_, {.width = 100, .color = false}), "small.console.txt");
}
TEST_F(Golden, NarrowConsole) {
  expect_golden(render_console(analysis_, {.width = 60, .color = false}), "small.narrow.txt");
}
TEST_F(Golden, Markdown) {
  expect_golden(render_markdown(analysis_), "small.md");
}
TEST_F(Golden, Csv) {
  expect_golden(render_csv(analysis_), "small.csv");
}

TEST_F(Golden, ReportJson) {
  const Json report = render_json(analysis_, {{"small.json", sha256(read(kFolder / "small.json"))}});
  EXPECT_TRUE(violations(report, FileKind::report).empty());
  const std::filesystem::path golden = kFolder / "small.report.json";
  if (updating()) write_file_atomic(golden, dump_json(report) + "\n");
  expect_close(report, read_json_file(golden.string()), "");
}

TEST_F(Golden, TheInputIsAValidResult) {
  for (const Violation& v : violations(read_json_file((kFolder / "small.json").string()), FileKind::result)) {
    ADD_FAILURE() << v.pointer << ": " << v.what;
  }
}

}  // namespace
}  // namespace dlbench
