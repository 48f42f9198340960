// Runner: measures one point in this process, and the whole plan over worker processes.
//
// run_plan (parent) forks and executes `dlbench worker` once per process of the plan; each worker measures every point
// in a seeded random order and streams rows back; a worker that dies or hangs costs its point, not the run. The result
// file is rewritten atomically after every point.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "core/measure/observer.h"
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

/// set up -> verify -> warm up -> timings until the stopping rule says so. Never throws for what a point can do wrong.
PointMeasurement measure_point(const PlannedPoint& point, const Config& config, const WorkloadCatalog& catalog,
                               Device& device, int process);

struct RunOptions {
  std::string output;      ///< path or "-"
  std::string executable;  ///< to start workers with
  std::string gbench_out;  ///< Google Benchmark's own JSON, "" for none
  bool resume = false;
  const std::atomic<int>* signal = nullptr;  ///< set to SIGINT / SIGTERM by the handler
};

/// The finished (or interrupted: partial) result; already on disk.
Result run_plan(const Plan& plan, const WorkloadCatalog& catalog, Registry& registry, const RunOptions& options,
                Observer& observer);

}  // namespace dlbench
