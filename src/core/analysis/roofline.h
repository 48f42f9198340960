// The measured roofline: what the `peak`, `gemm`, `membw` and `launch` points of a result allow any other point of the
// same device and thread count (Williams, Waterman, Patterson, CACM 2009; bandwidth per working set as in the
// cache-aware roofline).
//
// Promises: nothing is declared, all of it was measured in this result, and each ceiling names the point it comes from.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/analysis/analysis.h"
#include "core/analysis/selection.h"

namespace dlbench {

/// Bytes that a step really cycles through: with cache=rotate, all copies of its buffers.
double working_set_bytes(const PointRow& row);
/// Points that measure the machine itself; a roofline over them says something about compute or memory only for `membw`
/// and `peak`.
bool is_system_workload(const std::string& workload);

/// A ceiling by working set: pairs (bytes, value), ascending.
struct BandwidthCurve {
  std::vector<Peak> levels;
  /// Interpolated in the logarithm of the working set; constant beyond the ends. Empty without levels.
  std::optional<double> at(double working_set) const;
  /// Smallest working set from which on the bandwidth is that of memory: within 25 % of the largest set's.
  double memory_from_bytes() const;
};

class Roofline {
 public:
  Roofline(const std::vector<AnalyzedPoint>& points, const TimingIndex& timings);

  /// Fills roofline_seconds, roofline_fraction, roofline_placement and bound of an `ok` point with seconds.
  void apply(AnalyzedPoint& point) const;
  /// All ceilings, in the order device, kind, precision, threads, placement, working set.
  std::vector<Peak> peaks() const;
  /// Seconds of the cheapest launch of a device in a launch mode; empty where none was measured.
  std::optional<double> launch_floor(const PointRow& row) const;

 private:
  using Key =
      std::tuple<std::string, std::string, int, std::string>;  // device, precision (or launch mode), threads, placement
  const Peak* compute(const PointRow& row, const std::string& precision, const std::string& placement) const;
  const Peak* compute(const PointRow& row, const std::string& placement) const;
  const BandwidthCurve* bandwidth(const PointRow& row, const std::string& placement) const;
  bool has_peak_point(const Peak& like) const;
  void add(const AnalyzedPoint& point, const std::string& placement, double seconds);

  std::map<Key, Peak> compute_, fma_, launch_;  ///< fma_: the part of compute_ that comes from `peak` points
  std::map<Key, BandwidthCurve> bandwidth_;
};

}  // namespace dlbench
