// The fields of each row of a result file, listed once: writing, reading and the CSV columns all walk these lists.
//
// Why: a field that is written but never read (or the other way round) can't happen.
// Promises: names equal the members; the order is that of the file. `Visitor` is called as visitor(name, member).
#pragma once

#include "core/result/result.h"

namespace dlbench {

/// Columns before and after the axis_ columns.
template <class Row, class Visitor>
void visit_point_identity(Row& row, Visitor& visit) {
  visit("key", row.key);
  visit("pair_key", row.pair_key);
  visit("sweep_key", row.sweep_key);
  visit("workload", row.workload);
  visit("sweep_axis", row.sweep_axis);
  visit("sweep_value", row.sweep_value);
  visit("device", row.device);
  visit("device_kind", row.device_kind);
  visit("side", row.side);
  visit("precision", row.precision);
}

template <class Row, class Visitor>
void visit_point_observations(Row& row, Visitor& visit) {
  visit("status", row.status);
  visit("reason", row.reason);
  visit("support", row.support);
  visit("support_reason", row.support_reason);
  visit("flops_per_step", row.flops_per_step);
  visit("bytes_read_per_step", row.bytes_read_per_step);
  visit("bytes_written_per_step", row.bytes_written_per_step);
  visit("working_set_bytes", row.working_set_bytes);
  visit("samples_per_step", row.samples_per_step);
  visit("sample_unit", row.sample_unit);
  visit("tensor_bytes", row.tensor_bytes);
  visit("buffer_sets", row.buffer_sets);
  visit("peak_memory_bytes", row.peak_memory_bytes);
  visit("verification", row.verification);
  visit("verification_error", row.verification_error);
  visit("verification_tolerance", row.verification_tolerance);
  visit("verified_fraction", row.verified_fraction);
}

template <class Row, class Visitor>
void visit_timing(Row& row, Visitor& visit) {
  visit("key", row.key);
  visit("process", row.process);
  visit("steps_per_timing", row.steps_per_timing);
  visit("wall_seconds", row.wall_seconds);
  visit("device_seconds", row.device_seconds);
  visit("block", row.block);
  visit("ping_pong_before_seconds", row.ping_pong_before_seconds);
  visit("ping_pong_after_seconds", row.ping_pong_after_seconds);
  visit("fma_before_flop_per_s", row.fma_before_flop_per_s);
  visit("fma_after_flop_per_s", row.fma_after_flop_per_s);
  visit("placement", row.placement);
  visit("repeated_blocks", row.repeated_blocks);
  visit("warmup_seconds", row.warmup_seconds);
  visit("warmup_steps", row.warmup_steps);
  visit("setup_seconds", row.setup_seconds);
  visit("verify_seconds", row.verify_seconds);
  visit("stop_reason", row.stop_reason);
  visit("half_width_relative", row.half_width_relative);
  visit("flags", row.flags);
  visit("clock_hz", row.clock_hz);
  visit("temperature_c", row.temperature_c);
  visit("power_watts", row.power_watts);
  visit("energy_joules", row.energy_joules);
  visit("throttle_reasons", row.throttle_reasons);
  visit("allocations_in_timed_region", row.allocations_in_timed_region);
}

template <class Row, class Visitor>
void visit_control(Row& row, Visitor& visit) {
  visit("process", row.process);
  visit("name", row.name);
  visit("position", row.position);
  visit("device", row.device);
  visit("seconds", row.seconds);
  visit("placement", row.placement);
}

template <class Row, class Visitor>
void visit_process(Row& row, Visitor& visit) {
  visit("process", row.process);
  visit("started_utc", row.started_utc);
  visit("elapsed_seconds", row.elapsed_seconds);
  visit("workers", row.workers);
  visit("exit", row.exit);
  visit("steal_seconds", row.steal_seconds);
  visit("cgroup_throttled_seconds", row.cgroup_throttled_seconds);
  visit("peak_resident_bytes", row.peak_resident_bytes);
  visit("placement_threshold_seconds", row.placement_threshold_seconds);
}

}  // namespace dlbench
