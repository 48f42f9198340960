// Point: one combination of workload and axis values on one device; its key is its repro line.
//
// Why: `gemm/family=linear/batch=8/precision=fp32/launch=stream/data=resident/cache=warm/threads=2/device=cpu` names a
// measurement in results, reports, filters and bug reports, and `dlbench run --point KEY` reruns exactly that.
// Promises: keys are unique within a plan, parse back to the same point, and list axes in a fixed order. An axis that
// one side lacks (launch and data on the CPU, threads on a GPU) is left out of that side's keys.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/axis.h"
#include "core/tensor/precision.h"

namespace dlbench {

struct WorkloadDescriptor;
class WorkloadCatalog;

struct Point {
  std::string workload;
  /// Every axis with its value, device included, in key order.
  std::vector<std::pair<std::string, AxisValue>> axes;

  const AxisValue* find(const std::string& axis) const;
  int64_t integer(const std::string& axis) const;  ///< @throws Error when absent or a word
  const std::string& word(const std::string& axis) const;
  Precision precision() const;
  const std::string& device() const;  ///< id: "cpu", "gpu:0"

  std::string key() const;
  /// The key without device and one-sided axes: equal for the points of a pair.
  std::string pair_key() const;
  /// The pair key without `sweep_axis`: equal for the points of one sweep.
  std::string sweep_key(const std::string& sweep_axis) const;
};

/// The side that a device id stands on: gpu, gpu:N and meta:gpu on the GPU's, every other one on the CPU's.
Side side_of_device(const std::string& device_id);

using AxisValues = std::vector<std::pair<std::string, AxisValue>>;

/// The point of a workload with these axis values on a device; an axis that isn't given has its fallback, an axis that
/// doesn't exist there (other side, unmet condition) is left out. @throws UsageError for an unknown axis or value.
Point make_point(const WorkloadDescriptor& workload, const AxisValues& given, const std::string& device);

/// The point that a key names. Axes left out of the key have their fallback, so that keys can be typed by hand.
/// @throws UsageError for anything unknown, out of range, given twice, or absent on that device's side.
Point parse_point_key(const std::string& key, const WorkloadCatalog& catalog);

}  // namespace dlbench
