// Runner: measures one point in this process (at once, or held open), and the whole plan over worker processes.
//
// run_plan (parent) forks and executes `dlbench worker` once per process of the plan and tells it point by point, in a
// seeded random order, what to measure; a worker that dies or hangs costs its point, not the run. After every point the
// answer is appended to FILE.journal and the result file is rewritten atomically (at most once a second); --resume
// reads both, so that not even a killed parent loses a finished point.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "core/measure/observer.h"
#include "core/measure/probes.h"
#include "core/plan/plan.h"
#include "core/result/result.h"

namespace dlbench {

/// What one process learnt about one point.
struct PointMeasurement {
  Status status = Status::ok;
  std::string reason;
  PointRow row;
  TimingRow timing;
};

using ProbeFunction = std::function<ProbeValues()>;

/// set up -> verify -> warm up -> timings until the stopping rule says so. Never throws for what a point can do wrong.
/// @param probe empty: the placement probes on hardware, none on a virtual clock; tests bring their own.
PointMeasurement measure_point(const PlannedPoint& point, const Config& config, const WorkloadCatalog& catalog,
                               Device& device, int process, const ProbeFunction& probe = {});

struct HoldOptions {
  bool verify = true;
  int64_t steps_per_timing = 0;  ///< 0: as for measure_point; else what another process found
};

/// A point that stays set up, so that its timings can be taken in turns with those of another process.
class HeldPoint {
 public:
  /// What it refers to must outlive it.
  HeldPoint(const PlannedPoint& point, const Config& config, const WorkloadCatalog& catalog, Device& device);
  ~HeldPoint();
  HeldPoint(const HeldPoint&) = delete;
  HeldPoint& operator=(const HeldPoint&) = delete;

  /// Support, verification, buffers, warm-up. Never throws for what a point can do wrong: it is in the status.
  const PointMeasurement& open(const HoldOptions& options);
  /// Seconds per step of so many timings, after some untimed steps that bring the point's data back into the caches;
  /// empty when it went wrong: then the status says why.
  std::vector<double> take(int timings);
  const PointMeasurement& measurement() const;
  /// What one timing takes, from the warm-up; 0 before `open`.
  double timing_seconds() const;

 private:
  class State;
  const ProbeFunction no_probe_;
  std::unique_ptr<State> state_;
};

struct RunOptions {
  std::string output;                     ///< path or "-"
  std::string executable;                 ///< started as `executable worker`
  std::string gbench_out;                 ///< Google Benchmark's own JSON, "" for none
  std::vector<std::string> command_line;  ///< recorded
  bool resume = false;
  const std::atomic<int>* signal = nullptr;  ///< set to SIGINT / SIGTERM by the handler
};

/// The finished (or interrupted: partial) result; already on disk. An existing output file is moved to FILE.previous.
/// @throws UsageError when the output can't be written or what is there can't be resumed; Error when the disk is full.
Result run_plan(const Plan& plan, const WorkloadCatalog& catalog, Registry& registry, const RunOptions& options,
                Observer& observer);

}  // namespace dlbench
