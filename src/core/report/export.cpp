#include "core/report/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/analysis/selection.h"
#include "core/base/units.h"

namespace dlbench {

namespace {

constexpr double kNanoseconds = 1e9;

std::vector<const AnalyzedPoint*> measured_points(const Analysis& analysis) {
  std::vector<const AnalyzedPoint*> points;
  for (const AnalyzedPoint& point : analysis.points) {
    if (point.status == Status::ok && point.seconds) points.push_back(&point);
  }
  return points;
}

/// The timings that the estimate of a point is made of, one list per process.
struct ProcessTimings {
  const TimingRow* row;
  std::vector<double> seconds;
};

std::vector<ProcessTimings> selected_timings(const AnalyzedPoint& point, const TimingIndex& index) {
  std::vector<ProcessTimings> all;
  for (const TimingRow* row : index.at(point.row->key).rows) {
    ProcessTimings of_process{row, {}};
    for (size_t i = 0; i < row->wall_seconds.size(); ++i) {
      if (label_of(*row, i) == point.placement) of_process.seconds.push_back(row->wall_seconds[i]);
    }
    if (!of_process.seconds.empty()) all.push_back(std::move(of_process));
  }
  std::sort(all.begin(), all.end(),
            [](const ProcessTimings& a, const ProcessTimings& b) { return a.row->process < b.row->process; });
  return all;
}

std::string text_or(const Json& json, const char* name, const std::string& fallback) {
  const auto it = json.find(name);
  return it != json.end() && it->is_string() ? it->get<std::string>() : fallback;
}

}  // namespace

Json export_gbench(const Analysis& analysis) {
  const TimingIndex index = index_timings(*analysis.result);
  Json benchmarks = Json::array();
  int64_t family = 0;
  for (const AnalyzedPoint* point : measured_points(analysis)) {
    const std::vector<ProcessTimings> processes = selected_timings(*point, index);
    int64_t repetition = 0;
    for (const ProcessTimings& process : processes) {
      const double ns = median(process.seconds) * kNanoseconds;
      Json entry = {{"name", point->row->key},
                    {"family_index", family},
                    {"per_family_instance_index", 0},
                    {"run_name", point->row->key},
                    {"run_type", "iteration"},
                    {"repetitions", processes.size()},
                    {"repetition_index", repetition++},
                    {"threads", std::max<int64_t>(1, integer_axis(*point->row, "threads"))},
                    {"iterations", process.row->steps_per_timing * static_cast<int64_t>(process.seconds.size())},
                    {"real_time", ns},
                    {"cpu_time", ns},
                    {"time_unit", "ns"}};
      if (point->row->samples_per_step > 0)
        entry["items_per_second"] = point->row->samples_per_step / ns * kNanoseconds;
      const double bytes = point->row->bytes_read_per_step + point->row->bytes_written_per_step;
      if (bytes > 0) entry["bytes_per_second"] = bytes / ns * kNanoseconds;
      benchmarks.push_back(std::move(entry));
    }
    ++family;
  }
  const Result& result = *analysis.result;
  return {{"context",
           {{"date", text_or(result.run, "started_utc", "")},
            {"executable", "dlbench"},
            {"dlbench_version", text_or(result.tool, "version", "")},
            {"library_build_type", "release"},
            {"cpu_time_is", "the wall time: dlbench measures no CPU time"}}},
          {"benchmarks", std::move(benchmarks)}};
}

Json export_github_action_benchmark(const Analysis& analysis) {
  Json entries = Json::array();
  for (const AnalyzedPoint* point : measured_points(analysis)) {
    const Estimate& s = *point->seconds;
    Json entry = {{"name", point->row->key}, {"unit", "s/step"}, {"value", s.value}};
    if (s.low && s.high)
      entry["range"] = fmt::format("± {}", significant(std::max(s.value - *s.low, *s.high - s.value), 3));
    entry["extra"] = fmt::format("processes: {}\nplacement: {}\nbound by: {}", s.processes,
                                 point->placement.empty() ? "not recorded" : point->placement, to_string(point->bound));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Json export_bencher(const Analysis& analysis) {
  const auto metric = [](double value, const std::optional<double>& low, const std::optional<double>& high) {
    Json json = {{"value", value}};
    if (low) json["lower_value"] = *low;
    if (high) json["upper_value"] = *high;
    return json;
  };
  const auto scaled = [](const std::optional<double>& v) {
    return v ? std::optional(*v * kNanoseconds) : std::nullopt;
  };
  const auto inverse = [](const std::optional<double>& v) { return v ? std::optional(1 / *v) : std::nullopt; };
  Json benchmarks = Json::object();
  for (const AnalyzedPoint* point : measured_points(analysis)) {
    const Estimate& s = *point->seconds;
    benchmarks[point->row->key] = {{"latency", metric(s.value * kNanoseconds, scaled(s.low), scaled(s.high))},
                                   {"throughput", metric(1 / s.value, inverse(s.high), inverse(s.low))}};
  }
  return benchmarks;
}

Json export_pyperf(const Analysis& analysis) {
  const TimingIndex index = index_timings(*analysis.result);
  Json benchmarks = Json::array();
  for (const AnalyzedPoint* point : measured_points(analysis)) {
    Json runs = Json::array();
    for (const ProcessTimings& process : selected_timings(*point, index)) {
      runs.push_back({{"metadata", {{"loops", process.row->steps_per_timing}}}, {"values", process.seconds}});
    }
    benchmarks.push_back({{"metadata", {{"name", point->row->key}, {"unit", "second"}}}, {"runs", std::move(runs)}});
  }
  return {{"version", "1.0"}, {"benchmarks", std::move(benchmarks)}};
}

}  // namespace dlbench
