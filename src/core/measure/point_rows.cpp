#include "core/measure/point_rows.h"

#include <algorithm>

#include "core/base/error.h"

namespace dlbench {

namespace {

std::string kind_of(const std::string& device_id) {
  return device_id.substr(0, device_id.find(':'));
}

/// Which of two statuses says more about a point: the larger one stands.
int weight_of(Status status) {
  switch (status) {
    case Status::skipped:
      return 0;
    case Status::ok:
      return 1;
    case Status::invalid:
      return 2;
    case Status::unsupported:
      return 3;
    case Status::timeout:
      return 4;
    case Status::out_of_memory:
      return 5;
    case Status::device_lost:
      return 6;
    case Status::failed:
      return 7;
    case Status::mismatch:
      return 8;
  }
  throw Error("weight_of: not a status");
}

}  // namespace

PointRow planned_row(const PlannedPoint& planned, const WorkloadCatalog& catalog) {
  const Point& point = planned.point;
  PointRow row;
  row.key = planned.key;
  row.pair_key = point.pair_key();
  row.workload = point.workload;
  if (const WorkloadDescriptor* descriptor = catalog.find(point.workload)) row.sweep_axis = descriptor->sweep_axis;
  row.sweep_key = point.sweep_key(row.sweep_axis);
  if (const AxisValue* value = row.sweep_axis.empty() ? nullptr : point.find(row.sweep_axis)) {
    if (const auto* number = std::get_if<int64_t>(value)) row.sweep_value = static_cast<double>(*number);
  }
  row.device = point.device();
  row.device_kind = kind_of(row.device);
  row.side = to_string(planned.side);
  row.precision = to_string(point.precision());
  row.point = point;
  row.status = planned.status == Status::ok ? Status::skipped : planned.status;
  row.reason = planned.status == Status::ok ? "not reached" : planned.reason;
  row.support = to_string(planned.support.level);
  row.support_reason = planned.support.reason;
  row.flops_per_step = planned.work.cost.flops;
  row.bytes_read_per_step = planned.work.cost.bytes_read;
  row.bytes_written_per_step = planned.work.cost.bytes_written;
  row.working_set_bytes = planned.work.working_set_bytes;
  row.samples_per_step = planned.work.samples;
  row.sample_unit = planned.work.sample_unit;
  row.tensor_bytes = planned.tensor_bytes;
  row.buffer_sets = planned.buffer_sets;
  row.verification = "none";
  return row;
}

void merge_row(PointRow& row, const PointRow& learnt) {
  if (weight_of(learnt.status) < weight_of(row.status)) return;
  const std::optional<int64_t> peak = row.peak_memory_bytes;
  const bool keep_reason = learnt.status == row.status && row.status != Status::skipped;
  const std::string reason = keep_reason ? row.reason : learnt.reason;
  const bool worse_check =
      row.status == learnt.status && row.verification_error.value_or(-1) > learnt.verification_error.value_or(-1);
  const PointRow before = row;
  row = learnt;
  row.reason = reason;
  if (peak) row.peak_memory_bytes = std::max(*peak, learnt.peak_memory_bytes.value_or(0));
  if (worse_check) {
    row.verification_error = before.verification_error;
    row.verification_tolerance = before.verification_tolerance;
  }
}

}  // namespace dlbench
