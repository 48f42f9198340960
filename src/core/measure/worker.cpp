#include "core/measure/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/base/usable_cpus.h"
#include "core/measure/controls.h"
#include "core/measure/host_counters.h"
#include "core/measure/point_rows.h"
#include "core/measure/probes.h"
#include "core/result/environment.h"
#include "core/result/result_io.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dlbench {

namespace {

constexpr double kProbeIdleSeconds = 0.04;  // OpenBLAS workers spin for 25 ms

/// Denormal numbers count as zero, in this thread and in all that it starts: one denormal slows a CPU loop a
/// hundredfold.
void flush_denormals() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // FTZ (bit 15) and DAZ (bit 6), Intel SDM vol. 1, 10.2.3
#elif defined(__aarch64__)
  uint64_t fpcr = 0;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  asm volatile("msr fpcr, %0" ::"r"(fpcr | (uint64_t{1} << 24)));  // FZ
#endif
}

/// Lines from a descriptor.
class LineReader {
 public:
  explicit LineReader(int descriptor) : descriptor_(descriptor) {}
  /// False at the end of the input.
  bool next(std::string& line) {
    for (;;) {
      const size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return true;
      }
      char piece[1 << 16];
      const ssize_t n = ::read(descriptor_, piece, sizeof piece);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      buffer_.append(piece, static_cast<size_t>(n));
    }
  }

 private:
  int descriptor_;
  std::string buffer_;
};

void write_line(int descriptor, const Json& message) {
  const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(descriptor, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error("the worker can't answer: the program that started it is gone");
    done += static_cast<size_t>(n);
  }
}

Json to_json(const ProbeValues& values) {
  return {{"ping_pong_seconds", values.ping_pong_seconds}, {"fma_flop_per_s", values.fma_flop_per_s}};
}

class Worker {
 public:
  Worker(const Json& job, int out, const WorkloadCatalog& catalog)
      : out_(out),
        catalog_(catalog),
        process_(job.at("process").get<int>()),
        config_(parse_config(job.at("config"), job.at("origin").get<std::string>(), {}, catalog)) {
    config_.meta.seed += static_cast<uint64_t>(process_);
    registry_ = std::make_unique<Registry>(Registry::Options{.search_path = {}, .meta = config_.meta});
    plan_ = make_plan(config_, catalog_, *registry_);
    for (const PlannedPoint& point : plan_.points) by_key_[point.key] = &point;
  }

  void point(const std::string& key) {
    const PointMeasurement measurement = measure(planned_point(key));
    Json message = {{"type", "point"}, {"row", dlbench::to_json(measurement.row)}, {"timing", nullptr}};
    if (!measurement.timing.wall_seconds.empty()) message["timing"] = dlbench::to_json(measurement.timing);
    write_line(out_, message);
  }

  void plan() {
    Json points = Json::array();
    for (const PlannedPoint& point : plan_.points) {
      points.push_back({{"key", point.key}, {"status", to_string(point.status)}, {"reason", point.reason}});
    }
    write_line(out_, {{"type", "plan"}, {"tool", tool_record()}, {"points", points}});
  }

  void open(const Json& command) {
    held_.reset();
    const std::string key = command.at("key").get<std::string>();
    const PlannedPoint& planned = planned_point(key);
    PointMeasurement opened;
    double timing_seconds = 0;
    try {
      held_ = std::make_unique<HeldPoint>(planned, config_, catalog_,
                                          device(planned.point.device(), threads_of(planned.point)));
      opened = held_->open({.verify = command.at("verify").get<bool>(),
                            .steps_per_timing = command.at("steps_per_timing").get<int64_t>()});
      timing_seconds = held_->timing_seconds();
    } catch (const std::exception& error) {
      opened = without_device(planned, error);
    }
    write_line(out_, {{"type", "open"},
                      {"status", to_string(opened.status)},
                      {"reason", opened.reason},
                      {"steps_per_timing", opened.timing.steps_per_timing},
                      {"timing_seconds", timing_seconds}});
  }

  void take(int timings) {
    if (!held_) throw Error("the worker has no open point to time");
    const std::vector<double> seconds = held_->take(timings);
    const PointMeasurement& measurement = held_->measurement();
    write_line(out_, {{"type", "take"},
                      {"status", to_string(measurement.status)},
                      {"reason", measurement.reason},
                      {"wall_seconds", seconds}});
  }

  void close() {
    held_.reset();
    write_line(out_, {{"type", "close"}});
  }

  void probe() {
    if (measures_hardware()) wait_until_idle(kProbeIdleSeconds);
    const ProbeValues values = measures_hardware() ? run_probes(usable_cpus().affinity) : ProbeValues{};
    write_line(out_, {{"type", "probe"}, {"values", to_json(values)}});
  }

  void controls(const std::string& position) {
    std::vector<int> cpus = usable_cpus().affinity;
    const bool real = measures_hardware();
    const ProbeValues before = real ? run_probes(cpus) : ProbeValues{};
    Json rows = Json::array();
    for (const std::string& id : measured_devices()) {
      for (const ControlRow& row : run_controls(device(id, 0), position, process_)) {
        rows.push_back(
            {{"name", row.name}, {"position", row.position}, {"device", row.device}, {"seconds", row.seconds}});
      }
    }
    if (real) wait_until_idle(kProbeIdleSeconds);
    const ProbeValues after = real ? run_probes(cpus) : ProbeValues{};
    write_line(out_, {{"type", "controls"}, {"rows", rows}, {"before", to_json(before)}, {"after", to_json(after)}});
  }

 private:
  PointMeasurement measure(const PlannedPoint& point) {
    try {
      return measure_point(point, config_, catalog_, device(point.point.device(), threads_of(point.point)), process_);
    } catch (const std::exception& error) {
      return without_device(point, error);
    }
  }

  /// The device itself can't be made.
  PointMeasurement without_device(const PlannedPoint& point, const std::exception& error) {
    PointMeasurement failed;
    failed.row = planned_row(point, catalog_);
    failed.row.status = dynamic_cast<const OutOfMemoryError*>(&error)    ? Status::out_of_memory
                        : dynamic_cast<const DeviceAbsentError*>(&error) ? Status::unsupported
                        : dynamic_cast<const DeviceLostError*>(&error)   ? Status::device_lost
                                                                         : Status::failed;
    failed.row.reason = error.what();
    failed.status = failed.row.status;
    failed.reason = failed.row.reason;
    return failed;
  }

  const PlannedPoint& planned_point(const std::string& key) const {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) throw Error(fmt::format("the worker's plan has no point {}", key));
    return *found->second;
  }

  bool measures_hardware() const {
    return std::any_of(plan_.points.begin(), plan_.points.end(),
                       [](const PlannedPoint& p) { return p.point.device().rfind("meta", 0) != 0; });
  }

  int threads_of(const Point& point) const {
    const AxisValue* threads = point.find("threads");
    return threads ? static_cast<int>(std::get<int64_t>(*threads)) : config_.threads;
  }

  std::set<std::string> measured_devices() const {
    std::set<std::string> ids;
    for (const PlannedPoint& point : plan_.points) {
      if (point.status == Status::ok) ids.insert(point.point.device());
    }
    return ids;
  }

  Device& device(const std::string& id, int threads) {
    std::unique_ptr<Device>& entry = devices_[{id, threads}];
    if (!entry) entry = registry_->create(id, {.threads = threads});
    return *entry;
  }

  int out_;
  const WorkloadCatalog& catalog_;
  int process_;
  Config config_;
  std::unique_ptr<Registry> registry_;
  Plan plan_;
  std::map<std::string, const PlannedPoint*> by_key_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Device>> devices_;
  std::unique_ptr<HeldPoint> held_;
};

}  // namespace

int run_worker(int in, int out, const WorkloadCatalog& catalog) {
  flush_denormals();
  LineReader commands(in);
  std::string line;
  if (!commands.next(line)) throw Error("`dlbench worker` is started by `dlbench run`, which tells it what to do");
  Worker worker(parse_json(line, "the worker's job"), out, catalog);
  write_line(out, {{"type", "ready"}});
  while (commands.next(line)) {
    const Json command = parse_json(line, "a command to the worker");
    const std::string what = command.at("do").get<std::string>();
    if (what == "point") {
      worker.point(command.at("key").get<std::string>());
    } else if (what == "controls") {
      worker.controls(command.at("position").get<std::string>());
    } else if (what == "plan") {
      worker.plan();
    } else if (what == "open") {
      worker.open(command);
    } else if (what == "take") {
      worker.take(command.at("timings").get<int>());
    } else if (what == "close") {
      worker.close();
    } else if (what == "probe") {
      worker.probe();
    } else if (what == "end") {
      Json message = {{"type", "end"}, {"peak_resident_bytes", nullptr}};
      if (const auto peak = peak_resident_bytes()) message["peak_resident_bytes"] = *peak;
      write_line(out, message);
      return 0;
    } else {
      throw Error(fmt::format("the worker knows no command {}", what));
    }
  }
  return 0;
}

}  // namespace dlbench
