#include "core/measure/controls.h"

#include <functional>

#include "core/analysis/statistics.h"

namespace dlbench {

namespace {

constexpr int kTimings = 5;
constexpr double kTimingSeconds = 1e-3;
constexpr int64_t kMaxFmaIterations = int64_t{1} << 24;  // ops.h: where f32 still counts
constexpr int64_t kTriadElements = int64_t{6} << 20;     // 3 x 24 MiB: beyond most last-level caches, within 100 MB
constexpr int64_t kCopyElements = int64_t{16} << 20;     // 2 x 64 MiB

double seconds_of(Device& device, int64_t calls, const std::function<void()>& call) {
  device.synchronize();
  const double start = device.clock().now_seconds();
  for (int64_t i = 0; i < calls; ++i) call();
  device.synchronize();
  return (device.clock().now_seconds() - start) / static_cast<double>(calls);
}

/// Median of timings that take about a millisecond each; the first, untimed ones find out how many calls that is.
double median_seconds(Device& device, const std::function<void()>& call) {
  call();
  int64_t calls = 1;
  while (calls < 4096 && seconds_of(device, calls, call) * static_cast<double>(calls) < kTimingSeconds) calls *= 2;
  std::vector<double> timings;
  for (int i = 0; i < kTimings; ++i) timings.push_back(seconds_of(device, calls, call));
  return median(timings);
}

double fma_seconds(Device& device) {
  FmaPeakSpec spec{.precision = Precision::fp32, .unit = FmaUnit::vector_auto, .iterations = int64_t{1} << 14};
  DeviceBuffer out(device, static_cast<size_t>(device.ops().fma_peak_outputs(spec)) * sizeof(float));
  const auto call = [&] { device.ops().fma_peak(spec, out.data()); };
  // One call is long enough to hide its start, and every machine that has the same speed does the same rounds.
  call();
  while (spec.iterations < kMaxFmaIterations && seconds_of(device, 1, call) < kTimingSeconds) spec.iterations *= 2;
  std::vector<double> timings;
  for (int i = 0; i < kTimings; ++i) timings.push_back(seconds_of(device, 1, call));
  return median(timings) / static_cast<double>(spec.iterations);
}

double triad_seconds(Device& device) {
  const VectorSpec spec{.precision = Precision::fp32, .n = kTriadElements};
  const size_t bytes = static_cast<size_t>(kTriadElements) * sizeof(float);
  DeviceBuffer x(device, bytes), y(device, bytes), z(device, bytes);
  device.set_bytes(x.data(), 0, bytes);
  device.set_bytes(y.data(), 0, bytes);
  return median_seconds(device, [&] { device.ops().triad(spec, 3.0f, x.data(), y.data(), z.data()); });
}

double copy_seconds(Device& device) {
  const VectorSpec spec{.precision = Precision::fp32, .n = kCopyElements};
  const size_t bytes = static_cast<size_t>(kCopyElements) * sizeof(float);
  DeviceBuffer x(device, bytes), y(device, bytes);
  device.set_bytes(x.data(), 0, bytes);
  return median_seconds(device, [&] { device.ops().copy(spec, x.data(), y.data()); });
}

double launch_seconds(Device& device) {
  return median_seconds(device, [&] { device.ops().noop(); });
}

struct Control {
  const char* name;
  Side side;
  Op op;
  double (*seconds)(Device&);
};
constexpr Control kControls[] = {
    {"ctrl.cpu_fma", Side::cpu, Op::fma_peak, fma_seconds}, {"ctrl.cpu_triad", Side::cpu, Op::triad, triad_seconds},
    {"ctrl.gpu_fma", Side::gpu, Op::fma_peak, fma_seconds}, {"ctrl.gpu_copy", Side::gpu, Op::copy, copy_seconds},
    {"ctrl.launch", Side::gpu, Op::noop, launch_seconds},
};

}  // namespace

std::vector<ControlRow> run_controls(Device& device, const std::string& position, int process) {
  std::vector<ControlRow> rows;
  for (const Control& control : kControls) {
    if (control.side != device.info().side) continue;
    if (device.ops().supports(control.op, Precision::fp32).level == SupportLevel::no) continue;
    rows.push_back({.process = process,
                    .name = control.name,
                    .position = position,
                    .device = device.info().id,
                    .seconds = control.seconds(device),
                    .placement = "unknown"});
  }
  return rows;
}

}  // namespace dlbench
