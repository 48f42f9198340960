// The whole plan over worker processes: order, budgets, what to do after a crash, and the file that grows. See
// runner.h.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <thread>

#include "core/analysis/statistics.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "core/measure/host_counters.h"
#include "core/measure/point_rows.h"
#include "core/measure/run_record.h"
#include "core/measure/runner.h"
#include "core/measure/worker_process.h"
#include "core/result/environment.h"
#include "core/result/result_io.h"

namespace dlbench {

namespace {

constexpr double kReadySeconds = 120;    // a worker that says nothing for so long after its start is ended
constexpr double kControlSeconds = 120;  // or what a point may take, if that is less
constexpr double kOwnSignalSeconds = 0.25;
constexpr double kPollSeconds = 0.1;  // how soon a signal is noticed
constexpr int kFailedStarts = 2;      // in a row: then no worker will start
constexpr int kLossesPerDevice = 2;   // in a row, each in a fresh worker: then the device is gone

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What came of waiting for a worker.
enum class Wait : uint8_t { answered, ended, timed_out, interrupted };

class PlanRun {
 public:
  PlanRun(const Plan& plan, const WorkloadCatalog& catalog, Registry& registry, const RunOptions& options,
          Observer& observer)
      : plan_(plan),
        catalog_(catalog),
        options_(options),
        observer_(observer),
        record_(plan, catalog, registry, options) {}

  Result run() {
    for (const std::string& note : record_.open()) observer_.on_warning(note);
    observer_.on_plan(plan_);
    if (record_.measures_hardware()) {
      for (const std::string& advice : environment_advice(record_.environment())) warn(advice);
    }
    started_ = steady_seconds();
    for (int process = 0; process < plan_.config.measure.processes && !stopping(); ++process) run_process(process);
    return record_.finish();
  }

 private:
  // One process ---------------------------------------------------------------------------------------------------

  void run_process(int process) {
    process_ = process;
    const std::vector<size_t> order = pending_points();
    if (order.empty()) return;
    const double start = steady_seconds();
    const HostCounters counters = read_host_counters();
    failed_starts_ = 0;
    for (size_t i = 0; i < order.size() && !stopping(); ++i) {
      if (!record_.is_open(order[i])) continue;
      if (i == 0) controls("start");
      if (i == order.size() / 2 && i > 0) controls("middle");
      if (!stopping()) measure(plan_.points[order[i]]);
    }
    if (worker_ && !interrupted()) controls("end");
    end_worker();
    ProcessRow& now = record_.process_row(process_);
    now.elapsed_seconds += steady_seconds() - start;
    const HostCounters spent = difference(counters, read_host_counters());
    add(now.steal_seconds, spent.steal_seconds);
    add(now.cgroup_throttled_seconds, spent.cgroup_throttled_seconds);
    if (interrupted()) {
      now.exit = "interrupted";
    } else if (now.exit == "unfinished" || now.exit == "interrupted") {
      now.exit = "ok";
    }
  }

  static void add(std::optional<double>& sum, const std::optional<double>& value) {
    if (value) sum = sum.value_or(0) + *value;
  }

  /// Points that this process still has to measure, in a random order that follows from the seed and the process.
  std::vector<size_t> pending_points() const {
    std::vector<size_t> order;
    for (size_t i = 0; i < plan_.points.size(); ++i) {
      if (record_.is_open(i) && !record_.is_measured(i, process_)) order.push_back(i);
    }
    const uint64_t stream = 0x6F72646572ull + static_cast<uint64_t>(process_);
    for (size_t i = order.size(); i > 1; --i) {  // Fisher-Yates
      std::swap(order[i - 1], order[uniform_index(plan_.config.seed, stream, i, static_cast<uint32_t>(i))]);
    }
    return order;
  }

  void measure(const PlannedPoint& point) {
    if (!start_worker()) return fail_without_worker(point);
    observer_.on_point_start(progress(point.key));
    worker_->send({{"do", "point"}, {"key", point.key}});
    Json answer;
    const double limit = plan_.config.measure.point_timeout_seconds;
    switch (wait(limit, answer)) {
      case Wait::answered:
        break;
      case Wait::interrupted:
        worker_.reset();
        return;
      case Wait::timed_out:
        lose_worker();
        answer =
            failure(point, Status::timeout,
                    fmt::format("no result after {} s (measure.point_timeout_seconds) in process {}", limit, process_));
        break;
      case Wait::ended:
        answer = failure(point, Status::failed, describe_end());
        lose_worker();
        break;
    }
    answer["process"] = process_;
    record_.absorb(answer);
    const PointRow& row = record_.row(point.key);
    note_losses(point, parse_status(answer.at("row").at("status").get<std::string>()));
    PointProgress done = progress(point.key);
    done.status = row.status;
    done.reason = row.reason;
    if (!answer.at("timing").is_null()) done.seconds_per_step = median(record_.last_timing().wall_seconds);
    ++measured_;
    observer_.on_point_done(done);
  }

  Json failure(const PlannedPoint& point, Status status, const std::string& reason) {
    PointRow row = planned_row(point, catalog_);
    row.status = status;
    row.reason = reason;
    return {{"type", "point"}, {"row", to_json(row)}, {"timing", nullptr}};
  }

  std::string describe_end() const {
    const std::string words = worker_->last_words();
    return fmt::format("its process ended: {}{}", worker_->how_it_ended(), words.empty() ? "" : "; it said: " + words);
  }

  void fail_without_worker(const PlannedPoint& point) {
    if (interrupted()) return;
    Json answer = failure(point, Status::failed, start_error_);
    answer["process"] = process_;
    record_.absorb(answer);
  }

  /// A lost device often is lost for its process only: a fresh worker gets one more try, then its points are given up.
  void note_losses(const PlannedPoint& point, Status status) {
    const std::string& device = point.point.device();
    if (status == Status::ok) losses_[device] = 0;
    if (status != Status::device_lost) return;
    lose_worker();
    if (++losses_[device] < kLossesPerDevice) return;
    for (const PlannedPoint& other : plan_.points) {
      PointRow& row = record_.row(other.key);
      if (other.point.device() != device || row.status != Status::skipped) continue;
      row.status = Status::device_lost;
      row.reason = fmt::format("the device was lost {} times in a row, last at {}", losses_[device], point.key);
    }
  }

  void controls(const std::string& position) {
    if (controls_hang_ || !start_worker()) return;
    worker_->send({{"do", "controls"}, {"position", position}});
    Json answer;
    const double limit = std::min(kControlSeconds, plan_.config.measure.point_timeout_seconds);
    switch (wait(limit, answer)) {
      case Wait::answered:
        answer["process"] = process_;
        record_.absorb(answer);
        return;
      case Wait::interrupted:
        worker_.reset();
        return;
      case Wait::timed_out:
        warn(
            fmt::format("control kernels at the {} of process {} weren't done after {} s; this run goes on without any",
                        position, process_, limit));
        controls_hang_ = true;
        break;
      case Wait::ended:
        warn(fmt::format("control kernels at the {} of process {}: {}", position, process_, describe_end()));
        break;
    }
    lose_worker();
  }

  // The worker ----------------------------------------------------------------------------------------------------

  bool start_worker() {
    if (worker_) return true;
    if (failed_starts_ >= kFailedStarts || interrupted()) return false;
    while (!worker_ && failed_starts_ < kFailedStarts) {
      worker_ = std::make_unique<WorkerProcess>(options_.executable);
      ++record_.process_row(process_).workers;
      worker_->send({{"config", plan_.config.merged}, {"origin", "the config of this run"}, {"process", process_}});
      Json answer;
      const Wait outcome = wait(kReadySeconds, answer);
      if (outcome == Wait::answered) break;
      if (outcome == Wait::interrupted) {
        worker_.reset();
        return false;
      }
      ++failed_starts_;
      start_error_ = outcome == Wait::ended ? "no worker could be started: " + describe_end()
                                            : fmt::format("no worker was ready after {} s", kReadySeconds);
      lose_worker();
    }
    return worker_ != nullptr;
  }

  Wait wait(double seconds, Json& answer) {
    const double deadline = steady_seconds() + seconds;
    for (;;) {
      auto message = worker_->receive(std::min(kPollSeconds, std::max(0.0, deadline - steady_seconds())));
      for (const std::string& line : worker_->take_stderr()) observer_.on_warning("worker: " + line);
      if (message) {
        answer = std::move(*message);
        return Wait::answered;
      }
      if (interrupted()) return Wait::interrupted;
      if (!worker_->running()) return ended_by_our_signal() ? Wait::interrupted : Wait::ended;
      if (steady_seconds() >= deadline) return Wait::timed_out;
    }
  }

  /// `kill -TERM` of a process group (service managers, batch systems) ends the worker; our own copy of the signal may
  /// come a moment later.
  bool ended_by_our_signal() const {
    if (!worker_->ended_by(SIGTERM)) return false;
    const double deadline = steady_seconds() + kOwnSignalSeconds;
    while (!interrupted() && steady_seconds() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return interrupted();
  }

  void lose_worker() {
    if (!worker_) return;
    if (worker_->running()) worker_->kill();
    if (worker_->how_it_ended() != "ok") record_.process_row(process_).exit = worker_->how_it_ended();
    worker_.reset();
  }

  void end_worker() {
    if (!worker_) return;
    Json answer;
    worker_->send({{"do", "end"}});
    if (!interrupted() && wait(kControlSeconds, answer) == Wait::answered && answer.at("type") == "end") {
      ProcessRow& row = record_.process_row(process_);
      if (answer.at("peak_resident_bytes").is_number()) {
        row.peak_resident_bytes =
            std::max(row.peak_resident_bytes.value_or(0), answer.at("peak_resident_bytes").get<int64_t>());
      }
      while (worker_->running() && worker_->receive(kControlSeconds)) {
      }
    }
    lose_worker();
  }

  // Stopping ------------------------------------------------------------------------------------------------------

  bool interrupted() const { return options_.signal && options_.signal->load() != 0; }

  bool stopping() {
    const double budget = plan_.config.measure.time_budget_seconds;
    const bool spent = budget > 0 && steady_seconds() - started_ > budget;
    if (!spent && !interrupted()) return false;
    const std::string reason = interrupted() ? (options_.signal->load() == SIGINT ? "interrupted" : "terminated")
                                             : fmt::format("the time budget of {} s was spent", budget);
    record_.explain_skipped(reason);
    return true;
  }

  void warn(const std::string& sentence) {
    record_.warn(sentence);
    observer_.on_warning(sentence);
  }

  PointProgress progress(const std::string& key) {
    PointProgress p;
    p.process = process_;
    p.processes = plan_.config.measure.processes;
    p.key = key;
    size_t open = 0;
    for (size_t i = 0; i < plan_.points.size(); ++i) {
      if (!record_.is_open(i)) continue;
      for (int process = 0; process < p.processes; ++process) {
        ++open;
        p.done += record_.is_measured(i, process) ? 1 : 0;
      }
    }
    p.total = open;
    p.elapsed_seconds = steady_seconds() - started_;
    const double left = static_cast<double>(open - p.done);
    const double each = measured_ ? p.elapsed_seconds / static_cast<double>(measured_)
                                  : plan_.estimated_seconds / std::max(1.0, static_cast<double>(open));
    p.remaining_seconds = left * each;
    return p;
  }

  const Plan& plan_;
  const WorkloadCatalog& catalog_;
  const RunOptions& options_;
  Observer& observer_;
  RunRecord record_;
  std::map<std::string, int> losses_;
  std::unique_ptr<WorkerProcess> worker_;
  int process_ = 0, failed_starts_ = 0;
  std::string start_error_;
  bool controls_hang_ = false;  ///< each further attempt would cost another timeout
  double started_ = 0;
  size_t measured_ = 0;
};

}  // namespace

Result run_plan(const Plan& plan, const WorkloadCatalog& catalog, Registry& registry, const RunOptions& options,
                Observer& observer) {
  return PlanRun(plan, catalog, registry, options, observer).run();
}

}  // namespace dlbench
