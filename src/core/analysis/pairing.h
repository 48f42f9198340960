// Pairs, crossovers and thread scaling: what is concluded from points that differ in one thing only.
#pragma once

#include <string>
#include <vector>

#include "core/analysis/analysis.h"
#include "core/analysis/roofline.h"
#include "core/analysis/selection.h"

namespace dlbench {

/// One pair per GPU point (device and variant) whose pair key has a CPU point: the one with the fastest thread count.
/// Hardware pairs with hardware and meta devices with meta devices; the reference, an oracle, pairs with
/// nothing, and neither does `peak`, whose steps are of different work on every device.
std::vector<Pair> make_pairs(const std::vector<AnalyzedPoint>& points, const TimingIndex& timings,
                             std::vector<std::string>& notes);

/// One crossover per sweep, CPU device, GPU device and GPU variant.
std::vector<Crossover> make_crossovers(const std::vector<Pair>& pairs, const Roofline& roofline);

/// The verdict over winners in the order of the sweep, and the changes between them (brackets; estimates by log-log
/// interpolation of the speedups). @param log_speedup ln(CPU seconds / GPU seconds) per batch.
struct Verdict {
  std::string word;
  std::vector<Crossover::Change> changes;
};
Verdict judge(const std::vector<double>& batch, const std::vector<double>& log_speedup,
              const std::vector<Winner>& winner);

std::vector<ThreadScaling> make_scaling(const std::vector<AnalyzedPoint>& points, const TimingIndex& timings);

}  // namespace dlbench
