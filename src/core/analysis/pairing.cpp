#include "core/analysis/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace dlbench {

namespace {

/// The segments "axis=value" of a GPU key that its pair key lacks, the device left out: launch, data, …
std::string variant_of(const PointRow& row) {
  std::string text;
  for (const auto& [axis, value] : row.point.axes) {
    if (axis == "device") continue;
    const std::string segment = axis + "=" + to_string(value);
    const std::string& pair = row.pair_key;
    const size_t at = pair.find("/" + segment);
    const bool shared =
        at != std::string::npos && (at + 1 + segment.size() == pair.size() || pair[at + 1 + segment.size()] == '/');
    if (!shared) text += (text.empty() ? "" : ", ") + segment;
  }
  return text;
}

bool can_pair(const AnalyzedPoint& point) {
  return point.status == Status::ok && point.seconds && point.row->device_kind != "reference" &&
         point.row->workload != "peak";  // each device decides for itself how much work a step of `peak` is
}

struct Selected {
  Estimate cpu, gpu;
  std::string placement;
};

/// Estimates of both points over timings of an equal label; empty when they have no label in common.
std::optional<Selected> equal_placement(const AnalyzedPoint& cpu, const AnalyzedPoint& gpu,
                                        const TimingIndex& timings) {
  const std::string &a = cpu.placement, &b = gpu.placement;
  if (a == b) return Selected{*cpu.seconds, *gpu.seconds, a};
  if (says_nothing(a) || says_nothing(b)) return Selected{*cpu.seconds, *gpu.seconds, says_nothing(a) ? b : a};
  if (cpu.row->source != gpu.row->source) {  // labels of two machines have nothing to do with each other
    return Selected{*cpu.seconds, *gpu.seconds, fmt::format("cpu: {}, gpu: {}", a, b)};
  }
  const PointTimings &of_cpu = timings.at(cpu.row->key), &of_gpu = timings.at(gpu.row->key);
  std::string best;
  int most = 0;
  for (const auto& [label, count] : of_cpu.labels) {
    const auto other = of_gpu.labels.find(label);
    if (other == of_gpu.labels.end()) continue;
    const int processes = std::min(count.processes, other->second.processes);
    if (processes > most) {
      most = processes;
      best = label;
    }
  }
  if (most == 0) return std::nullopt;
  const auto x = of_cpu.wall(best), y = of_gpu.wall(best);
  if (!x || !y) return std::nullopt;
  return Selected{*x, *y, best};
}

}  // namespace

std::vector<Pair> make_pairs(const std::vector<AnalyzedPoint>& points, const TimingIndex& timings,
                             std::vector<std::string>& notes) {
  const auto group_of = [](const PointRow& row) { return row.pair_key + (row.device_kind == "meta" ? "|meta" : ""); };
  std::unordered_map<std::string, const AnalyzedPoint*> fastest_cpu;
  for (const AnalyzedPoint& point : points) {
    if (!can_pair(point) || point.row->side != "cpu") continue;
    const AnalyzedPoint*& fastest = fastest_cpu[group_of(*point.row)];
    if (!fastest || point.seconds->value < fastest->seconds->value) fastest = &point;
  }
  std::vector<Pair> pairs;
  int apart = 0;
  for (const AnalyzedPoint& point : points) {
    if (!can_pair(point) || point.row->side != "gpu") continue;
    const auto cpu = fastest_cpu.find(group_of(*point.row));
    if (cpu == fastest_cpu.end()) continue;
    const auto selected = equal_placement(*cpu->second, point, timings);
    if (!selected) {
      ++apart;
      continue;
    }
    pairs.push_back({.pair_key = point.row->pair_key,
                     .workload = point.row->workload,
                     .precision = point.row->precision,
                     .cpu = cpu->second,
                     .gpu = &point,
                     .gpu_variant = variant_of(*point.row),
                     .cpu_seconds = selected->cpu,
                     .gpu_seconds = selected->gpu,
                     .speedup = ratio(selected->cpu, selected->gpu),
                     .placement = selected->placement});
  }
  if (apart > 0) {
    notes.push_back(
        fmt::format("{} pair{} not compared: the timings of both sides have no placement label in common; measure "
                    "again with more processes",
                    apart, apart == 1 ? " is" : "s are"));
  }
  return pairs;
}

namespace {

Winner winner_of(const Estimate& speedup) {
  if (!speedup.low || !speedup.high) return Winner::tie;  // one process: nothing is known about the variation
  if (*speedup.low > 1) return Winner::gpu;
  return *speedup.high < 1 ? Winner::cpu : Winner::tie;
}

/// Where the line between two points crosses speedup 1, in log-log.
double crossing(double x0, double g0, double x1, double g1) {
  return std::exp2(std::log2(x0) + (std::log2(x1) - std::log2(x0)) * (0 - g0) / (g1 - g0));
}

}  // namespace

Verdict judge(const std::vector<double>& batch, const std::vector<double>& log_speedup,
              const std::vector<Winner>& winner) {
  Verdict verdict;
  if (batch.size() < 2) {
    verdict.word = "too_few_points";
    return verdict;
  }
  std::vector<size_t> decided;
  for (size_t i = 0; i < winner.size(); ++i) {
    if (winner[i] != Winner::tie) decided.push_back(i);
  }
  if (decided.empty()) {
    verdict.word = "tie";
    return verdict;
  }
  for (size_t d = 1; d < decided.size(); ++d) {
    const size_t before = decided[d - 1], after = decided[d];
    if (winner[before] == winner[after]) continue;
    Crossover::Change change{winner[before], winner[after], batch[before], batch[after], 0};
    for (size_t i = before; i < after; ++i) {  // ties lie between: the step in which the speedup passes 1
      if ((log_speedup[i] < 0) == (log_speedup[i + 1] < 0)) continue;
      change.estimate = crossing(batch[i], log_speedup[i], batch[i + 1], log_speedup[i + 1]);
      break;
    }
    verdict.changes.push_back(change);
  }
  const bool gpu_first = winner[decided.front()] == Winner::gpu;
  if (verdict.changes.empty()) {
    verdict.word = gpu_first ? "gpu_always" : "gpu_never";
  } else if (verdict.changes.size() == 1) {
    verdict.word = gpu_first ? "reversed" : "single";
  } else {
    verdict.word = "multiple";
  }
  return verdict;
}

namespace {

/// Why the CPU side of these pairs isn't good enough. A CPU point is judged by the larger of its roofline and one
/// dispatch of its threads: no code for tiny steps could be faster than that.
std::optional<std::string> suspect(const std::vector<const Pair*>& pairs, const Crossover& crossover,
                                   const Roofline& roofline) {
  std::set<double> at;
  for (const auto& change : crossover.changes) at.insert({change.last_before, change.first_after});
  const bool all = crossover.verdict == "gpu_always" || crossover.verdict == "gpu_never";
  if (!all && at.empty()) return std::nullopt;
  const Pair* worst = nullptr;
  double lowest = kSuspectRooflineFraction;
  for (const Pair* pair : pairs) {
    const AnalyzedPoint& cpu = *pair->cpu;
    if ((!all && !at.contains(*cpu.row->sweep_value)) || !cpu.roofline_seconds) continue;
    const double possible = std::max(*cpu.roofline_seconds, roofline.launch_floor(*cpu.row).value_or(0));
    if (possible / cpu.seconds->value < lowest) {
      lowest = possible / cpu.seconds->value;
      worst = pair;
    }
  }
  if (!worst) return std::nullopt;
  return fmt::format(
      "at {} {:g} the CPU reaches {:.1f} % of its measured roofline, below {:.0f} %: the baseline may be too slow",
      crossover.sweep_axis, *worst->cpu->row->sweep_value, lowest * 100, kSuspectRooflineFraction * 100);
}

Crossover make_crossover(std::vector<const Pair*> pairs, const Roofline& roofline) {
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair* a, const Pair* b) { return *a->gpu->row->sweep_value < *b->gpu->row->sweep_value; });
  const Pair& first = *pairs.front();
  Crossover crossover;
  crossover.sweep_key = first.gpu->row->sweep_key;
  crossover.sweep_axis = first.gpu->row->sweep_axis;
  crossover.workload = first.workload;
  crossover.precision = first.precision;
  crossover.cpu_device = first.cpu->row->device;
  crossover.gpu_device = first.gpu->row->device;
  crossover.gpu_variant = first.gpu_variant;
  // Simultaneous band over the K batches of the sweep (Bonferroni): each interval at 1 - 0.05 / K.
  const double confidence = 1 - 0.05 / static_cast<double>(pairs.size());
  std::set<std::string> placements;
  std::vector<double> log_speedup;
  for (const Pair* pair : pairs) {
    crossover.batch.push_back(*pair->gpu->row->sweep_value);
    crossover.speedup.push_back(ratio(pair->cpu_seconds, pair->gpu_seconds, confidence));
    crossover.winner.push_back(winner_of(crossover.speedup.back()));
    log_speedup.push_back(crossover.speedup.back().log_mean);
    if (!pair->placement.empty()) placements.insert(pair->placement);
  }
  for (const std::string& placement : placements)
    crossover.placement += (crossover.placement.empty() ? "" : "; ") + placement;
  Verdict verdict = judge(crossover.batch, log_speedup, crossover.winner);
  crossover.verdict = std::move(verdict.word);
  crossover.changes = std::move(verdict.changes);
  crossover.suspect = suspect(pairs, crossover, roofline);
  return crossover;
}

}  // namespace

std::vector<Crossover> make_crossovers(const std::vector<Pair>& pairs, const Roofline& roofline) {
  std::unordered_map<std::string, size_t> index;
  std::vector<std::vector<const Pair*>> sweeps;  // in the order in which they first occur
  for (const Pair& pair : pairs) {
    const PointRow& gpu = *pair.gpu->row;
    if (gpu.sweep_axis.empty() || !gpu.sweep_value || *gpu.sweep_value <= 0 || !pair.cpu->row->sweep_value) continue;
    const std::string key = fmt::format("{}|{}|{}|{}|{}", gpu.sweep_key, gpu.sweep_axis, pair.cpu->row->device,
                                        gpu.device, pair.gpu_variant);
    const auto [it, fresh] = index.try_emplace(key, sweeps.size());
    if (fresh) sweeps.emplace_back();
    sweeps[it->second].push_back(&pair);
  }
  std::vector<Crossover> crossovers;
  for (auto& sweep : sweeps) crossovers.push_back(make_crossover(std::move(sweep), roofline));
  return crossovers;
}

namespace {
/// What a step does; equal at every thread count but for `peak`, which gives each thread the same chains.
double work_of(const PointRow& row) {
  return row.flops_per_step > 0 ? row.flops_per_step : row.bytes_read_per_step + row.bytes_written_per_step;
}
}  // namespace

std::vector<ThreadScaling> make_scaling(const std::vector<AnalyzedPoint>& points, const TimingIndex& timings) {
  std::unordered_map<std::string, size_t> index;
  std::vector<std::vector<const AnalyzedPoint*>> groups;
  for (const AnalyzedPoint& point : points) {
    if (point.status != Status::ok || !point.seconds || integer_axis(*point.row, "threads") < 1) continue;
    const auto [it, fresh] = index.try_emplace(key_without(*point.row, "threads"), groups.size());
    if (fresh) groups.emplace_back();
    groups[it->second].push_back(&point);
  }
  std::vector<ThreadScaling> all;
  for (auto& group : groups) {
    std::sort(group.begin(), group.end(), [](const AnalyzedPoint* a, const AnalyzedPoint* b) {
      return integer_axis(*a->row, "threads") < integer_axis(*b->row, "threads");
    });
    const AnalyzedPoint& one = *group.front();
    if (group.size() < 2 || integer_axis(*one.row, "threads") != 1) continue;
    ThreadScaling scaling{one.row->pair_key, one.row->device, "", {1}, {1}, {1}};
    std::set<std::string> placements;
    for (const AnalyzedPoint* many : group) {
      if (many == &one) continue;
      const auto selected = equal_placement(one, *many, timings);
      if (!selected) continue;
      const auto threads = static_cast<int>(integer_axis(*many->row, "threads"));
      scaling.threads.push_back(threads);
      const double work = work_of(*one.row) > 0 ? work_of(*many->row) / work_of(*one.row) : 1;
      scaling.speedup.push_back(work * selected->cpu.value / selected->gpu.value);
      scaling.efficiency.push_back(scaling.speedup.back() / threads);
      if (!selected->placement.empty()) placements.insert(selected->placement);
    }
    for (const std::string& p : placements) scaling.placement += (scaling.placement.empty() ? "" : "; ") + p;
    if (scaling.threads.size() > 1) all.push_back(std::move(scaling));
  }
  return all;
}

}  // namespace dlbench
