// RunRecord: the result of a run while it grows: rows of the plan, what workers answered, placement labels, and its
// file.
//
// Why: a fresh answer, one from a journal and one from an interrupted result enter by the same door, so that a resumed
// run ends with what an uninterrupted one has.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/measure/observer.h"
#include "core/measure/probes.h"
#include "core/measure/result_file.h"
#include "core/measure/runner.h"

namespace dlbench {

class RunRecord {
 public:
  RunRecord(const Plan& plan, const WorkloadCatalog& catalog, Registry& registry, const RunOptions& options);

  /// Starts the file, or takes over the interrupted one. @returns notes for the person. @throws UsageError, InputError
  std::vector<std::string> open();
  /// Enters an answer of a worker ("point" or "controls", with its "process"), journals it and updates the file.
  void absorb(const Json& answer);
  /// Labels, completes and writes everything. @returns the result
  Result finish();

  /// A point that failed in one process isn't tried again in the next: it would cost its time once more.
  bool is_open(size_t point) const;
  bool is_measured(size_t point, int process) const;
  PointRow& row(const std::string& key) { return result_.points[row_of_.at(key)]; }
  const TimingRow& last_timing() const { return result_.timings.back(); }
  ProcessRow& process_row(int process);
  /// Says in every row that wasn't reached why.
  void explain_skipped(const std::string& reason);
  /// A warning that isn't there yet.
  void warn(const std::string& sentence);
  bool measures_hardware() const;
  const Json& environment() const { return result_.environment; }

 private:
  /// Returns what of it couldn't be read, "" for nothing.
  std::string take_over(const ResultFile::Interrupted& interrupted);
  void enter(const Json& answer);
  void enter_controls(const Json& answer, int process);
  void label();
  bool incomplete() const;

  const Plan& plan_;
  const RunOptions& options_;
  ResultFile file_;
  Result result_;
  std::map<std::string, size_t> row_of_;
  std::set<std::pair<std::string, int>> measured_;                     ///< (key, process) with timings
  std::map<std::pair<int, std::string>, ProbedBlock> control_blocks_;  ///< (process, position)
};

}  // namespace dlbench
