// Selection of timings with equal placement labels (METHODS section 3): what the cores of a virtual machine are to each
// other changes under a run, and only timings of one label are comparable.
//
// Promises: the label of a point is the one that most of its processes saw (the process is the replicate), then the one
// with most timings, then the first in alphabetical order: the same choice in whatever order the rows stand.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/analysis/statistics.h"
#include "core/result/result.h"

namespace dlbench {

struct LabelCount {
  int processes = 0, timings = 0;
};

/// The timing rows of one point and which labels occur in them.
struct PointTimings {
  std::vector<const TimingRow*> rows;
  std::map<std::string, LabelCount> labels;
  int total = 0;

  /// "" when there are no timings.
  std::string majority_label() const;
  /// Estimate over the timings with `label`; empty when there are none or one of them isn't a positive time.
  std::optional<Estimate> wall(const std::string& label) const;
  std::optional<Estimate> device(const std::string& label) const;
  /// The fastest timing whatever its label.
  std::optional<double> fastest() const;
};

using TimingIndex = std::unordered_map<std::string_view, PointTimings>;
TimingIndex index_timings(const Result& result);

/// "near" of the block that timing `i` belongs to; "" where nothing was recorded.
const std::string& label_of(const TimingRow& row, size_t i);
/// A label that says nothing about the placement and so is comparable with any other.
bool says_nothing(const std::string& label);

/// The value of an integer axis, 0 when the point has none.
int64_t integer_axis(const PointRow& row, std::string_view axis);
/// The value of an axis as text, "" when the point has none.
std::string word_axis(const PointRow& row, std::string_view axis);
/// The key without the segment "/axis=value" of one axis.
std::string key_without(const PointRow& row, std::string_view axis);

}  // namespace dlbench
