// Plan: every point that will get a row, with what is known before measuring: work, memory, estimated time, or why not.
//
// Why: absurd sizes are refused here with the estimate, not at malloc; `--dry-run` shows exactly what a run will do.
// Promises: points are unique and in a stable order; a point that can't run is in the plan with its status and reason.
#pragma once

#include <string>
#include <vector>

#include "core/device/registry.h"
#include "core/plan/config.h"
#include "core/plan/point.h"
#include "core/result/status.h"
#include "core/train/workload.h"

namespace dlbench {

struct PlannedPoint {
  Point point;
  std::string key;
  Side side = Side::cpu;
  Status status = Status::ok;  ///< ok: to be measured
  std::string reason;
  Support support;
  Work work;
  int64_t tensor_bytes = 0;      ///< of one set of buffers
  int buffer_sets = 1;           ///< > 1 with cache=rotate
  double estimated_seconds = 0;  ///< all processes
};

struct Plan {
  Config config;
  std::vector<PlannedPoint> points;
  double estimated_seconds = 0;
};

/// What the plan is for: an emulated device may be checked, never timed.
enum class Purpose : uint8_t { timing, checking };

/// @throws UsageError when nothing is left to measure by filters; DeviceAbsentError for a required device.
Plan make_plan(const Config& config, const WorkloadCatalog& catalog, Registry& registry,
               Purpose purpose = Purpose::timing);

/// The plan as text for `run --dry-run`: what will be measured with its work, memory and estimated time, and what won't
/// with the reasons.
std::string render_plan(const Plan& plan);

}  // namespace dlbench
