// Sweeps within src/core/plan: from the values that a person wrote to the points of a device.
#pragma once

#include <string>
#include <vector>

#include "core/plan/config.h"

namespace dlbench {

/// The values of one axis: a number, a word, a range ("1:1024:x2"), or a list of them. Not checked against `spec`
/// beyond the kind of value. @throws UsageError without place: the caller puts origin and JSON pointer before it.
std::vector<AxisValue> parse_axis_values(const AxisSpec& spec, const Json& json);

/// @throws UsageError (without place) when `sweep` gives an axis that none of its points can have.
void refuse_useless_axes(const WorkloadDescriptor& workload, const Sweep& sweep);

/// Whether an axis exists on this side beside the axes before it.
bool axis_exists(const AxisSpec& axis, const AxisValues& before, Side side);

/// How many combinations the lists of a sweep have, at most 2^62.
int64_t combination_count(const Sweep& sweep);

/// Every point of a sweep on a device, last axis fastest, each once; empty where the workload doesn't exist on its
/// side.
std::vector<Point> expand_sweep(const WorkloadDescriptor& workload, const Sweep& sweep, const std::string& device);

/// Bytes of one set of buffers. @throws UsageError when they can't be counted in 63 bits.
int64_t tensor_bytes_of(const Workload& workload);
/// The workload of a point. @throws UsageError when a shape can't be counted in 63 bits.
std::unique_ptr<Workload> create_workload(const WorkloadDescriptor& descriptor, const Point& point);

/// What merging works on: the overrides and the `defaults` block written into each sweep that can take them.
/// @throws UsageError
void merge_into(Json& config, const std::string& origin, const Overrides& overrides, const WorkloadCatalog& catalog);

}  // namespace dlbench
