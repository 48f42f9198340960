// Small made-up results for tests: every field filled with a value that can be told from the others.
#pragma once

#include <string>
#include <vector>

#include "core/result/result.h"

namespace dlbench::made {

inline PointRow point(const std::string& device, int64_t batch, Status status = Status::ok) {
  PointRow row;
  const std::string side = device.starts_with("gpu") ? "gpu" : "cpu";
  row.workload = "gemm";
  row.pair_key = "gemm/family=square/batch=" + std::to_string(batch) + "/precision=fp32/cache=warm";
  row.sweep_key = "gemm/family=square/precision=fp32/cache=warm";
  row.key = row.pair_key + (side == "cpu" ? "/threads=2/device=" : "/device=") + device;
  row.sweep_axis = "batch";
  row.sweep_value = static_cast<double>(batch);
  row.device = device;
  row.device_kind = side;
  row.side = side;
  row.precision = "fp32";
  row.point.workload = "gemm";
  row.point.axes = {{"family", "square"}, {"batch", batch}, {"precision", "fp32"}, {"cache", "warm"}};
  if (side == "cpu") row.point.axes.emplace_back("threads", int64_t{2});
  row.point.axes.emplace_back("device", device);
  row.status = status;
  row.reason = status == Status::ok ? "" : "because the test says so";
  row.support = "native";
  const auto n = static_cast<double>(batch);
  row.flops_per_step = 2 * n * n * n;
  row.bytes_read_per_step = 8 * n * n;
  row.bytes_written_per_step = 4 * n * n;
  row.working_set_bytes = 12 * n * n;
  row.samples_per_step = n;
  row.sample_unit = "rows";
  row.tensor_bytes = 12 * batch * batch;
  row.peak_memory_bytes = 13 * batch * batch;
  row.verification = "full";
  row.verification_error = 1.5e-7;
  row.verification_tolerance = 2.5e-6;
  row.verified_fraction = 1;
  return row;
}

inline TimingRow timing(const std::string& key, int process, double seconds) {
  TimingRow row;
  row.key = key;
  row.process = process;
  row.steps_per_timing = 8;
  row.wall_seconds = {seconds, seconds * 1.01, seconds * 0.99};
  row.block = {0, 0, 1};
  row.ping_pong_before_seconds = {5.1e-8, 5.2e-8};
  row.ping_pong_after_seconds = {5.3e-8, 5.4e-8};
  row.fma_before_flop_per_s = {2.3e11, 2.31e11};
  row.fma_after_flop_per_s = {2.32e11, 2.33e11};
  row.placement = {"near", "near"};
  row.repeated_blocks = 1;
  row.warmup_seconds = 0.3;
  row.warmup_steps = 100;
  row.setup_seconds = 0.01;
  row.verify_seconds = 0.02;
  row.stop_reason = "converged";
  row.half_width_relative = 0.004;
  row.flags = {"noisy"};
  row.clock_hz = 3.6e9;
  return row;
}

inline Result result(const std::string& fingerprint = "box") {
  Result r;
  r.tool = {{"name", "dlbench"}, {"version", "0.1.0"}};
  r.run = {{"id", "run-1"}};
  r.environment = {{"fingerprint", fingerprint}};
  r.config = {{"name", "test"}};
  r.points = {point("cpu", 64), point("cpu", 128), point("gpu:0", 64, Status::unsupported)};
  for (int p = 0; p < 3; ++p) {
    r.timings.push_back(timing(r.points[0].key, p, 1e-4 + p * 1e-6));
    r.timings.push_back(timing(r.points[1].key, p, 8e-4 + p * 1e-6));
    r.processes.push_back({p, "2026-01-02T03:04:05Z", 12.5, 1, "ok", 0.1, std::nullopt, 123456, 1e-7});
    r.controls.push_back({p, "ctrl.cpu_fma", "start", "cpu", 0.005, "near"});
  }
  r.warnings = {"the governor is powersave"};
  return r;
}

}  // namespace dlbench::made
