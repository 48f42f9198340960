// merge_results: several machines in one report.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/result/placement.h"
#include "core/result/result_io.h"

namespace dlbench {

namespace {

using TimingIndex = std::unordered_map<std::string_view, std::vector<const TimingRow*>>;

TimingIndex index_timings(const Result& result) {
  TimingIndex index;
  for (const TimingRow& row : result.timings) index[row.key].push_back(&row);
  return index;
}

/// Where the row of a key comes from.
struct Choice {
  size_t file = 0;
  size_t point = 0;
};

bool same_measurement(const Result& a, const PointRow& x, const TimingIndex& ta, const Result& b, const PointRow& y,
                      const TimingIndex& tb) {
  if (&a == &b) return false;  // twice in one file is a clash even when equal
  if (to_json(x) != to_json(y)) return false;
  const auto i = ta.find(x.key), j = tb.find(y.key);
  if (i == ta.end() || j == tb.end()) return i == ta.end() && j == tb.end();
  return std::equal(i->second.begin(), i->second.end(), j->second.begin(), j->second.end(),
                    [](const TimingRow* p, const TimingRow* q) { return p->wall_seconds == q->wall_seconds; });
}

[[noreturn]] void clash(const std::string& key, const std::string& first, const std::string& second) {
  if (first == second)
    throw InputError(
        fmt::format("{}: the point {} has two rows; the file is not a result as dlbench writes it", first, key));
  throw InputError(
      fmt::format("{} and {} both measured {}; say whose measurement counts with --prefer {} or --prefer {}", first,
                  second, key, first, second));
}

std::string fingerprint_of(const Result& result) {
  const auto it = result.environment.find("fingerprint");
  return it != result.environment.end() && it->is_string() ? it->get<std::string>() : "";
}

void append_processes(Result& merged, const Result& result, const std::unordered_set<std::string_view>& taken,
                      int first_process) {
  for (TimingRow row : result.timings) {
    if (!taken.contains(row.key)) continue;
    row.process += first_process;
    merged.timings.push_back(std::move(row));
  }
  for (ControlRow row : result.controls) {
    row.process += first_process;
    merged.controls.push_back(std::move(row));
  }
  for (ProcessRow row : result.processes) {
    row.process += first_process;
    merged.processes.push_back(std::move(row));
  }
}

int processes_of(const Result& result) {
  int count = 0;
  for (const TimingRow& row : result.timings) count = std::max(count, row.process + 1);
  for (const ProcessRow& row : result.processes) count = std::max(count, row.process + 1);
  return count;
}

std::unordered_map<std::string_view, Choice> choose(const std::vector<Result>& results,
                                                    const std::vector<std::string>& origins,
                                                    const std::string& preferred) {
  std::vector<TimingIndex> timings;
  for (const Result& result : results) timings.push_back(index_timings(result));
  std::unordered_map<std::string_view, Choice> chosen;
  for (size_t f = 0; f < results.size(); ++f) {
    for (size_t p = 0; p < results[f].points.size(); ++p) {
      const PointRow& row = results[f].points[p];
      const auto [it, fresh] = chosen.try_emplace(row.key, Choice{f, p});
      if (fresh) continue;
      Choice& old = it->second;
      const PointRow& other = results[old.file].points[old.point];
      if (old.file == f) clash(row.key, origins[f], origins[f]);
      const bool both = row.status == Status::ok && other.status == Status::ok;
      if (both && origins[old.file] == preferred) continue;
      if (both && origins[f] == preferred) {
        old = {f, p};
      } else if (both && !same_measurement(results[old.file], other, timings[old.file], results[f], row, timings[f])) {
        clash(row.key, origins[old.file], origins[f]);
      } else if (row.status == Status::ok && other.status != Status::ok) {
        old = {f, p};
      }
    }
  }
  return chosen;
}

}  // namespace

Result merge_results(const std::vector<Result>& given, const std::vector<std::string>& origins,
                     const std::string& preferred) {
  if (given.empty() || given.size() != origins.size()) throw Error("merge_results: every result needs its origin");
  if (!preferred.empty() && std::find(origins.begin(), origins.end(), preferred) == origins.end()) {
    throw UsageError(fmt::format("--prefer {}: is none of the files given", preferred));
  }
  if (given.size() == 1) return given.front();
  std::vector<Result> results = given;
  relabel_together(results);
  const auto chosen = choose(results, origins, preferred);
  Result merged;
  merged.tool = results.front().tool;
  merged.run = results.front().run;
  merged.config = results.front().config;
  Json machines = Json::array();
  std::string fingerprint;
  int first_process = 0;
  for (size_t f = 0; f < results.size(); ++f) {
    const Result& result = results[f];
    std::unordered_set<std::string_view> taken;
    for (size_t p = 0; p < result.points.size(); ++p) {
      const Choice choice = chosen.at(result.points[p].key);
      if (choice.file != f || choice.point != p) continue;
      taken.insert(result.points[p].key);
      merged.points.push_back(result.points[p]);
      merged.points.back().source = origins[f];
    }
    append_processes(merged, result, taken, first_process);
    first_process += processes_of(result);
    merged.partial = merged.partial || result.partial;
    for (const std::string& w : result.warnings) merged.warnings.push_back(origins[f] + ": " + w);
    fingerprint += (f ? " + " : "") + fingerprint_of(result);
    machines.push_back({{"source", origins[f]},
                        {"tool", result.tool},
                        {"run", result.run},
                        {"environment", result.environment},
                        {"config", result.config}});
  }
  merged.environment = {{"fingerprint", fingerprint}, {"machines", std::move(machines)}};
  return merged;
}

}  // namespace dlbench
