// Placement: what the probes before and after each block of timings say about where the CPUs were.
//
// Why: hypervisors move virtual CPUs; only timings of one placement are comparable (METHODS section 3), within a run
// and between runs. core/measure/probes.h measures the values. Promises: labels come from the values of the runs
// themselves (gaps on a log scale), never from constants of one machine.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result/result.h"

namespace dlbench {

struct ProbeValues {
  double ping_pong_seconds = 0;  ///< round trip of a cache line between two CPUs; 0 with a single CPU
  double fma_flop_per_s = 0;     ///< of all usable CPUs together, in a loop that is the same everywhere (no peak)
};

/// Two values that differ by more than this factor come from different states of the machine. Within one state the
/// probes scatter by a few per cent; the states seen on virtual machines are a factor of 2 to 6 apart.
inline constexpr double kStateFactor = 1.5;
/// Whether two probes show the same state.
bool probes_agree(const ProbeValues& a, const ProbeValues& b);

/// Values of one state: smallest and largest.
struct Cluster {
  double low = 0, high = 0;
};
/// Splits positive values where two neighbours of the sorted list are more than kStateFactor apart. Groups with under
/// `smallest_share` of the values are outliers (a probe that was interrupted) and no cluster. Ascending.
std::vector<Cluster> gap_clusters(std::span<const double> values, double smallest_share = 0.05);

/// A block of timings with its probes before and after.
struct ProbedBlock {
  ProbeValues before, after;
};
struct Placements {
  std::vector<std::string> label;  ///< one per block: near | far | uniform | starved | single | unknown
  std::optional<double> ping_pong_threshold_seconds;  ///< between near and far; empty with one cluster
  std::optional<double> fma_threshold_flop_per_s;     ///< below it: starved
};
/// starved: multiply-add rate in a cluster below the highest. near: lowest ping-pong cluster, far: any other. uniform:
/// there is one cluster only, and whether that is near or far can't be told. single: no ping-pong (one CPU). unknown:
/// no probes, a probe outside of every cluster, or two probes in different clusters.
Placements label_placements(std::span<const ProbedBlock> blocks);
/// The same for several runs on the same kind of machine, so that a label means the same in each: clusters are found in
/// each run, those of all runs that aren't apart are one. A run that saw one state is near or far once another run saw
/// another.
std::vector<Placements> label_runs(std::span<const std::vector<ProbedBlock>> runs);

/// Labels the timings of results of the same CPU model and number of usable CPUs anew, together; results that stand
/// alone, and rows without probes, keep their labels. Needed before timings of several files are compared.
void relabel_together(std::span<Result> results);

}  // namespace dlbench
