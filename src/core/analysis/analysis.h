// Analysis: pure functions from one Result to everything a report shows. The in-memory form of report.json.
//
// Why: analysis exists once, in C++; renderers (console, markdown, csv, html, Python) only draw it.
// Promises: reads nothing but the Result; a point that isn't `ok` never gets a derived number.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/analysis/statistics.h"
#include "core/result/result.h"

namespace dlbench {

/// What bounds a point.
enum class Bound : uint8_t { compute, bandwidth, cache, launch, unknown };
std::string_view to_string(Bound bound);

/// A measured ceiling of a device in this result. `source` is the key of the point it comes from.
struct Peak {
  std::string device, precision;     ///< precision empty for bandwidth
  std::string kind;                  ///< flop_per_s | bytes_per_s | launch_seconds
  double value = 0;
  double working_set_bytes = 0;      ///< of bandwidth peaks: the largest working set it holds for
  int threads = 0;
  std::string source;
};

struct AnalyzedPoint {
  const PointRow* row = nullptr;
  std::string placement;                       ///< label whose timings were used
  int timings_left_out = 0;                    ///< of other labels
  std::optional<Estimate> seconds;             ///< wall, per step
  std::optional<Estimate> device_seconds;
  std::optional<double> samples_per_s, samples_per_s_low, samples_per_s_high;
  std::optional<double> achieved_flop_per_s, achieved_bytes_per_s;
  std::optional<double> arithmetic_intensity;
  std::optional<double> roofline_seconds;      ///< what the measured roofline allows
  std::optional<double> roofline_fraction;     ///< roofline_seconds / seconds
  Bound bound = Bound::unknown;
  std::vector<std::string> flags;              ///< of its timings; "invalid: …" gates
};

/// One point of each side, equal but for the device.
struct Pair {
  std::string pair_key, precision;
  const AnalyzedPoint* cpu = nullptr;
  const AnalyzedPoint* gpu = nullptr;
  Estimate speedup;                            ///< CPU seconds / GPU seconds
  std::string placement;
};

enum class Winner : uint8_t { cpu, gpu, tie };
std::string_view to_string(Winner winner);

/// Along one sweep: who wins where, and between which batches it changes.
struct Crossover {
  std::string sweep_key, sweep_axis, workload, precision, cpu_device, gpu_device;
  std::string gpu_variant;                     ///< launch mode and other one-sided axes of the GPU points
  std::vector<double> batch;
  std::vector<Estimate> speedup;
  std::vector<Winner> winner;
  std::string verdict;                         ///< gpu_always | gpu_never | single | reversed | multiple | tie | too_few_points
  struct Change {
    Winner from = Winner::tie, to = Winner::tie;
    double last_before = 0, first_after = 0;   ///< the measured bracket
    double estimate = 0;                       ///< log-log interpolation of speedup = 1
  };
  std::vector<Change> changes;
  std::optional<std::string> suspect;          ///< why the CPU baseline isn't good enough to believe it
};

/// Seconds at 1 thread / seconds at t threads, per pair key of a CPU device.
struct ThreadScaling {
  std::string pair_key, device, placement;
  std::vector<int> threads;
  std::vector<double> speedup, efficiency;
};

struct Analysis {
  const Result* result = nullptr;
  std::vector<AnalyzedPoint> points;
  std::vector<Peak> peaks;
  std::vector<Pair> pairs;
  std::vector<Crossover> crossovers;
  std::vector<ThreadScaling> scaling;
  std::vector<std::string> notes;
};

Analysis analyze(const Result& result);

}  // namespace dlbench
