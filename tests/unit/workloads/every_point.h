// Small points that cover every combination of words of a workload: families, passes, ops, precisions.
#pragma once

#include <string>
#include <vector>

#include "core/plan/sweep.h"

namespace dlbench::test {

/// Whole numbers that keep any shape small; odd, so that nothing is accidentally aligned.
inline int64_t small_value(const AxisSpec& spec) {
  if (spec.name == "bytes") return 4 * 123;
  if (spec.name == "iterations") return 1000;
  return spec.name == "batch" ? 3 : 5;
}

/// Every combination of the words of its axes, at small sizes.
inline std::vector<Point> every_point(const WorkloadDescriptor& workload, const std::string& device) {
  Sweep sweep{.workload = workload.name, .axes = {}};
  for (const AxisSpec& spec : axes_of(workload)) {
    if (spec.name == "device" || spec.name == "threads") continue;
    std::vector<AxisValue> values;
    for (const std::string& word : spec.words) values.emplace_back(word);
    if (spec.kind == AxisKind::integer) values.emplace_back(small_value(spec));
    sweep.axes.emplace_back(spec.name, values);
  }
  return expand_sweep(workload, sweep, device);
}

}  // namespace dlbench::test
