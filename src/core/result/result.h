// Result: what was observed, and nothing derived. The in-memory form of result.json (results/README.md lists every
// field).
//
// Why: a report is always made from the file, so the file must hold everything a report needs, and no opinion.
// Promises: JSON field names equal the member names here; rows are flat; SI units in names; schema_version is semver.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/plan/point.h"
#include "core/result/status.h"

namespace dlbench {

inline constexpr const char* kResultSchemaVersion = "1.0.0";

/// One row of points[]. In JSON its axes are columns beside the others, prefixed "axis_": `axis_batch`, `axis_family`,
/// … (a workload may have an axis of any name without clashing with another column).
struct PointRow {
  std::string key, pair_key, sweep_key;
  std::string workload;
  std::string sweep_axis;                 ///< "batch"
  std::optional<double> sweep_value;      ///< its value
  std::string device, device_kind, side;  ///< "gpu:0", "gpu", "gpu"
  std::string precision;
  Point point;  ///< the axes
  Status status = Status::skipped;
  std::string reason;
  std::string support, support_reason;  ///< native | emulated | no
  double flops_per_step = 0, bytes_read_per_step = 0, bytes_written_per_step = 0, working_set_bytes = 0;
  double samples_per_step = 0;
  std::string sample_unit;
  int64_t tensor_bytes = 0;
  int64_t buffer_sets = 1;
  std::optional<int64_t> peak_memory_bytes;  ///< highest resident / device memory seen above the start
  std::string verification;                  ///< full | sampled | self | none
  std::optional<double> verification_error,
      verification_tolerance;    ///< relative to the magnitude; largest over outputs
  double verified_fraction = 0;  ///< of the output elements
  std::string source;            ///< file it was merged from; "" in a single result, and never in a file
};

/// One row of timings[]: all timings of a point in a process. Columns are parallel arrays.
struct TimingRow {
  std::string key;
  int process = 0;
  int64_t steps_per_timing = 1;
  std::vector<double> wall_seconds;    ///< per step
  std::vector<double> device_seconds;  ///< per step; empty where there is no device clock
  std::vector<int> block;              ///< which probed block each timing belongs to
  // One entry per block:
  std::vector<double> ping_pong_before_seconds, ping_pong_after_seconds;
  std::vector<double> fma_before_flop_per_s, fma_after_flop_per_s;
  std::vector<std::string> placement;  ///< near | far | uniform | starved | single | unknown
  int repeated_blocks = 0;             ///< blocks thrown away because their two probes disagreed
  double warmup_seconds = 0;
  int64_t warmup_steps = 0;
  double setup_seconds = 0, verify_seconds = 0;
  std::string stop_reason;                    ///< converged | budget_exhausted | max_timings
  std::optional<double> half_width_relative;  ///< of the median, at the stop; the unmet condition if not converged
  std::vector<std::string> flags;             ///< drift, autocorrelated, throttled, noisy, steal
  std::optional<double> clock_hz, temperature_c, power_watts, energy_joules;
  std::string throttle_reasons;
  int64_t allocations_in_timed_region = 0;
};

/// One row of controls[]: a control kernel at one position in a process.
struct ControlRow {
  int process = 0;
  std::string name;      ///< ctrl.cpu_fma, ctrl.cpu_triad, ctrl.gpu_fma, ctrl.gpu_copy, ctrl.launch
  std::string position;  ///< start | middle | end
  std::string device;
  double seconds = 0;  ///< median of its repetitions
  std::string placement;
};

/// One row of processes[].
struct ProcessRow {
  int process = 0;
  std::string started_utc;
  double elapsed_seconds = 0;
  int workers = 1;   ///< OS processes it took: one more for every crash or timeout
  std::string exit;  ///< ok | signal 9 (Killed) | exit 3 | interrupted | unfinished
  std::optional<double> steal_seconds, cgroup_throttled_seconds;
  std::optional<int64_t> peak_resident_bytes;
  std::optional<double> placement_threshold_seconds;  ///< between the clusters found from the probes
};

struct Result {
  std::string schema_version = kResultSchemaVersion;
  bool partial = false;               ///< some planned process or point is missing
  Json tool = Json::object();         ///< name, version, commit, compiler, flags, libraries
  Json run = Json::object();          ///< id, started_utc, finished_utc, command line, seed
  Json environment = Json::object();  ///< fingerprint, cpu, memory, os, devices[], peaks known, …
  Json config = Json::object();       ///< merged config
  std::vector<PointRow> points;
  std::vector<TimingRow> timings;
  std::vector<ControlRow> controls;
  std::vector<ProcessRow> processes;
  std::vector<std::string> warnings;
};

}  // namespace dlbench
