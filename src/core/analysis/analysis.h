// Analysis: pure functions from one Result to everything a report shows. The in-memory form of report.json.
//
// Why: analysis exists once, in C++; renderers (console, markdown, csv, html, Python) only draw it.
// Promises: reads nothing but the Result; a point that isn't `ok` never gets a derived number; what is not known
// is empty, never 0.
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
  std::string device, precision;  ///< precision empty for bandwidth and launches
  std::string kind;               ///< flop_per_s | bytes_per_s | launch_seconds
  double value = 0;
  double working_set_bytes = 0;  ///< of bandwidth peaks: the working set it was measured with
  int threads = 0;               ///< 0 on a GPU
  std::string placement;         ///< label of the timings it comes from
  std::string launch;            ///< of launch_seconds: stream | graph; "" on a CPU
  std::string source;
};

struct AnalyzedPoint {
  const PointRow* row = nullptr;
  Status status = Status::skipped;  ///< of the row, or `invalid` when a gate below found it impossible
  std::string reason;               ///< of the row, or what the gate found
  std::string placement;            ///< label whose timings were used; "" where none was recorded
  int timings_used = 0;
  int timings_left_out = 0;         ///< of other labels
  std::optional<Estimate> seconds;  ///< wall, per step
  std::optional<Estimate> device_seconds;
  std::optional<double> samples_per_s, samples_per_s_low, samples_per_s_high;
  std::optional<double> achieved_flop_per_s, achieved_bytes_per_s;
  std::optional<double> arithmetic_intensity;  ///< FLOPs per byte
  std::optional<double> roofline_seconds;      ///< what the measured roofline allows
  std::optional<double> roofline_fraction;     ///< roofline_seconds / seconds
  std::string roofline_placement;  ///< label of the ceilings, when none of the point's own label was measured
  std::string roofline_missing;    ///< why an `ok` point has no fraction; "" where it has one, or could have none
  Bound bound = Bound::unknown;
  std::vector<std::string> flags;  ///< of its timings, each once, in alphabetical order;
                                   ///< then own_ceiling: it is itself the fastest that was measured
};

/// One point of each side, equal but for the device. The CPU point is the one with the fastest thread count.
struct Pair {
  std::string pair_key, workload, precision;
  const AnalyzedPoint* cpu = nullptr;
  const AnalyzedPoint* gpu = nullptr;
  std::string gpu_variant;            ///< "launch=graph, data=resident"
  Estimate cpu_seconds, gpu_seconds;  ///< over timings of equal placement
  Estimate speedup;                   ///< CPU seconds / GPU seconds, 95 % interval
  std::string placement;              ///< the label of both, or "cpu: near, gpu: far" across machines
};

enum class Winner : uint8_t { cpu, gpu, tie };
std::string_view to_string(Winner winner);

/// Along one sweep: who wins where, and between which batches it changes.
///
/// A side wins a batch when the simultaneous 95 % interval of the speedup (Bonferroni over the batches of the sweep,
/// METHODS section 5) excludes 1. Ties decide nothing: they belong to no winner, and a bracket spans them. So swapping
/// the sides mirrors the verdict.
struct Crossover {
  std::string sweep_key, sweep_axis, workload, precision, cpu_device, gpu_device;
  std::string gpu_variant;  ///< launch mode and other one-sided axes of the GPU points
  std::string placement;    ///< of its pairs; several labels are listed
  std::vector<double> batch;
  std::vector<Estimate> speedup;  ///< with the simultaneous interval
  std::vector<Winner> winner;
  std::string verdict;  ///< gpu_always | gpu_never | single | reversed | multiple | tie | too_few_points
  struct Change {
    Winner from = Winner::tie, to = Winner::tie;
    double last_before = 0, first_after = 0;  ///< the measured bracket
    double estimate = 0;                      ///< log-log interpolation of speedup = 1
  };
  std::vector<Change> changes;
  std::optional<std::string> suspect;  ///< why the CPU baseline isn't good enough to believe it
};

/// Rate at t threads / rate at 1 thread (for equal work: seconds at 1 thread / seconds at t), per pair key of a CPU
/// device.
struct ThreadScaling {
  std::string pair_key, device, placement;
  std::vector<int> threads;
  std::vector<double> speedup, efficiency;
};

/// Holds pointers into the Result and into its own points: it can be moved, not copied.
struct Analysis {
  Analysis() = default;
  Analysis(Analysis&&) = default;
  Analysis& operator=(Analysis&&) = default;

  const Result* result = nullptr;
  std::vector<AnalyzedPoint> points;
  std::vector<Peak> peaks;
  std::vector<Pair> pairs;
  std::vector<Crossover> crossovers;
  std::vector<ThreadScaling> scaling;
  std::vector<std::string> notes;
};

/// CPU points below this fraction of the measured roofline make a crossover `suspect` (Lee et al., ISCA 2010).
inline constexpr double kSuspectRooflineFraction = 0.5;

/// @param result must outlive what is returned.
Analysis analyze(const Result& result);
Analysis analyze(const Result&&) = delete;

}  // namespace dlbench
