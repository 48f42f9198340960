#include "core/plan/estimate.h"

#include <algorithm>

namespace dlbench {

namespace {

struct Rates {
  double flop_per_s, bytes_per_s, launch_seconds;
};

/// Orders of magnitude of today's hardware: a core with 256-bit vectors reaches 60 GFLOP/s and shares 15 GB/s of memory
/// bandwidth with its neighbours, a GPU 10 TFLOP/s and 500 GB/s; the reference device is one scalar loop.
Rates rates_of(const PlannedPoint& point, const DeviceInfo& device) {
  if (device.kind == "reference") return {.flop_per_s = 5e8, .bytes_per_s = 5e8, .launch_seconds = 1e-7};
  if (device.side == Side::gpu) return {.flop_per_s = 1e13, .bytes_per_s = 5e11, .launch_seconds = 5e-6};
  const AxisValue* value = point.point.find("threads");
  const int64_t* threads = value ? std::get_if<int64_t>(value) : nullptr;
  const double cores = static_cast<double>(threads ? std::max<int64_t>(1, *threads) : device.threads);
  return {.flop_per_s = 6e10 * cores, .bytes_per_s = std::min(1.5e10 * cores, 2e11), .launch_seconds = 2e-6};
}

// What the harness spends around the timings of a point: start, buffers, and the placement probes of one block.
constexpr double kSetUpSeconds = 0.02;
constexpr double kWarmupSecondsCpu = 0.3, kWarmupSecondsGpu = 0.5;
constexpr int kWarmupTimings = 3;
/// Looks of the stopping rule are at 11, 21, 41 and 81 timings; most points stop at the second.
constexpr int kUsualTimings = 21;
/// The reference device multiplies and adds a few values per nanosecond and generates its inputs.
constexpr double kReferenceFlopPerSecond = 1e9, kFillBytesPerSecond = 2e8;

}  // namespace

double estimate_step_seconds(const PlannedPoint& point, const DeviceInfo& device) {
  const Rates rates = rates_of(point, device);
  return rates.launch_seconds +
         std::max(point.work.cost.flops / rates.flop_per_s, point.work.cost.bytes() / rates.bytes_per_s);
}

double estimate_seconds(const PlannedPoint& point, const DeviceInfo& device, const MeasureOptions& measure) {
  const double step = estimate_step_seconds(point, device);
  const double timing = std::max(step, 1.3 * measure.min_timing_seconds);  // steps per timing are a power of two
  const double fixed = point.side == Side::gpu ? kWarmupSecondsGpu : kWarmupSecondsCpu;
  const double warmup = measure.warmup_seconds >= 0 ? measure.warmup_seconds : fixed;
  const double timings = timing * std::min(measure.max_timings, kUsualTimings);
  const double verification = std::min(point.work.cost.flops, measure.verify_flop_cap) / kReferenceFlopPerSecond +
                              static_cast<double>(point.tensor_bytes) / kFillBytesPerSecond;
  const double process = kSetUpSeconds + verification + std::max(warmup, kWarmupTimings * timing) +
                         std::max(timing, std::min(timings, measure.point_budget_seconds));
  return process * measure.processes;
}

}  // namespace dlbench
