#include "core/measure/run_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/measure/gbench.h"
#include "core/measure/point_rows.h"
#include "core/result/environment.h"
#include "core/result/result_io.h"

namespace dlbench {

namespace {

constexpr const char* kUnfinished = "unfinished";

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

}  // namespace

RunRecord::RunRecord(const Plan& plan, const WorkloadCatalog& catalog, Registry& registry, const RunOptions& options)
    : plan_(plan), options_(options), file_(options.output) {
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

std::vector<std::string> RunRecord::open() {
  std::vector<std::string> notes;
  if (!options_.gbench_out.empty()) {
    require_writable("--gbench-out", options_.gbench_out);
    if (options_.output != "-" && same_file(options_.gbench_out, options_.output)) {
      throw UsageError(
          fmt::format("--gbench-out {}: this is the result file of --output; name another one", options_.gbench_out));
    }
  }
  const auto interrupted = options_.resume ? file_.read_interrupted() : std::nullopt;
  if (interrupted) {
    const std::string problem = take_over(*interrupted);
    if (!problem.empty()) {
      notes.push_back(fmt::format("{}; what is behind that is measured again", problem));
    }
    file_.resume(result_);
    return notes;
  }
  const std::string moved = file_.start(result_);
  if (options_.resume) notes.push_back(fmt::format("{} isn't there yet: nothing to resume", options_.output));
  if (!moved.empty()) notes.push_back(moved);
  return notes;
}

std::string RunRecord::take_over(const ResultFile::Interrupted& interrupted) {
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
  for (const TimingRow& row : old.timings) measured_.insert({row.key, row.process});
  for (const PointRow& row : old.points) {
    if (const auto at = row_of_.find(row.key); at != row_of_.end()) merge_row(result_.points[at->second], row);
  }
  for (const Json& answer : interrupted.journal) {
    try {
      enter(answer);
    } catch (const Json::exception&) {
      return fmt::format("{}.journal holds a line that no worker wrote", options_.output);
    } catch (const InputError& e) {
      return fmt::format("{}.journal: {}", options_.output, e.what());
    }
  }
  return interrupted.problem;
}

Result RunRecord::finish() {
  label();
  result_.partial = incomplete();
  result_.run["finished_utc"] = utc_now();
  file_.finish(result_);
  if (!options_.gbench_out.empty()) write_google_benchmark_json(result_, options_.gbench_out);
  return std::move(result_);
}

bool RunRecord::measures_hardware() const {
  return std::any_of(result_.points.begin(), result_.points.end(),
                     [](const PointRow& row) { return row.status == Status::skipped && row.device_kind != "meta"; });
}

/// Whether a point that could be measured lacks a process.
bool RunRecord::incomplete() const {
  for (const PointRow& row : result_.points) {
    if (row.status == Status::skipped) return true;
    if (row.status != Status::ok) continue;
    for (int p = 0; p < plan_.config.measure.processes; ++p) {
      if (!measured_.contains({row.key, p})) return true;
    }
  }
  return false;
}

bool RunRecord::is_open(size_t point) const {
  const Status status = result_.points[point].status;
  return status == Status::ok || status == Status::skipped;
}

bool RunRecord::is_measured(size_t point, int process) const {
  return measured_.contains({result_.points[point].key, process});
}

void RunRecord::explain_skipped(const std::string& reason) {
  for (PointRow& row : result_.points) {
    if (row.status == Status::skipped) row.reason = reason;
  }
}

void RunRecord::warn(const std::string& sentence) {
  if (std::find(result_.warnings.begin(), result_.warnings.end(), sentence) == result_.warnings.end()) {
    result_.warnings.push_back(sentence);
  }
}

void RunRecord::absorb(const Json& answer) {
  enter(answer);
  file_.append(answer);
  if (answer.at("type") != "point") return;
  label();
  file_.update(result_);
}

void RunRecord::enter(const Json& answer) {
  const int process = answer.at("process").get<int>();
  if (answer.at("type") == "controls") return enter_controls(answer, process);
  const PointRow learnt = point_row_from_json(answer.at("row"), "an answer of the worker", "/row");
  const auto at = row_of_.find(learnt.key);
  if (at == row_of_.end()) return;
  merge_row(result_.points[at->second], learnt);
  if (!answer.at("timing").is_null() && measured_.insert({learnt.key, process}).second) {
    result_.timings.push_back(timing_row_from_json(answer.at("timing"), "an answer of the worker", "/timing"));
  }
}

void RunRecord::enter_controls(const Json& answer, int process) {
  const ProbedBlock block{probe_from_json(answer.at("before")), probe_from_json(answer.at("after"))};
  for (const Json& json : answer.at("rows")) {
    ControlRow row{.process = process,
                   .name = json.at("name"),
                   .position = json.at("position"),
                   .device = json.at("device"),
                   .seconds = json.at("seconds"),
                   .placement = "unknown"};
    control_blocks_[{process, row.position}] = block;
    const bool known = std::any_of(result_.controls.begin(), result_.controls.end(), [&row](const ControlRow& other) {
      return other.process == row.process && other.name == row.name && other.position == row.position &&
             other.device == row.device;
    });
    if (!known) result_.controls.push_back(std::move(row));
  }
}

/// Labels every block and control from the probes of the whole run so far.
void RunRecord::label() {
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

ProcessRow& RunRecord::process_row(int process) {
  for (ProcessRow& row : result_.processes) {
    if (row.process == process) return row;
  }
  ProcessRow row;
  row.process = process;
  row.started_utc = utc_now();
  row.workers = 0;
  row.exit = kUnfinished;
  result_.processes.push_back(std::move(row));
  return result_.processes.back();
}

}  // namespace dlbench
