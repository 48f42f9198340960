#include "core/analysis/selection.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace dlbench {

const std::string& label_of(const TimingRow& row, size_t i) {
  static const std::string kNone;
  const size_t block = i < row.block.size() && row.block[i] >= 0 ? static_cast<size_t>(row.block[i]) : 0;
  return block < row.placement.size() ? row.placement[block] : kNone;
}

bool says_nothing(const std::string& label) {
  return label.empty() || label == "unknown";
}

TimingIndex index_timings(const Result& result) {
  TimingIndex index;
  index.reserve(result.points.size());
  for (const TimingRow& row : result.timings) {
    if (row.wall_seconds.empty()) continue;
    PointTimings& timings = index[row.key];
    timings.rows.push_back(&row);
    timings.total += static_cast<int>(row.wall_seconds.size());
    std::map<std::string, int> seen;
    for (size_t i = 0; i < row.wall_seconds.size(); ++i) ++seen[label_of(row, i)];
    for (const auto& [label, count] : seen) {
      LabelCount& total = timings.labels[label];
      ++total.processes;
      total.timings += count;
    }
  }
  return index;
}

std::string PointTimings::majority_label() const {
  std::string best;
  LabelCount most;
  for (const auto& [label, count] : labels) {
    if (std::tie(count.processes, count.timings) > std::tie(most.processes, most.timings)) {
      best = label;
      most = count;
    }
  }
  return best;
}

namespace {

std::optional<Estimate> estimate_of(const std::vector<const TimingRow*>& rows, const std::string& label,
                                    std::vector<double> TimingRow::*clock) {
  std::vector<double> medians, selected;
  double minimum = INFINITY;
  for (const TimingRow* row : rows) {
    const std::vector<double>& seconds = row->*clock;
    selected.clear();
    for (size_t i = 0; i < seconds.size(); ++i) {
      if (label_of(*row, i) != label) continue;
      if (!(seconds[i] > 0) || !std::isfinite(seconds[i])) return std::nullopt;
      selected.push_back(seconds[i]);
      minimum = std::min(minimum, seconds[i]);
    }
    if (!selected.empty()) medians.push_back(median(selected));
  }
  if (medians.empty()) return std::nullopt;
  return estimate(medians, minimum);
}

}  // namespace

std::optional<Estimate> PointTimings::wall(const std::string& label) const {
  return estimate_of(rows, label, &TimingRow::wall_seconds);
}

std::optional<Estimate> PointTimings::device(const std::string& label) const {
  return estimate_of(rows, label, &TimingRow::device_seconds);
}

std::optional<double> PointTimings::fastest() const {
  std::optional<double> best;
  for (const TimingRow* row : rows) {
    for (const double seconds : row->wall_seconds) {
      if (seconds > 0 && (!best || seconds < *best)) best = seconds;
    }
  }
  return best;
}

namespace {
const AxisValue* find_axis(const PointRow& row, std::string_view axis) {
  for (const auto& [name, value] : row.point.axes) {
    if (name == axis) return &value;
  }
  return nullptr;
}
}  // namespace

int64_t integer_axis(const PointRow& row, std::string_view axis) {
  const AxisValue* value = find_axis(row, axis);
  const int64_t* number = value ? std::get_if<int64_t>(value) : nullptr;
  return number ? *number : 0;
}

std::string word_axis(const PointRow& row, std::string_view axis) {
  const AxisValue* value = find_axis(row, axis);
  if (!value) return "";
  const std::string* word = std::get_if<std::string>(value);
  return word ? *word : std::to_string(std::get<int64_t>(*value));
}

std::string key_without(const PointRow& row, std::string_view axis) {
  const std::string segment = "/" + std::string(axis) + "=";
  const size_t start = row.key.find(segment);
  if (start == std::string::npos) return row.key;
  const size_t end = row.key.find('/', start + 1);
  return row.key.substr(0, start) + (end == std::string::npos ? "" : row.key.substr(end));
}

}  // namespace dlbench
