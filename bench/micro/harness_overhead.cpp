// What the harness adds to a timing: a step that does nothing, on a device that does nothing, timed as every point is.
//
// Goals (ends with 1 when one is missed): under 1 microsecond per timing inside the timed region, and under 0.1 % of
// the shortest timing that the harness takes (10 ms on a CPU), the loop over its steps included.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/device/reference_device.h"
#include "core/measure/gbench.h"
#include "core/measure/timed_step.h"

namespace {

using namespace dlbench;

class Nothing final : public Workload {
 public:
  const std::vector<BufferSpec>& buffers() const override { return buffers_; }
  Work work() const override { return {}; }
  Support supported_by(Device&) const override { return {}; }
  OutputTolerance tolerance(size_t) const override { return {}; }
  void step(Device&, const Binding&) override {}

 private:
  std::vector<BufferSpec> buffers_;
};

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

bool judge(const char* what, double value, double limit, const char* unit) {
  const bool met = value < limit;
  fmt::print("{:<44} {:>9.3f} {:<3} (goal: under {:g}) {}\n", what, value, unit, limit, met ? "met" : "MISSED");
  return met;
}

}  // namespace

int main() {
  constexpr int kTimings = 10000;
  constexpr double kShortestTiming = 0.010;
  const auto device = make_reference_device({});
  Nothing nothing;
  const BufferSets buffers(*device, nothing.buffers(), 1, 0);
  TimedStep step(nothing, *device, buffers, {});
  step.prepare();
  const auto timed = [&step](int64_t steps) { return step.time(steps).wall_seconds; };
  const double one = median_of(time_under_google_benchmark("nothing", 1, kTimings, timed));
  const double per_step = median_of(time_under_google_benchmark("nothing", 4096, 1000, timed));
  bool met = judge("per timing: clock, timer, synchronise", one * 1e6, 1, "us");
  met &= judge("share of the shortest timing", 100 * one / kShortestTiming, 0.1, "%");
  fmt::print("{:<44} {:>9.3f} ns\n", "per step: loop and virtual calls", per_step * 1e9);
  return met ? 0 : 1;
}
