#include "core/analysis/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/units.h"

namespace dlbench {

namespace {

using DeviceThreads = std::pair<std::string, int>;

DeviceThreads place_of(const PointRow& row) {
  return {row.source + "|" + row.device, static_cast<int>(integer_axis(row, "threads"))};
}
double bytes_of(const PointRow& row) {
  return row.bytes_read_per_step + row.bytes_written_per_step;
}

/// Every measured ceiling at its most generous: from the fastest single timing, over all placements.
struct Ceilings {
  std::map<std::pair<DeviceThreads, std::string>, double> flop_per_s;  ///< from `peak` points alone, by precision
  struct MemoryPoint {
    double working_set_bytes, bytes_per_s;
  };
  std::map<DeviceThreads, std::vector<MemoryPoint>> memory;                ///< from `membw`
  std::map<std::pair<DeviceThreads, std::string>, double> launch_seconds;  ///< by launch mode
};

Ceilings find_ceilings(const std::vector<AnalyzedPoint>& points, const TimingIndex& timings) {
  Ceilings ceilings;
  for (const AnalyzedPoint& point : points) {
    const PointRow& row = *point.row;
    if (point.status != Status::ok || !is_system_workload(row.workload)) continue;
    const auto it = timings.find(row.key);
    const auto fastest = it == timings.end() ? std::nullopt : it->second.fastest();
    if (!fastest) continue;
    if (row.workload == "peak" && row.flops_per_step > 0) {
      double& best = ceilings.flop_per_s[{place_of(row), row.precision}];
      best = std::max(best, row.flops_per_step / *fastest);
    } else if (row.workload == "membw" && bytes_of(row) > 0) {
      ceilings.memory[place_of(row)].push_back({working_set_bytes(row), bytes_of(row) / *fastest});
    } else if (row.workload == "launch") {
      const double launches = row.sweep_value.value_or(row.samples_per_step);
      const double seconds = *fastest / std::max(1.0, launches);
      const auto [place, fresh] =
          ceilings.launch_seconds.try_emplace({place_of(row), word_axis(row, "launch")}, seconds);
      if (!fresh) place->second = std::min(place->second, seconds);
    }
  }
  return ceilings;
}

/// Bandwidth that nothing beyond the cache can exceed, and the working set from which on it holds; nothing measured: 0.
struct MemoryCeiling {
  double from_bytes = INFINITY, bytes_per_s = 0;
};

MemoryCeiling memory_ceiling(const std::vector<Ceilings::MemoryPoint>& points) {
  std::map<double, double> best;  // by working set
  for (const auto& p : points) best[p.working_set_bytes] = std::max(best[p.working_set_bytes], p.bytes_per_s);
  MemoryCeiling ceiling;
  if (best.empty()) return ceiling;
  constexpr double kPlateau = 1.25;  // as in BandwidthCurve::memory_from_bytes
  const double slowest = best.rbegin()->second;
  for (auto level = best.rbegin(); level != best.rend() && level->second <= kPlateau * slowest; ++level) {
    ceiling.from_bytes = level->first;
    ceiling.bytes_per_s = std::max(ceiling.bytes_per_s, level->second);
  }
  return ceiling;
}

/// FMA loops bound what a matrix product can reach only where no matrix unit does the product: on a CPU, and on a GPU
/// in fp32 (tensor cores do tf32, bf16, fp16 and fp64).
bool bounded_by_fma(const PointRow& row) {
  return row.side == "cpu" || row.precision == "fp32";
}

std::optional<double> compute_ceiling(const PointRow& row, const Ceilings& ceilings) {
  if (!bounded_by_fma(row)) return std::nullopt;
  const auto own = ceilings.flop_per_s.find({place_of(row), row.precision});
  if (row.support != "emulated") return own == ceilings.flop_per_s.end() ? std::nullopt : std::optional(own->second);
  // An emulated precision computes in fp32.
  const auto wide = ceilings.flop_per_s.find({place_of(row), "fp32"});
  if (wide == ceilings.flop_per_s.end()) return std::nullopt;
  return own == ceilings.flop_per_s.end() ? wide->second : std::max(own->second, wide->second);
}

std::string check_timings(const PointRow& row, const PointTimings& timings) {
  std::optional<double> first;
  bool equal = true;
  int count = 0;
  for (const TimingRow* t : timings.rows) {
    for (const double seconds : t->wall_seconds) {
      if (!(seconds > 0)) return fmt::format("a timing of {} s is not a time", seconds);
      if (!first) first = seconds;
      equal = equal && seconds == *first;
      ++count;
    }
  }
  constexpr int kEnough = 6;  // fewer equal readings can be the resolution of a clock
  if (equal && count >= kEnough && row.device_kind != "meta") {  // a virtual clock without noise repeats itself
    return fmt::format("all {} timings are exactly {}: a measurement varies", count, si(*first, "s"));
  }
  return "";
}

std::string check_ceilings(const AnalyzedPoint& point, const Ceilings& ceilings, const MemoryCeiling& memory) {
  const PointRow& row = *point.row;
  const double seconds = point.seconds->value;
  if (row.workload != "peak") {
    const auto ceiling = compute_ceiling(row, ceilings);
    if (ceiling && row.flops_per_step / seconds > kPhysicsMargin * *ceiling) {
      return fmt::format("{} is above the measured peak of {}", si(row.flops_per_step / seconds, "FLOP/s"),
                         si(*ceiling, "FLOP/s"));
    }
  }
  if (!is_system_workload(row.workload) && working_set_bytes(row) >= memory.from_bytes &&
      bytes_of(row) / seconds > kPhysicsMargin * memory.bytes_per_s) {
    return fmt::format("{} with a working set of {}, beyond the cache, is above the measured bandwidth of {}",
                       si(bytes_of(row) / seconds, "B/s"), si_bytes(working_set_bytes(row)),
                       si(memory.bytes_per_s, "B/s"));
  }
  if (row.side == "gpu" && row.workload != "launch") {
    const auto floor = ceilings.launch_seconds.find({place_of(row), word_axis(row, "launch")});
    if (floor != ceilings.launch_seconds.end() && seconds * kPhysicsMargin < floor->second) {
      return fmt::format("{} per step is below the measured launch floor of {}", si(seconds, "s"),
                         si(floor->second, "s"));
    }
  }
  return "";
}

void make_invalid(AnalyzedPoint& point, std::string reason) {
  point.status = Status::invalid;
  point.reason = std::move(reason);
  point.seconds.reset();
  point.device_seconds.reset();
}

/// Factor by which work grows from `a` to `b`: the least of what grows at all, so that a term that stays the same
/// (weights of a layer, say) excuses a time that stays the same.
double work_growth(const PointRow& a, const PointRow& b) {
  double growth = INFINITY;
  if (a.flops_per_step > 0) growth = std::min(growth, b.flops_per_step / a.flops_per_step);
  if (bytes_of(a) > 0) growth = std::min(growth, bytes_of(b) / bytes_of(a));
  if (std::isinf(growth) && a.samples_per_step > 0) growth = b.samples_per_step / a.samples_per_step;
  return std::isinf(growth) ? 0 : growth;
}

/// "A time that does not grow over a 16-fold batch while work does." Below ten launches and 50 us time is a fixed cost
/// (launch, dispatch, latency) and need not grow; without a measured launch, below a millisecond.
void check_growth(std::vector<AnalyzedPoint>& points, const Ceilings& ceilings) {
  constexpr double kBatchFactor = 16, kWorkFactor = 8, kNoGrowth = 1.02;
  constexpr double kLaunches = 10, kLatencySeconds = 50e-6, kUnmeasuredSeconds = 1e-3;
  std::map<std::string, std::vector<AnalyzedPoint*>> series;
  for (AnalyzedPoint& point : points) {
    if (point.status != Status::ok || !point.seconds || !point.row->sweep_value || point.row->workload == "launch")
      continue;
    series[key_without(*point.row, point.row->sweep_axis)].push_back(&point);
  }
  for (auto& [key, members] : series) {
    std::sort(members.begin(), members.end(), [](const AnalyzedPoint* a, const AnalyzedPoint* b) {
      return *a->row->sweep_value < *b->row->sweep_value;
    });
    std::vector<std::pair<AnalyzedPoint*, std::string>> found;
    for (const AnalyzedPoint* small : members) {
      const auto large = std::find_if(members.begin(), members.end(), [&](const AnalyzedPoint* p) {
        return *p->row->sweep_value >= kBatchFactor * *small->row->sweep_value;
      });
      if (large == members.end() || work_growth(*small->row, *(*large)->row) < kWorkFactor) continue;
      const auto floor = ceilings.launch_seconds.find({place_of(*small->row), word_axis(*small->row, "launch")});
      const double fixed = floor == ceilings.launch_seconds.end()
                               ? kUnmeasuredSeconds
                               : std::max(kLatencySeconds, kLaunches * floor->second);
      const double before = small->seconds->value, after = (*large)->seconds->value;
      if (after <= fixed || after > kNoGrowth * before) continue;
      found.emplace_back(
          *large, fmt::format("{} at {} {:g} is no longer than {} at {:g} although the work grew {:.3g}-fold",
                              si(after, "s"), small->row->sweep_axis, *(*large)->row->sweep_value, si(before, "s"),
                              *small->row->sweep_value, work_growth(*small->row, *(*large)->row)));
    }
    for (auto& [point, reason] : found) make_invalid(*point, std::move(reason));
  }
}

}  // namespace

void apply_gates(std::vector<AnalyzedPoint>& points, const TimingIndex& timings, std::vector<std::string>& notes) {
  for (AnalyzedPoint& point : points) {
    const auto it = timings.find(point.row->key);
    if (point.status != Status::ok || it == timings.end()) continue;
    if (std::string reason = check_timings(*point.row, it->second); !reason.empty())
      make_invalid(point, std::move(reason));
  }
  const Ceilings ceilings = find_ceilings(points, timings);
  std::map<DeviceThreads, MemoryCeiling> memory;
  for (const auto& [place, measured] : ceilings.memory) memory[place] = memory_ceiling(measured);
  std::set<std::string> unchecked;
  for (AnalyzedPoint& point : points) {
    if (point.status != Status::ok || !point.seconds) continue;
    const auto level = memory.find(place_of(*point.row));
    const MemoryCeiling known = level == memory.end() ? MemoryCeiling{} : level->second;
    if (std::string reason = check_ceilings(point, ceilings, known); !reason.empty()) {
      make_invalid(point, std::move(reason));
    } else if (point.row->workload == "gemm" && !compute_ceiling(*point.row, ceilings)) {
      unchecked.insert(fmt::format("{} {}", point.row->device, point.row->precision));
    }
  }
  for (const std::string& what : unchecked) {
    notes.push_back(
        fmt::format("{}: no peak of the unit that computes it was measured, so its best gemm is the ceiling and "
                    "\"faster than the peak\" can't be noticed",
                    what));
  }
  check_growth(points, ceilings);
}

}  // namespace dlbench
