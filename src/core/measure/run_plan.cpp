// The whole plan over worker processes: order, budgets, what to do after a crash, and the file that grows. See
// runner.h.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <set>

#include "core/analysis/statistics.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "core/measure/gbench.h"
#include "core/measure/host_counters.h"
#include "core/measure/point_rows.h"
#include "core/measure/probes.h"
#include "core/measure/result_file.h"
#include "core/measure/runner.h"
#include "core/measure/worker_process.h"
#include "core/result/environment.h"
#include "core/result/result_io.h"

namespace dlbench {

namespace {

constexpr double kReadySeconds = 120;  // a worker that says nothing for so long after its start is ended
constexpr double kControlSeconds = 120;
constexpr double kPollSeconds = 0.1;  // how soon a signal is noticed
constexpr int kFailedStarts = 2;      // in a row: then no worker will start
constexpr int kLossesPerDevice = 2;   // in a row, each in a fresh worker: then the device is gone

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ProbeValues probe_from_json(const Json& json) {
  return {.ping_pong_seconds = json.at("ping_pong_seconds").get<double>(),
          .fma_flop_per_s = json.at("fma_flop_per_s").get<double>()};
}

/// The config without what may change when an interrupted run goes on.
Json comparable(Json config) {
  for (const char* pointer : {"/measure/time_budget_seconds", "/time_budget_seconds"}) {
    const Json::json_pointer p(pointer);
    if (config.contains(p)) config[p.parent_pointer()].erase(p.back());
  }
  return config;
}

/// What came of waiting for a worker.
enum class Wait : uint8_t { answered, ended, timed_out, interrupted };

class PlanRun {
 public:
  PlanRun(const Plan& plan, const WorkloadCatalog& catalog, Registry& registry, const RunOptions& options,
          Observer& observer)
      : plan_(plan), catalog_(catalog), options_(options), observer_(observer), file_(options.output) {
    result_.partial = true;
    result_.tool = tool_record();
    result_.environment = environment_record(registry);
    result_.config = plan.config.merged;
    const std::string started = utc_now();
    result_.run = {{"id", fmt::format("{}-{}", started, ::getpid())},
                   {"started_utc", started},
                   {"finished_utc", nullptr},
                   {"command_line", options.command_line},
                   {"seed", plan.config.seed},
                   {"processes", plan.config.measure.processes}};
    for (const PlannedPoint& point : plan.points) {
      row_of_[point.key] = result_.points.size();
      result_.points.push_back(planned_row(point, catalog));
    }
  }

  Result run() {
    open_file();
    observer_.on_plan(plan_);
    if (measures_hardware()) {
      for (const std::string& advice : environment_advice(result_.environment)) warn(advice);
    }
    started_ = steady_seconds();
    for (int process = 0; process < plan_.config.measure.processes && !stopping(); ++process) run_process(process);
    finish();
    return std::move(result_);
  }

 private:
  // The file ------------------------------------------------------------------------------------------------------

  void open_file() {
    auto interrupted = options_.resume ? file_.read_interrupted() : std::nullopt;
    if (!interrupted) {
      const std::string note = file_.start(result_);
      if (options_.resume) observer_.on_warning(fmt::format("{} isn't there yet: nothing to resume", options_.output));
      if (!note.empty()) observer_.on_warning(note);
      return;
    }
    take_over(*interrupted);
    file_.resume(result_);
  }

  void take_over(const ResultFile::Interrupted& interrupted) {
    const Result& old = interrupted.result;
    if (comparable(old.config) != comparable(result_.config)) {
      throw UsageError(
          fmt::format("{} can't be resumed: it was measured with another config; use the same config and "
                      "options, or another --output",
                      options_.output));
    }
    if (old.environment.at("fingerprint") != result_.environment.at("fingerprint")) {
      throw UsageError(fmt::format(
          "{} can't be resumed: it was measured on another machine or with other devices "
          "(environment fingerprint {}, here {}); use another --output",
          options_.output, old.environment.at("fingerprint").dump(), result_.environment.at("fingerprint").dump()));
    }
    result_.run = old.run;
    result_.run["resumed_utc"] = utc_now();
    result_.timings = old.timings;
    result_.controls = old.controls;
    result_.processes = old.processes;
    result_.warnings = old.warnings;
    for (const TimingRow& row : old.timings) done_.insert({row.key, row.process});
    for (const PointRow& row : old.points) {
      if (const auto at = row_of_.find(row.key); at != row_of_.end()) merge_row(result_.points[at->second], row);
    }
    for (const Json& answer : interrupted.journal) absorb(answer, false);
  }

  void finish() {
    label();
    result_.partial = incomplete();
    result_.run["finished_utc"] = utc_now();
    file_.finish(result_);
    if (!options_.gbench_out.empty()) write_google_benchmark_json(result_, options_.gbench_out);
  }

  bool measures_hardware() const {
    return std::any_of(result_.points.begin(), result_.points.end(),
                       [](const PointRow& row) { return row.status == Status::skipped && row.device_kind != "meta"; });
  }

  /// Whether a point that could be measured lacks a process.
  bool incomplete() const {
    for (const PointRow& row : result_.points) {
      if (row.status == Status::skipped) return true;
      if (row.status != Status::ok) continue;
      for (int p = 0; p < plan_.config.measure.processes; ++p) {
        if (!done_.contains({row.key, p})) return true;
      }
    }
    return false;
  }

  /// Enters one answer of a worker; also used for what a journal holds.
  void absorb(const Json& answer, bool fresh) {
    const int process = answer.at("process").get<int>();
    if (answer.at("type") == "controls") {
      absorb_controls(answer, process);
    } else {
      const PointRow learnt = point_row_from_json(answer.at("row"), "an answer of the worker", "/row");
      const auto at = row_of_.find(learnt.key);
      if (at == row_of_.end()) return;
      merge_row(result_.points[at->second], learnt);
      if (!answer.at("timing").is_null() && done_.insert({learnt.key, process}).second) {
        result_.timings.push_back(timing_row_from_json(answer.at("timing"), "an answer of the worker", "/timing"));
      }
    }
    if (!fresh) return;
    file_.append(answer);
    if (answer.at("type") == "point") {
      label();
      file_.update(result_);
    }
  }

  void absorb_controls(const Json& answer, int process) {
    const ProbedBlock block{probe_from_json(answer.at("before")), probe_from_json(answer.at("after"))};
    for (const Json& json : answer.at("rows")) {
      ControlRow row{.process = process,
                     .name = json.at("name"),
                     .position = json.at("position"),
                     .device = json.at("device"),
                     .seconds = json.at("seconds"),
                     .placement = "unknown"};
      control_blocks_[{process, row.position}] = block;
      result_.controls.push_back(std::move(row));
    }
  }

  /// Labels every block and control from the probes of the whole run so far.
  void label() {
    std::vector<ProbedBlock> blocks;
    for (const TimingRow& row : result_.timings) {
      for (size_t b = 0; b < row.placement.size(); ++b) {
        blocks.push_back({{row.ping_pong_before_seconds[b], row.fma_before_flop_per_s[b]},
                          {row.ping_pong_after_seconds[b], row.fma_after_flop_per_s[b]}});
      }
    }
    for (const auto& [key, block] : control_blocks_) blocks.push_back(block);
    const Placements placements = label_placements(blocks);
    size_t next = 0;
    for (TimingRow& row : result_.timings) {
      for (std::string& placement : row.placement) placement = placements.label[next++];
    }
    std::map<std::pair<int, std::string>, std::string> control_labels;
    for (const auto& [key, block] : control_blocks_) control_labels[key] = placements.label[next++];
    for (ControlRow& row : result_.controls) {
      const auto found = control_labels.find({row.process, row.position});
      if (found != control_labels.end()) row.placement = found->second;
    }
    for (ProcessRow& row : result_.processes) row.placement_threshold_seconds = placements.ping_pong_threshold_seconds;
  }

  // One process ---------------------------------------------------------------------------------------------------

  void run_process(int process) {
    process_ = process;
    const std::vector<size_t> order = pending_points();
    if (order.empty()) return;
    const double start = steady_seconds();
    const HostCounters counters = read_host_counters();
    failed_starts_ = 0;
    for (size_t i = 0; i < order.size() && !stopping(); ++i) {
      if (!is_open(order[i])) continue;
      if (i == 0) controls("start");
      if (i == order.size() / 2 && i > 0) controls("middle");
      if (!stopping()) measure(plan_.points[order[i]]);
    }
    if (worker_ && !interrupted()) controls("end");
    end_worker();
    ProcessRow& now = process_row();
    now.elapsed_seconds += steady_seconds() - start;
    const HostCounters spent = difference(counters, read_host_counters());
    add(now.steal_seconds, spent.steal_seconds);
    add(now.cgroup_throttled_seconds, spent.cgroup_throttled_seconds);
    if (interrupted()) now.exit = "interrupted";
  }

  static void add(std::optional<double>& sum, const std::optional<double>& value) {
    if (value) sum = sum.value_or(0) + *value;
  }

  ProcessRow& process_row() {
    for (ProcessRow& row : result_.processes) {
      if (row.process == process_) return row;
    }
    ProcessRow row;
    row.process = process_;
    row.started_utc = utc_now();
    row.workers = 0;
    row.exit = "ok";
    result_.processes.push_back(std::move(row));
    return result_.processes.back();
  }

  /// Points that this process still has to measure, in a random order that follows from the seed and the process.
  std::vector<size_t> pending_points() const {
    std::vector<size_t> order;
    for (size_t i = 0; i < plan_.points.size(); ++i) {
      if (is_open(i) && !done_.contains({plan_.points[i].key, process_})) order.push_back(i);
    }
    const uint64_t stream = 0x6F72646572ull + static_cast<uint64_t>(process_);
    for (size_t i = order.size(); i > 1; --i) {  // Fisher-Yates
      std::swap(order[i - 1], order[uniform_index(plan_.config.seed, stream, i, static_cast<uint32_t>(i))]);
    }
    return order;
  }

  /// A point that failed in one process isn't tried again in the next: it would cost its time once more.
  bool is_open(size_t point) const {
    const Status status = result_.points[point].status;
    return status == Status::ok || status == Status::skipped;
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
    absorb(answer, true);
    const PointRow& row = result_.points[row_of_[point.key]];
    note_losses(point, parse_status(answer.at("row").at("status").get<std::string>()));
    PointProgress done = progress(point.key);
    done.status = row.status;
    done.reason = row.reason;
    if (!answer.at("timing").is_null()) done.seconds_per_step = median(result_.timings.back().wall_seconds);
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
    absorb(answer, true);
  }

  /// A lost device often is lost for its process only: a fresh worker gets one more try, then its points are given up.
  void note_losses(const PlannedPoint& point, Status status) {
    const std::string& device = point.point.device();
    if (status == Status::ok) losses_[device] = 0;
    if (status != Status::device_lost) return;
    lose_worker();
    if (++losses_[device] < kLossesPerDevice) return;
    for (const PlannedPoint& other : plan_.points) {
      PointRow& row = result_.points[row_of_[other.key]];
      if (other.point.device() != device || row.status != Status::skipped) continue;
      row.status = Status::device_lost;
      row.reason = fmt::format("the device was lost {} times in a row, last at {}", losses_[device], point.key);
    }
  }

  void controls(const std::string& position) {
    if (!start_worker()) return;
    worker_->send({{"do", "controls"}, {"position", position}});
    Json answer;
    switch (wait(kControlSeconds, answer)) {
      case Wait::answered:
        answer["process"] = process_;
        absorb(answer, true);
        return;
      case Wait::interrupted:
        worker_.reset();
        return;
      case Wait::timed_out:
        warn(fmt::format("control kernels at the {} of process {} took too long", position, process_));
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
      ++process_row().workers;
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
      if (!worker_->running()) return Wait::ended;
      if (steady_seconds() >= deadline) return Wait::timed_out;
    }
  }

  void lose_worker() {
    if (!worker_) return;
    if (worker_->running()) worker_->kill();
    if (worker_->how_it_ended() != "ok") process_row().exit = worker_->how_it_ended();
    worker_.reset();
  }

  void end_worker() {
    if (!worker_) return;
    Json answer;
    worker_->send({{"do", "end"}});
    if (!interrupted() && wait(kControlSeconds, answer) == Wait::answered && answer.at("type") == "end") {
      ProcessRow& row = process_row();
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
    for (PointRow& row : result_.points) {
      if (row.status == Status::skipped) row.reason = reason;
    }
    return true;
  }

  void warn(const std::string& sentence) {
    if (std::find(result_.warnings.begin(), result_.warnings.end(), sentence) == result_.warnings.end()) {
      result_.warnings.push_back(sentence);
    }
    observer_.on_warning(sentence);
  }

  PointProgress progress(const std::string& key) {
    PointProgress p;
    p.process = process_;
    p.processes = plan_.config.measure.processes;
    p.key = key;
    size_t open = 0;
    for (size_t i = 0; i < plan_.points.size(); ++i) {
      if (!is_open(i)) continue;
      for (int process = 0; process < p.processes; ++process) {
        ++open;
        p.done += done_.contains({plan_.points[i].key, process}) ? 1 : 0;
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
  ResultFile file_;
  Result result_;
  std::map<std::string, size_t> row_of_;
  std::set<std::pair<std::string, int>> done_;  ///< (key, process) with timings
  std::map<std::pair<int, std::string>, ProbedBlock> control_blocks_;
  std::map<std::string, int> losses_;
  std::unique_ptr<WorkerProcess> worker_;
  int process_ = 0, failed_starts_ = 0;
  std::string start_error_;
  double started_ = 0;
  size_t measured_ = 0;
};

}  // namespace

Result run_plan(const Plan& plan, const WorkloadCatalog& catalog, Registry& registry, const RunOptions& options,
                Observer& observer) {
  return PlanRun(plan, catalog, registry, options, observer).run();
}

}  // namespace dlbench
