// The measured roofline: what the `peak`, `gemm`, `membw` and `launch` points of a result allow any other point of the
// same device and thread count (Williams, Waterman, Patterson, CACM 2009; bandwidth per working set as in the
// cache-aware roofline).
//
// Promises: nothing is declared, all of it was measured in this result, and each ceiling names the point it comes from.
// A memory ceiling holds for a point of the same machine, device, threads and placement of the cores (of the host's
// cores for a GPU that says nothing: there any placement will do), whose stream writes about the same share of its
// bytes and whose working set lies at the same level of the caches. Where none was measured there is no fraction, and
// the reason instead; likewise where a point is faster than its ceiling: then it was none.
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

/// The ceiling of one mix of reads and writes by working set, ascending.
struct BandwidthCurve {
  double written_share = 0;  ///< of the bytes: 0 read, 1/3 triad, 1/2 copy
  std::vector<Peak> levels;
  /// The bandwidth of a working set, interpolated between neighbours in logarithms. A measured set is a neighbour when
  /// it is within a factor of 2, or when both sets are memory (twice the last-level cache and more), or when the sets
  /// on both sides of it agree. Empty when no measured set is one.
  /// @param cache_bytes of the last level; 0: not known, then the largest measured set counts as memory
  std::optional<double> at(double working_set, double cache_bytes) const;
  /// Smallest working set from which on the bandwidth is that of memory: within 25 % of the largest set's.
  double memory_from_bytes() const;
};

class Roofline {
 public:
  /// @param environment of the result: the sizes of caches
  Roofline(const std::vector<AnalyzedPoint>& points, const TimingIndex& timings, const Json& environment);

  /// Fills roofline_seconds, roofline_fraction, roofline_placement and bound of an `ok` point with seconds, or
  /// roofline_missing.
  void apply(AnalyzedPoint& point) const;
  /// All ceilings, in the order device, kind, precision, threads, placement, working set.
  std::vector<Peak> peaks() const;
  /// Seconds of the cheapest launch of a device in a launch mode; empty where none was measured.
  std::optional<double> launch_floor(const PointRow& row) const;

 private:
  /// Machine and device, precision (or launch mode, or written share), threads, placement.
  using Key = std::tuple<std::string, std::string, int, std::string>;
  struct Memory {
    const BandwidthCurve* curve = nullptr;
    double bytes_per_s = 0;
    std::string missing;  ///< why there is no curve
  };
  const Peak* compute(const PointRow& row, const std::string& precision, const std::string& placement) const;
  const Peak* compute(const PointRow& row, const std::string& placement) const;
  Memory bandwidth(const PointRow& row, const std::string& placement) const;
  std::optional<double> least_bandwidth(const PointRow& row) const;
  double cache_bytes(const PointRow& row) const;
  bool has_peak_point(const Key& like) const;
  void add_caches(const Json& environment, const std::string& source);
  void add(const AnalyzedPoint& point, const std::string& placement, double seconds);

  std::map<Key, Peak> compute_, fma_, launch_;  ///< fma_: the part of compute_ that comes from `peak` points
  std::map<Key, BandwidthCurve> bandwidth_;
  std::map<std::string, double> cache_bytes_;  ///< of the last level, by machine and device
};

}  // namespace dlbench
