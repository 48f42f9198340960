// One point in this process: support, verification, set-up, warm-up, blocks of timings, flags. See runner.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <new>

#include "core/analysis/statistics.h"
#include "core/base/error.h"
#include "core/base/usable_cpus.h"
#include "core/measure/gbench.h"
#include "core/measure/host_counters.h"
#include "core/measure/loss_check.h"
#include "core/measure/point_rows.h"
#include "core/measure/probes.h"
#include "core/measure/runner.h"
#include "core/measure/stopping_rule.h"
#include "core/measure/timed_step.h"
#include "core/measure/verify.h"

namespace dlbench {

namespace {

constexpr double kTargetHalfWidth = 0.01;  // METHODS: of the median
constexpr double kWarmupSecondsCpu = 0.3;  // METHODS: fixed budgets, never adaptive by outcome
constexpr double kWarmupSecondsGpu = 0.5;
constexpr int kWarmupTimings = 3;
constexpr int64_t kMinStepsGpu = 8;  // METHODS: one step per synchronisation would time the synchronisation
constexpr int64_t kMaxSteps = int64_t{1} << 24;
constexpr int64_t kRefreshPart = 2;    // of a timing's steps, run untimed after another process was at work
constexpr double kBlockSeconds = 0.5;  // of timings between two probes
constexpr int kMaxRepeatedBlocks = 4;
constexpr double kIdleLimitSeconds = 0.04;  // OpenBLAS workers spin for 25 ms
constexpr double kDriftChange = 0.01, kDriftP = 0.01, kAutocorrelation = 0.2;
constexpr double kNoisyRange = 0.10;        // interquartile range over median
constexpr double kStealShare = 0.01;        // of the CPU time in the window
constexpr double kEnergyWindowSeconds = 2;  // METHODS: energy counters update every 20 to 100 ms

/// Measures one point; each member function is one stage, in order.
class PointRun {
 public:
  PointRun(const PlannedPoint& planned, const Config& config, const WorkloadCatalog& catalog, Device& device,
           int process, const ProbeFunction& probe)
      : planned_(planned),
        config_(config),
        device_(device),
        probe_(probe),
        steady_(dynamic_cast<SteadyClock*>(&device.clock()) != nullptr) {
    result_.row = planned_row(planned, catalog);
    result_.timing.key = planned.key;
    result_.timing.process = process;
    result_.timing.stop_reason = "not_started";
    descriptor_ = catalog.find(planned.point.workload);
  }

  PointMeasurement run() {
    guarded([this] { measure(); });
    return std::move(result_);
  }

  // Held open, for HeldPoint -----------------------------------------------------------------------------------------

  const PointMeasurement& open(const HoldOptions& options) {
    guarded([&] {
      if (!set_up_workload()) return;
      if (options.verify && !verified()) return;
      set_up();
      warm_up(options.steps_per_timing);
    });
    return result_;
  }

  std::vector<double> take(int timings) {
    std::vector<double> seconds;
    guarded([&] {
      if (!step_ || result_.status != Status::ok) throw Error("the point isn't open");
      // The other process had the caches: not timed.
      step_->time(std::max<int64_t>(1, result_.timing.steps_per_timing / kRefreshPart));
      for (int i = 0; i < timings; ++i) {
        const TimedStep::Timing timing = step_->time(result_.timing.steps_per_timing);
        seconds.push_back(timing.wall_seconds / static_cast<double>(result_.timing.steps_per_timing));
      }
      require_finite_loss();
      refuse_allocations();
    });
    if (result_.status != Status::ok) seconds.clear();
    return seconds;
  }
  const PointMeasurement& result() const { return result_; }
  double timing_seconds() const { return estimate_; }

 private:
  void guarded(const std::function<void()>& stage) {
    Status status = Status::ok;
    std::string reason;
    try {
      stage();
    } catch (const OutOfMemoryError& e) {
      status = Status::out_of_memory, reason = e.what();
    } catch (const UnsupportedError& e) {
      status = Status::unsupported, reason = e.what();
    } catch (const DeviceLostError& e) {
      status = Status::device_lost, reason = e.what();
    } catch (const std::bad_alloc&) {
      status = Status::out_of_memory, reason = "this machine has no memory left for the point and its verification";
    } catch (const std::exception& e) {
      status = Status::failed, reason = e.what();
    }
    if (status != Status::ok) set_status(status, reason);
    result_.row.status = result_.status;
    result_.row.reason = result_.reason;
  }

  void set_status(Status status, const std::string& reason) {
    result_.status = status;
    result_.reason = reason;
  }

  void measure() {
    if (!set_up_workload()) return;
    const int64_t memory_before = resident_bytes().value_or(0), free_before = device_.free_memory();
    if (!verified()) return;
    reset_peak_resident();  // the peak is that of the steps: verification holds a second copy of everything
    set_up();
    warm_up(0);
    require_finite_loss();
    take_blocks();
    finish_row(memory_before, free_before);
  }

  /// False when the plan knows already that the point can't run.
  bool set_up_workload() {
    if (planned_.status != Status::ok) {
      set_status(planned_.status, planned_.reason);
      return false;
    }
    if (!descriptor_) throw Error(fmt::format("there is no workload {}", planned_.point.workload));
    if (device_.info().emulated)
      throw UnsupportedError("an emulated device can be checked (`dlbench check`), never timed");
    workload_ = descriptor_->create(planned_.point);
    workload_->prepare(device_);
    const Support support = workload_->supported_by(device_);
    result_.row.support = to_string(support.level);
    result_.row.support_reason = support.reason;
    if (support.level == SupportLevel::no) throw UnsupportedError(support.reason);
    return true;
  }

  bool verified() {
    const double start = now();
    const Verification check = verify(*workload_, device_, config_.seed, config_.measure.verify_flop_cap);
    result_.timing.verify_seconds = now() - start;
    PointRow& row = result_.row;
    row.verification = check.how;
    row.verified_fraction = check.fraction;
    if (check.how == "full" || check.how == "sampled") {
      if (std::isfinite(check.error)) row.verification_error = check.error;
      row.verification_tolerance = check.tolerance;
    }
    if (!check.ok) set_status(Status::mismatch, check.message);
    if (check.proves_little) flag("trivial_check");
    return check.ok;
  }

  void set_up() {
    const double start = now();
    buffers_ = std::make_unique<BufferSets>(device_, workload_->buffers(), planned_.buffer_sets, config_.seed);
    if (const auto cost = workload_->device_cost(device_)) {
      result_.row.flops_per_step = cost->flops;
      result_.row.bytes_read_per_step = cost->bytes_read;
      result_.row.bytes_written_per_step = cost->bytes_written;
    }
    step_ = std::make_unique<TimedStep>(*workload_, device_, *buffers_, step_mode(planned_.point));
    step_->prepare();
    result_.timing.setup_seconds = now() - start;
    if (steady_) cpus_ = usable_cpus().affinity;
    if (steady_) cpus_.resize(std::min(cpus_.size(), static_cast<size_t>(usable_cpus().count)));
  }

  /// Doubles the steps per timing until one takes the minimum, and goes on until the budget is spent.
  /// @param steps_per_timing that are wanted whatever they take; 0: found here
  void warm_up(int64_t steps_per_timing) {
    TimingRow& row = result_.timing;
    const double fixed = planned_.side == Side::gpu ? kWarmupSecondsGpu : kWarmupSecondsCpu;
    const double budget = config_.measure.warmup_seconds >= 0 ? config_.measure.warmup_seconds : fixed;
    const double wanted = config_.measure.min_timing_seconds, start = now();
    int64_t steps = planned_.side == Side::gpu ? kMinStepsGpu : 1;
    double fastest = INFINITY;
    for (int timings = 0; timings < kWarmupTimings || now() - start < budget; ++timings) {
      const double seconds = step_->time(steps).wall_seconds;
      row.warmup_steps += steps;
      fastest = std::min(fastest, seconds / static_cast<double>(steps));
      if (seconds < wanted && steps < kMaxSteps) steps *= 2;
    }
    while (static_cast<double>(steps) * fastest < wanted && steps < kMaxSteps) steps *= 2;
    // The search may have gone too far while the first calls were slow: the smallest power of two that is long enough.
    const int64_t least = planned_.side == Side::gpu ? kMinStepsGpu : 1;
    while (steps > least && static_cast<double>(steps / 2) * fastest >= wanted) steps /= 2;
    row.steps_per_timing = steps_per_timing > 0 ? steps_per_timing : steps;
    row.warmup_seconds = now() - start;
    estimate_ = fastest * static_cast<double>(row.steps_per_timing);
  }

  /// A model whose loss is no number any more has nothing that is worth timing. @throws Error with the step.
  void require_finite_loss() {
    if (loss_is_finite(*workload_, *buffers_)) return;
    throw Error(describe_bad_loss(*workload_, device_, *buffers_, step_->steps()));
  }

  void take_blocks() {
    TimingRow& row = result_.timing;
    const StoppingRule rule(kTargetHalfWidth, config_.measure.max_timings);
    const HostCounters counters = read_host_counters();
    const Telemetry telemetry = device_.telemetry();
    const double start = now();
    StopDecision decision;
    ProbeValues before = probe();
    do {
      const int taken = static_cast<int>(row.wall_seconds.size());
      const double left = config_.measure.point_budget_seconds - (now() - start);
      const int room =
          static_cast<int>(std::clamp(std::min(left, kBlockSeconds) / std::max(estimate_, 1e-9), 1.0, 1000.0));
      const std::vector<double> timings = take_block(std::min(rule.next_look(taken) - taken, room));
      const ProbeValues after = probe();
      const double spent = now() - start;
      // Repeated while repetitions and budget last; what is kept at the end is labelled `unknown`, not thrown away.
      const bool may_repeat = row.repeated_blocks < kMaxRepeatedBlocks && spent < config_.measure.point_budget_seconds;
      if (may_repeat && !probes_agree(before, after)) {
        ++row.repeated_blocks;
        row.device_seconds.resize(row.device_seconds.empty() ? 0 : row.wall_seconds.size());
      } else {
        keep_block(timings, before, after);
      }
      before = after;
      require_finite_loss();
      decision = rule.decide(row.wall_seconds, spent, config_.measure.point_budget_seconds);
    } while (!decision.stop);
    row.stop_reason = decision.reason;
    row.half_width_relative = decision.half_width_relative;
    diagnose(now() - start, difference(counters, read_host_counters()), telemetry);
  }

  std::vector<double> take_block(int count) {
    TimingRow& row = result_.timing;
    if (steady_) step_->time(row.steps_per_timing);  // probes and idle threads cool the caches: not timed
    std::vector<double> device_seconds;
    const std::vector<double> wall =
        time_under_google_benchmark(planned_.key, row.steps_per_timing, count, [&](int64_t steps) {
          const TimedStep::Timing timing = step_->time(steps);
          if (timing.device_seconds) device_seconds.push_back(*timing.device_seconds / static_cast<double>(steps));
          return timing.wall_seconds;
        });
    if (wall.size() != static_cast<size_t>(count)) {
      throw Error(fmt::format("Google Benchmark returned {} of {} timings", wall.size(), count));
    }
    if (device_seconds.size() == wall.size()) {
      row.device_seconds.insert(row.device_seconds.end(), device_seconds.begin(), device_seconds.end());
    }
    return wall;
  }

  void keep_block(const std::vector<double>& timings, const ProbeValues& before, const ProbeValues& after) {
    TimingRow& row = result_.timing;
    const int block = static_cast<int>(row.placement.size());
    row.wall_seconds.insert(row.wall_seconds.end(), timings.begin(), timings.end());
    row.block.insert(row.block.end(), timings.size(), block);
    row.ping_pong_before_seconds.push_back(before.ping_pong_seconds);
    row.ping_pong_after_seconds.push_back(after.ping_pong_seconds);
    row.fma_before_flop_per_s.push_back(before.fma_flop_per_s);
    row.fma_after_flop_per_s.push_back(after.fma_flop_per_s);
    row.placement.push_back("unknown");  // labels need the probes of the whole run
  }

  ProbeValues probe() {
    if (probe_) return probe_();
    if (!steady_) return {};
    wait_until_idle(kIdleLimitSeconds);
    return run_probes(cpus_);
  }

  void diagnose(double window_seconds, const HostCounters& counters, const Telemetry& first) {
    TimingRow& row = result_.timing;
    const Trend slope = trend(row.wall_seconds);
    if (std::fabs(slope.relative_change) > kDriftChange && slope.p_value < kDriftP) flag("drift");
    if (lag1_autocorrelation(row.wall_seconds) > kAutocorrelation) flag("autocorrelated");
    std::vector<double> sorted = row.wall_seconds;
    std::sort(sorted.begin(), sorted.end());
    const double range = sorted[sorted.size() * 3 / 4] - sorted[sorted.size() / 4];
    if (range > kNoisyRange * sorted[sorted.size() / 2]) flag("noisy");
    if (row.stop_reason == "budget_exhausted") flag("budget_exhausted");
    const Telemetry last = device_.telemetry();
    row.clock_hz = last.clock_hz;
    row.temperature_c = last.temperature_c;
    row.power_watts = last.power_watts;
    row.throttle_reasons = last.throttle_reasons;
    if (first.energy_joules && last.energy_joules && window_seconds >= kEnergyWindowSeconds) {
      row.energy_joules = *last.energy_joules - *first.energy_joules;
    }
    if (!steady_) return;
    if (!last.throttle_reasons.empty() || counters.cgroup_throttled_seconds.value_or(0) > 0) flag("throttled");
    if (counters.steal_seconds.value_or(0) > kStealShare * window_seconds * static_cast<double>(cpus_.size()))
      flag("steal");
  }

  void finish_row(int64_t memory_before, int64_t free_before) {
    refuse_allocations();
    if (planned_.side == Side::gpu) {
      result_.row.peak_memory_bytes = std::max<int64_t>(0, free_before - device_.free_memory());
    } else if (const auto peak = peak_resident_bytes()) {
      result_.row.peak_memory_bytes = std::max<int64_t>(0, *peak - memory_before);
    }
  }

  void refuse_allocations() {
    result_.timing.allocations_in_timed_region = step_->allocations_in_timed_region();
    if (result_.timing.allocations_in_timed_region == 0) return;
    set_status(Status::failed, fmt::format("the timed region made {} allocations; a step must make none",
                                           result_.timing.allocations_in_timed_region));
  }

  void flag(const std::string& name) {
    std::vector<std::string>& flags = result_.timing.flags;
    if (std::find(flags.begin(), flags.end(), name) == flags.end()) flags.push_back(name);
  }
  double now() { return device_.clock().now_seconds(); }

  const PlannedPoint& planned_;
  const Config& config_;
  Device& device_;
  const ProbeFunction& probe_;
  const bool steady_;  ///< real hardware: probes and counters of the system mean something
  const WorkloadDescriptor* descriptor_ = nullptr;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<BufferSets> buffers_;
  std::unique_ptr<TimedStep> step_;
  std::vector<int> cpus_;
  double estimate_ = 0;  ///< seconds of one timing
  PointMeasurement result_;
};

}  // namespace

class HeldPoint::State : public PointRun {
 public:
  using PointRun::PointRun;
};

HeldPoint::HeldPoint(const PlannedPoint& point, const Config& config, const WorkloadCatalog& catalog, Device& device)
    : state_(std::make_unique<State>(point, config, catalog, device, 0, no_probe_)) {}
HeldPoint::~HeldPoint() = default;
const PointMeasurement& HeldPoint::open(const HoldOptions& options) {
  return state_->open(options);
}
std::vector<double> HeldPoint::take(int timings) {
  return state_->take(timings);
}
const PointMeasurement& HeldPoint::measurement() const {
  return state_->result();
}
double HeldPoint::timing_seconds() const {
  return state_->timing_seconds();
}

PointMeasurement measure_point(const PlannedPoint& point, const Config& config, const WorkloadCatalog& catalog,
                               Device& device, int process, const ProbeFunction& probe) {
  return PointRun(point, config, catalog, device, process, probe).run();
}

}  // namespace dlbench
