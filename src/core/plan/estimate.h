// How long a point will take, before anything was measured: good to a factor of a few, for `--dry-run`, for the time
// left on the progress line, and to refuse steps that take hours.
#pragma once

#include "core/plan/plan.h"

namespace dlbench {

/// One step at the usual rates of such a device.
double estimate_step_seconds(const PlannedPoint& point, const DeviceInfo& device);
/// Everything about the point, all processes together.
double estimate_seconds(const PlannedPoint& point, const DeviceInfo& device, const MeasureOptions& measure);

}  // namespace dlbench
