// Placement probes: what the machine is like right now, told by the machine itself.
//
// Why: hypervisors move virtual CPUs every few seconds to minutes; work that shares data between threads gets up to 3.6
// times slower, and steal time shows nothing. A ping-pong of a cache line (~1 ms) tells how far two CPUs are apart, a
// multiply-add loop on all of them (~5 ms) whether somebody else uses their cores.
// Promises: labels come from the values of the run itself (gaps on a log scale), never from constants of one machine.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlbench {

struct ProbeValues {
  double ping_pong_seconds = 0;  ///< round trip of a cache line between two CPUs; 0 with a single CPU
  double fma_flop_per_s = 0;     ///< of all usable CPUs together, in a loop that is the same everywhere (no peak)
};

/// Measures once, ~6 ms. Threads are pinned to the first two CPUs of `cpus` (ping-pong) and to each of them
/// (multiply-add).
ProbeValues run_probes(std::span<const int> cpus);

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
  std::vector<std::string> label;                     ///< one per block: near | far | starved | single | unknown
  std::optional<double> ping_pong_threshold_seconds;  ///< between near and far; empty with one cluster
  std::optional<double> fma_threshold_flop_per_s;     ///< below it: starved
};
/// starved: multiply-add rate in a cluster below the highest. near: lowest ping-pong cluster, far: any other. single:
/// no ping-pong (one CPU). unknown: no probes, a probe outside of every cluster, or two probes in different clusters.
Placements label_placements(std::span<const ProbedBlock> blocks);

}  // namespace dlbench
