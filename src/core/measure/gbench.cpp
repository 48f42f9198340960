#include "core/measure/gbench.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <sstream>

#include "core/analysis/statistics.h"
#include "core/base/json.h"

namespace dlbench {

namespace {

/// Keeps the runs instead of printing them.
class CollectingReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
      seconds_per_step.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
    }
  }
  std::vector<double> seconds_per_step;
};

}  // namespace

std::vector<double> time_under_google_benchmark(const std::string& name, int64_t steps, int count,
                                                const std::function<double(int64_t)>& timed) {
  std::exception_ptr error;
  const auto body = [&](benchmark::State& state) {
    while (state.KeepRunningBatch(steps)) {
      if (error) {
        state.SkipWithError("an earlier timing failed");
        return;
      }
      try {
        state.SetIterationTime(timed(steps));
      } catch (...) {
        error = std::current_exception();
        state.SkipWithError("failed");
        return;
      }
    }
  };
  benchmark::ClearRegisteredBenchmarks();
  benchmark::RegisterBenchmark(name.c_str(), body)->Iterations(steps)->Repetitions(count)->UseManualTime();
  CollectingReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter, "all");
  benchmark::ClearRegisteredBenchmarks();
  if (error) std::rethrow_exception(error);
  return reporter.seconds_per_step;
}

namespace {

using Run = benchmark::BenchmarkReporter::Run;

/// What one point's timings are in Google Benchmark's terms.
struct Family {
  std::string name;
  int64_t index = 0;
  std::vector<const TimingRow*> rows;

  int64_t repetitions() const {
    size_t count = 0;
    for (const TimingRow* row : rows) count += row->wall_seconds.size();
    return static_cast<int64_t>(count);
  }
};

Run run_of(const Family& family, double seconds_per_step, int64_t iterations) {
  Run run;
  run.run_name.function_name = family.name;
  run.family_index = family.index;
  run.per_family_instance_index = 0;
  run.repetition_index = Run::no_repetition_index;
  run.repetitions = family.repetitions();
  run.iterations = iterations;
  run.time_unit = benchmark::kNanosecond;
  run.real_accumulated_time = seconds_per_step * static_cast<double>(iterations);
  run.cpu_accumulated_time = run.real_accumulated_time;  // the format demands one; dlbench measures wall time only
  run.statistics = nullptr;
  return run;
}

Run aggregate_of(const Family& family, const std::string& name, double value, benchmark::StatisticUnit unit) {
  Run run = run_of(family, value, 1);
  run.run_type = Run::RT_Aggregate;
  run.aggregate_name = name;
  run.aggregate_unit = unit;
  run.iterations = family.repetitions();
  run.real_accumulated_time = value * static_cast<double>(unit == benchmark::kTime ? run.iterations : 1);
  if (unit == benchmark::kPercentage) run.iterations = 1;
  run.cpu_accumulated_time = run.real_accumulated_time;
  return run;
}

std::vector<Run> runs_of(const Family& family) {
  std::vector<Run> runs;
  std::vector<double> all;
  for (const TimingRow* row : family.rows) {
    for (const double seconds : row->wall_seconds) {
      runs.push_back(run_of(family, seconds, row->steps_per_timing));
      runs.back().repetition_index = static_cast<int64_t>(all.size());
      all.push_back(seconds);
    }
  }
  if (all.size() < 2) return runs;
  const double n = static_cast<double>(all.size());
  double mean = 0, variance = 0;
  for (const double seconds : all) mean += seconds / n;
  for (const double seconds : all) variance += (seconds - mean) * (seconds - mean) / (n - 1);
  runs.push_back(aggregate_of(family, "mean", mean, benchmark::kTime));
  runs.push_back(aggregate_of(family, "median", median(all), benchmark::kTime));
  runs.push_back(aggregate_of(family, "stddev", std::sqrt(variance), benchmark::kTime));
  runs.push_back(aggregate_of(family, "cv", std::sqrt(variance) / mean, benchmark::kPercentage));
  return runs;
}

}  // namespace

void write_google_benchmark_json(const Result& result, const std::string& path) {
  std::map<std::string, std::vector<const TimingRow*>> rows;
  for (const TimingRow& row : result.timings) rows[row.key].push_back(&row);
  std::ostringstream text;
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&text);
  benchmark::BenchmarkReporter::Context::executable_name = "dlbench";
  reporter.ReportContext(benchmark::BenchmarkReporter::Context());
  int64_t index = 0;
  for (const PointRow& point : result.points) {
    if (point.status != Status::ok || !rows.contains(point.key)) continue;
    const Family family{.name = point.key, .index = index++, .rows = rows[point.key]};
    const std::vector<Run> runs = runs_of(family);
    if (!runs.empty()) reporter.ReportRuns(runs);
  }
  reporter.Finalize();
  write_file_atomic(path, text.str());
}

}  // namespace dlbench
