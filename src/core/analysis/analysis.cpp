#include "core/analysis/analysis.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "core/analysis/gates.h"
#include "core/analysis/pairing.h"
#include "core/analysis/roofline.h"
#include "core/analysis/selection.h"
#include "core/base/error.h"

namespace dlbench {

std::string_view to_string(Bound bound) {
  switch (bound) {
    case Bound::compute:
      return "compute";
    case Bound::bandwidth:
      return "bandwidth";
    case Bound::cache:
      return "cache";
    case Bound::launch:
      return "launch";
    case Bound::unknown:
      return "unknown";
  }
  throw Error("to_string: not a bound");
}

std::string_view to_string(Winner winner) {
  switch (winner) {
    case Winner::cpu:
      return "cpu";
    case Winner::gpu:
      return "gpu";
    case Winner::tie:
      return "tie";
  }
  throw Error("to_string: not a winner");
}

namespace {

/// Status, selection of equal placement labels, and the estimate of the step.
AnalyzedPoint start_point(const PointRow& row, const TimingIndex& timings) {
  AnalyzedPoint point;
  point.row = &row;
  point.status = row.status;
  point.reason = row.reason;
  const auto it = timings.find(row.key);
  if (it == timings.end()) return point;
  const PointTimings& of_point = it->second;
  std::set<std::string> flags;
  for (const TimingRow* t : of_point.rows) {
    flags.insert(t->flags.begin(), t->flags.end());
    if (t->stop_reason == "budget_exhausted") flags.insert("budget_exhausted");
    if (t->allocations_in_timed_region > 0) flags.insert("allocates_while_timed");
  }
  point.flags.assign(flags.begin(), flags.end());
  point.placement = of_point.majority_label();
  point.timings_used = of_point.labels.at(point.placement).timings;
  point.timings_left_out = of_point.total - point.timings_used;
  if (row.status != Status::ok) return point;
  point.seconds = of_point.wall(point.placement);
  point.device_seconds = of_point.device(point.placement);
  return point;
}

/// Rates of an `ok` point from its declared work.
void add_rates(AnalyzedPoint& point) {
  if (point.status != Status::ok || !point.seconds) return;
  const PointRow& row = *point.row;
  const Estimate& t = *point.seconds;
  const double bytes = row.bytes_read_per_step + row.bytes_written_per_step;
  if (row.samples_per_step > 0) {
    point.samples_per_s = row.samples_per_step / t.value;
    if (t.high) point.samples_per_s_low = row.samples_per_step / *t.high;
    if (t.low) point.samples_per_s_high = row.samples_per_step / *t.low;
  }
  if (row.flops_per_step > 0) point.achieved_flop_per_s = row.flops_per_step / t.value;
  if (bytes > 0) point.achieved_bytes_per_s = bytes / t.value;
  if (row.flops_per_step > 0 && bytes > 0) point.arithmetic_intensity = row.flops_per_step / bytes;
}

void add_notes(const Analysis& analysis, std::vector<std::string>& notes) {
  int left_out = 0, points = 0, without = 0;
  bool virtual_device = false;
  for (const AnalyzedPoint& point : analysis.points) {
    left_out += point.timings_left_out;
    points += point.timings_left_out > 0;
    without += point.row->status == Status::ok && point.timings_used == 0;
    virtual_device = virtual_device || (point.row->device_kind == "meta" && point.status == Status::ok);
  }
  std::map<std::string, int> without_roofline;
  for (const AnalyzedPoint& point : analysis.points) {
    if (!point.roofline_missing.empty()) ++without_roofline[point.roofline_missing];
  }
  for (const auto& [reason, count] : without_roofline) {
    notes.push_back(
        fmt::format("{} point{} no fraction of the roofline: {}", count, count == 1 ? " has" : "s have", reason));
  }
  if (left_out > 0) {
    notes.push_back(
        fmt::format("{} timing{} of {} point{} were left out: taken in another placement of the cores than most of "
                    "the point's processes saw",
                    left_out, left_out == 1 ? "" : "s", points, points == 1 ? "" : "s"));
  }
  if (without > 0)
    notes.push_back(
        fmt::format("{} point{} without timings yet: the run isn't finished", without, without == 1 ? " is" : "s are"));
  if (virtual_device) notes.push_back("meta devices are virtual: their times are computed from a model, not measured");
}

}  // namespace

Analysis analyze(const Result& result) {
  Analysis analysis;
  analysis.result = &result;
  const TimingIndex timings = index_timings(result);
  analysis.points.reserve(result.points.size());
  for (const PointRow& row : result.points) analysis.points.push_back(start_point(row, timings));
  apply_gates(analysis.points, timings, analysis.notes);
  const Roofline roofline(analysis.points, timings, result.environment);
  for (AnalyzedPoint& point : analysis.points) {
    add_rates(point);
    if (point.status == Status::ok) roofline.apply(point);
  }
  analysis.peaks = roofline.peaks();
  analysis.pairs = make_pairs(analysis.points, timings, analysis.notes);
  analysis.crossovers = make_crossovers(analysis.pairs, roofline);
  analysis.scaling = make_scaling(analysis.points, timings);
  add_notes(analysis, analysis.notes);
  return analysis;
}

}  // namespace dlbench
