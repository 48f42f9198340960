#include "core/result/placement.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace dlbench {

namespace {

/// Index of the cluster that a value belongs to, -1 for an outlier.
int cluster_of(double value, std::span<const Cluster> clusters) {
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (value >= clusters[i].low && value <= clusters[i].high) return static_cast<int>(i);
  }
  return -1;
}

/// The border between a cluster and the next one above.
double border(const Cluster& below, const Cluster& above) {
  return std::sqrt(below.high * above.low);
}

bool same_state(double a, double b) {
  if (a <= 0 || b <= 0) return a == b;
  return std::fabs(std::log(a / b)) <= std::log(kStateFactor);
}

}  // namespace

bool probes_agree(const ProbeValues& a, const ProbeValues& b) {
  return same_state(a.ping_pong_seconds, b.ping_pong_seconds) && same_state(a.fma_flop_per_s, b.fma_flop_per_s);
}

std::vector<Cluster> gap_clusters(std::span<const double> values, double smallest_share) {
  std::vector<double> sorted;
  for (const double v : values) {
    if (v > 0 && std::isfinite(v)) sorted.push_back(v);
  }
  std::sort(sorted.begin(), sorted.end());
  const double smallest = smallest_share * static_cast<double>(sorted.size());
  std::vector<Cluster> clusters;
  for (size_t first = 0, i = 1; i <= sorted.size(); ++i) {
    if (i < sorted.size() && sorted[i] <= sorted[i - 1] * kStateFactor) continue;
    if (static_cast<double>(i - first) >= smallest) clusters.push_back({sorted[first], sorted[i - 1]});
    first = i;
  }
  return clusters;
}

namespace {

struct States {
  std::vector<Cluster> ping_pong, fma;
};

States states_of(std::span<const ProbedBlock> blocks) {
  std::vector<double> ping_pong_values, fma_values;
  for (const ProbedBlock& block : blocks) {
    for (const ProbeValues* values : {&block.before, &block.after}) {
      ping_pong_values.push_back(values->ping_pong_seconds);
      fma_values.push_back(values->fma_flop_per_s);
    }
  }
  return {gap_clusters(ping_pong_values), gap_clusters(fma_values)};
}

std::string label_of(const ProbeValues& values, const States& states) {
  if (values.fma_flop_per_s <= 0) return "unknown";
  const int fma = cluster_of(values.fma_flop_per_s, states.fma);
  if (fma < 0) return "unknown";
  if (fma + 1 < static_cast<int>(states.fma.size())) return "starved";
  if (values.ping_pong_seconds <= 0) return "single";
  const int ping_pong = cluster_of(values.ping_pong_seconds, states.ping_pong);
  if (ping_pong < 0) return "unknown";
  if (states.ping_pong.size() == 1) return "uniform";
  return ping_pong == 0 ? "near" : "far";
}

/// One set of clusters out of those of several runs: what isn't apart is one state.
std::vector<Cluster> united(std::vector<Cluster> clusters) {
  std::sort(clusters.begin(), clusters.end(), [](const Cluster& a, const Cluster& b) { return a.low < b.low; });
  std::vector<Cluster> result;
  for (const Cluster& cluster : clusters) {
    if (!result.empty() && cluster.low <= result.back().high * kStateFactor) {
      result.back().high = std::max(result.back().high, cluster.high);
    } else {
      result.push_back(cluster);
    }
  }
  return result;
}

Placements label_with(const States& states, std::span<const ProbedBlock> blocks) {
  Placements result;
  if (states.ping_pong.size() > 1)
    result.ping_pong_threshold_seconds = border(states.ping_pong[0], states.ping_pong[1]);
  if (states.fma.size() > 1) {
    result.fma_threshold_flop_per_s = border(states.fma[states.fma.size() - 2], states.fma.back());
  }
  for (const ProbedBlock& block : blocks) {
    const std::string before = label_of(block.before, states), after = label_of(block.after, states);
    result.label.push_back(before == after ? before : "unknown");
  }
  return result;
}

}  // namespace

Placements label_placements(std::span<const ProbedBlock> blocks) {
  return label_with(states_of(blocks), blocks);
}

std::vector<Placements> label_runs(std::span<const std::vector<ProbedBlock>> runs) {
  States all;
  for (const std::vector<ProbedBlock>& run : runs) {
    const States states = states_of(run);
    all.ping_pong.insert(all.ping_pong.end(), states.ping_pong.begin(), states.ping_pong.end());
    all.fma.insert(all.fma.end(), states.fma.begin(), states.fma.end());
  }
  all = {united(std::move(all.ping_pong)), united(std::move(all.fma))};
  std::vector<Placements> placements;
  for (const std::vector<ProbedBlock>& run : runs) placements.push_back(label_with(all, run));
  return placements;
}

namespace {

/// "" where the result doesn't say.
std::string machine_of(const Result& result) {
  const auto cpu = result.environment.find("cpu");
  if (cpu == result.environment.end() || !cpu->is_object() || !cpu->contains("model")) return "";
  return (*cpu)["model"].dump() + " " + cpu->value("usable_cpus", Json()).dump();
}

bool has_probes(const TimingRow& row) {
  const size_t blocks = row.placement.size();
  return blocks > 0 && row.ping_pong_before_seconds.size() == blocks && row.ping_pong_after_seconds.size() == blocks &&
         row.fma_before_flop_per_s.size() == blocks && row.fma_after_flop_per_s.size() == blocks &&
         row.fma_before_flop_per_s.front() > 0;
}

void relabel(std::span<Result* const> results) {
  std::vector<std::vector<ProbedBlock>> runs;
  for (const Result* result : results) {
    std::vector<ProbedBlock>& run = runs.emplace_back();
    for (const TimingRow& row : result->timings) {
      for (size_t b = 0; has_probes(row) && b < row.placement.size(); ++b) {
        run.push_back({{row.ping_pong_before_seconds[b], row.fma_before_flop_per_s[b]},
                       {row.ping_pong_after_seconds[b], row.fma_after_flop_per_s[b]}});
      }
    }
  }
  const std::vector<Placements> placements = label_runs(runs);
  for (size_t r = 0; r < results.size(); ++r) {
    size_t next = 0;
    for (TimingRow& row : results[r]->timings) {
      if (!has_probes(row)) continue;
      for (std::string& label : row.placement) label = placements[r].label[next++];
    }
  }
}

}  // namespace

void relabel_together(std::span<Result> results) {
  std::map<std::string, std::vector<Result*>> machines;
  for (Result& result : results) {
    if (const std::string machine = machine_of(result); !machine.empty()) machines[machine].push_back(&result);
  }
  for (const auto& [machine, runs] : machines) {
    if (runs.size() > 1) relabel(runs);
  }
}

}  // namespace dlbench
