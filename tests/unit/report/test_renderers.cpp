// What must hold of a rendered report whatever the result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "core/report/document.h"
#include "core/report/report.h"
#include "unit/analysis/built_result.h"

namespace dlbench {
namespace {

using built::Builder;
using testing::HasSubstr;
using testing::Not;

std::string console(const Result& result, int width = 100, bool color = false) {
  const Analysis analysis = analyze(result);
  return render_console(analysis, {.width = width, .color = color});
}

Builder sweep(const std::string& cpu, const std::string& gpu) {
  Builder b;
  for (const int64_t batch : {1, 2, 4, 8}) {
    b.add({.device = cpu, .batch = batch, .seconds = 1e-4 * static_cast<double>(batch), .flops = 1e6, .bytes = 1e4});
    b.add({.device = gpu, .batch = batch, .seconds = 2.5e-4, .flops = 1e6, .bytes = 1e4});
  }
  return b;
}

TEST(Console, BeginsWithWhereTheGpuWins) {
  const std::string text = console(sweep("cpu", "gpu:0").result);
  EXPECT_TRUE(text.starts_with("Where the GPU wins\n")) << text;
  EXPECT_THAT(text, HasSubstr("wins from batch 4 up"));
}

TEST(Console, VirtualDevicesAreAlwaysNamedAsSuch) {
  Builder b = sweep("meta:cpu", "meta:gpu");
  const std::string text = console(b.result, 300);
  EXPECT_THAT(text, HasSubstr("[virtual devices] "));
  EXPECT_THAT(text, HasSubstr("meta:gpu (virtual)"));
  EXPECT_THAT(text, HasSubstr("meta devices are virtual"));
  EXPECT_THAT(render_markdown(analyze(b.result)), HasSubstr("(virtual)"));
  const Json report = render_json(analyze(b.result), {});
  for (const Json& p : report["points"]) EXPECT_TRUE(p["virtual"].get<bool>());
  for (const Json& c : report["crossovers"]) EXPECT_TRUE(c["virtual"].get<bool>());
}

TEST(Console, ANumberStaysWithItsUnitAtAnyWidth) {
  Builder b = sweep("cpu", "gpu:0");
  for (const int64_t mib : {1, 64}) {
    const double bytes = static_cast<double>(mib << 20);
    b.add({.workload = "membw", .device = "cpu", .batch = mib << 20, .seconds = bytes / 2e10, .bytes = bytes});
  }
  for (const int width : {40, 60, 80, 100}) {
    const std::string text = console(b.result, width);
    for (const char* whole : {"251 us", "64 MiB", "3.37 ms", "19.9 GB/s", "3.99 GFLOP/s"}) {
      EXPECT_THAT(text, HasSubstr(whole)) << "at width " << width;
    }
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(std::regex_match(line, std::regex("( *(n|u|m|k|M|G|T)?(s|B|B/s|FLOP/s|iB))+ *"))) << line;
    }
  }
}

TEST(Console, WithoutAGpuItSaysSoAndWhy) {
  Builder b;
  b.add({.device = "cpu"}).add({.device = "gpu:0", .status = Status::unsupported});
  b.result.points.back().reason = "no NVIDIA driver is loaded";
  EXPECT_THAT(
      console(b.result),
      HasSubstr("No GPU was measured, so nothing is said about where one would win: no NVIDIA driver is loaded"));
}

TEST(Console, AnEmptyResultIsAReport) {
  const std::string text = console(Result{});
  EXPECT_THAT(text, HasSubstr("Nothing was measured"));
  EXPECT_THAT(text, HasSubstr("0 points"));
}

TEST(Console, EveryStatusIsShownWithItsReason) {
  Builder b;
  int64_t batch = 1;
  for (const Status s : {Status::unsupported, Status::out_of_memory, Status::skipped, Status::timeout, Status::failed,
                         Status::mismatch, Status::invalid, Status::device_lost}) {
    b.add({.batch = batch++, .status = s});
    b.result.points.back().reason = "reason-of-" + std::string(to_string(s));
  }
  const std::string text = console(b.result, 200);
  for (const PointRow& row : b.result.points) {
    EXPECT_THAT(text, HasSubstr(to_string(row.status)));
    EXPECT_THAT(text, HasSubstr(row.reason));
  }
}

TEST(Console, ColourOnlyWhereAskedAndOnlyBesideWords) {
  const Result result = sweep("cpu", "gpu:0").result;
  const std::string plain = console(result), colored = console(result, 100, true);
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  EXPECT_THAT(colored, HasSubstr("\x1b["));
  EXPECT_EQ(std::regex_replace(colored, std::regex("\x1b\\[[0-9;]*m"), ""), plain);
}

TEST(Console, FitsTheWidthUnlessAWordIsWider) {
  const Result result = sweep("cpu", "gpu:0").result;
  for (const int width : {80, 100, 160}) {
    std::istringstream lines(console(result, width));
    for (std::string line; std::getline(lines, line);) {
      const auto columns = std::count_if(line.begin(), line.end(),
                                         [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
      EXPECT_LE(columns, width) << line;
    }
  }
}

TEST(Renderers, NeverPrintNanOrInfinity) {
  Builder b = sweep("cpu", "gpu:0");
  b.add({.batch = 99, .processes = 1}).add({.workload = "launch", .device = "gpu:0", .batch = 1, .seconds = 1e-6});
  const Analysis a = analyze(b.result);
  for (const std::string& text :
       {render_console(a, {}), render_markdown(a), render_csv(a), dump_json(render_json(a, {}))}) {
    EXPECT_FALSE(std::regex_search(text, std::regex("\\b(nan|inf|infinity)\\b", std::regex::icase))) << text;
  }
}

TEST(Csv, FollowsRfc4180WithStableColumns) {
  Builder b = sweep("cpu", "gpu:0");
  b.result.points[0].reason = "say \"no\", twice";
  const std::string text = render_csv(analyze(b.result));
  std::vector<size_t> fields;
  size_t count = 1;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    count += text[i] == ',';
    if (text[i] == '\n') {
      EXPECT_EQ(text[i - 1], '\r');
      fields.push_back(count);
      count = 1;
    }
  }
  ASSERT_EQ(fields.size(), b.result.points.size() + 1);
  for (const size_t n : fields) EXPECT_EQ(n, fields[0]);
  EXPECT_THAT(text, HasSubstr("\"say \"\"no\"\", twice\""));
  const Result empty;
  EXPECT_EQ(render_csv(analyze(empty)), text.substr(0, text.find('\n') + 1));
}

TEST(Markdown, EscapesWhatWouldBeMarkup) {
  Builder b;
  b.add({.status = Status::failed});
  b.result.points[0].reason = "a|b *c* <d>";
  EXPECT_THAT(render_markdown(analyze(b.result)), HasSubstr("a\\|b \\*c\\* \\<d>"));
}

TEST(VerdictSentence, NamesBracketAndTies) {
  Crossover c;
  c.sweep_axis = "batch";
  c.cpu_device = "cpu";
  c.gpu_device = "gpu:0";
  c.batch = {1, 2, 4, 8};
  c.winner = {Winner::cpu, Winner::tie, Winner::gpu, Winner::gpu};
  for (const double s : {0.5, 1.0, 2.0, 3.0}) {
    c.speedup.emplace_back();
    c.speedup.back().value = s;
  }
  c.verdict = "single";
  c.changes = {{Winner::cpu, Winner::gpu, 1, 4, 2.0}};
  EXPECT_EQ(verdict_sentence(c),
            "the GPU (gpu:0) wins from batch 4 up, the CPU (cpu) up to 1 (crossing near 2); where it wins, the GPU is "
            "2x to 3x faster; no "
            "winner at 2");
}

TEST(ShortName, KeepsWordsAndNamesNumbers) {
  EXPECT_EQ(short_name("gemm/family=square/batch=64/precision=fp32/cache=warm", {"cache=warm"}),
            "gemm square batch=64 fp32");
  EXPECT_EQ(short_name("membw/op=read/bytes=268435456"), "membw read 256 MiB");
}

}  // namespace
}  // namespace dlbench
