#include "core/analysis/roofline.h"

#include <algorithm>
#include <cmath>

namespace dlbench {

namespace {

double bytes_of(const PointRow& row) {
  return row.bytes_read_per_step + row.bytes_written_per_step;
}

int threads_of(const PointRow& row) {
  return static_cast<int>(integer_axis(row, "threads"));
}

/// Launches of one step of a `launch` point.
double launches_of(const PointRow& row) {
  if (row.sweep_axis == "count" && row.sweep_value && *row.sweep_value > 0) return *row.sweep_value;
  return row.samples_per_step > 0 ? row.samples_per_step : 1;
}

/// Below this many FLOPs per byte a step is bound by memory on any machine: the ridge point of every CPU and GPU is
/// above 1.
constexpr double kSurelyMemoryBound = 0.5;
/// Bandwidths within this factor of that of the largest working set count as memory, not as a cache.
constexpr double kMemoryPlateau = 1.25;

}  // namespace

double working_set_bytes(const PointRow& row) {
  if (row.buffer_sets <= 1) return row.working_set_bytes;
  return std::max(row.working_set_bytes, static_cast<double>(row.tensor_bytes) * static_cast<double>(row.buffer_sets));
}

bool is_system_workload(const std::string& workload) {
  return workload == "peak" || workload == "membw" || workload == "launch" || workload == "transfer";
}

std::optional<double> BandwidthCurve::at(double working_set) const {
  if (levels.empty()) return std::nullopt;
  const auto above = std::lower_bound(levels.begin(), levels.end(), working_set,
                                      [](const Peak& p, double bytes) { return p.working_set_bytes < bytes; });
  if (above == levels.begin()) return levels.front().value;
  if (above == levels.end()) return levels.back().value;
  const Peak& low = *(above - 1);
  const double share =
      std::log(working_set / low.working_set_bytes) / std::log(above->working_set_bytes / low.working_set_bytes);
  return std::exp(std::log(low.value) + share * std::log(above->value / low.value));
}

double BandwidthCurve::memory_from_bytes() const {
  double from = INFINITY;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    if (level->value > kMemoryPlateau * levels.back().value) break;
    from = level->working_set_bytes;
  }
  return from;
}

Roofline::Roofline(const std::vector<AnalyzedPoint>& points, const TimingIndex& timings) {
  for (const AnalyzedPoint& point : points) {
    const std::string& w = point.row->workload;
    if (point.status != Status::ok || !point.seconds) continue;
    if (w != "peak" && w != "gemm" && w != "membw" && w != "launch") continue;
    const PointTimings& of_point = timings.at(point.row->key);
    for (const auto& [label, count] : of_point.labels) {
      if (const auto e = of_point.wall(label)) add(point, label, e->value);
    }
  }
  for (auto& [key, curve] : bandwidth_) {
    std::sort(curve.levels.begin(), curve.levels.end(),
              [](const Peak& a, const Peak& b) { return a.working_set_bytes < b.working_set_bytes; });
  }
}

void Roofline::add(const AnalyzedPoint& point, const std::string& placement, double seconds) {
  const PointRow& row = *point.row;
  Peak peak{.device = row.device,
            .precision = "",
            .kind = "",
            .value = 0,
            .working_set_bytes = 0,
            .threads = threads_of(row),
            .placement = placement,
            .launch = "",
            .source = row.key};
  if (row.workload == "launch") {
    peak.kind = "launch_seconds";
    peak.value = seconds / launches_of(row);
    peak.launch = word_axis(row, "launch");
    const auto [it, fresh] = launch_.try_emplace(Key{peak.device, peak.launch, peak.threads, placement}, peak);
    if (!fresh && peak.value < it->second.value) it->second = peak;
  } else if (row.workload == "membw") {
    if (bytes_of(row) <= 0 || row.working_set_bytes <= 0) return;
    peak.kind = "bytes_per_s";
    peak.value = bytes_of(row) / seconds;
    peak.working_set_bytes = working_set_bytes(row);
    auto& levels = bandwidth_[Key{peak.device, "", peak.threads, placement}].levels;
    const auto same = std::find_if(levels.begin(), levels.end(),
                                   [&](const Peak& p) { return p.working_set_bytes == peak.working_set_bytes; });
    if (same == levels.end()) {
      levels.push_back(peak);
    } else if (peak.value > same->value) {
      *same = peak;
    }
  } else if (row.flops_per_step > 0) {
    peak.kind = "flop_per_s";
    peak.precision = row.precision;
    peak.value = row.flops_per_step / seconds;
    const Key key{peak.device, peak.precision, peak.threads, placement};
    if (row.workload == "peak") fma_.insert_or_assign(key, peak);
    const auto [it, fresh] = compute_.try_emplace(key, peak);
    if (!fresh && peak.value > it->second.value) it->second = peak;
  }
}

namespace {

/// Calls `visit` with every entry of a device, word and thread count, whatever its placement.
template <class Map, class Visit>
void over_placements(const Map& map, const std::string& device, const std::string& word, int threads, Visit visit) {
  for (auto it = map.lower_bound({device, word, threads, ""}); it != map.end(); ++it) {
    const auto& [d, w, t, placement] = it->first;
    if (d != device || w != word || t != threads) break;
    visit(it->second, placement);
  }
}

}  // namespace

bool Roofline::has_peak_point(const Peak& like) const {
  bool found = false;
  over_placements(fma_, like.device, like.precision, like.threads,
                  [&found](const Peak&, const std::string&) { found = true; });
  return found;
}

/// A placement in which no `peak` point was timed has only the few products that happened to run in it: its ceiling
/// would be as low as they are. Then the best of any placement is taken.
const Peak* Roofline::compute(const PointRow& row, const std::string& precision, const std::string& placement) const {
  const int threads = threads_of(row);
  if (fma_.contains({row.device, precision, threads, placement})) {
    return &compute_.at({row.device, precision, threads, placement});
  }
  const Peak* best = nullptr;
  over_placements(compute_, row.device, precision, threads, [&](const Peak& peak, const std::string& label) {
    const bool better = !best || peak.value > best->value || (peak.value == best->value && label == placement);
    if (better) best = &peak;
  });
  return best;
}

const Peak* Roofline::compute(const PointRow& row, const std::string& placement) const {
  const Peak* own = compute(row, row.precision, placement);
  if (row.support != "emulated") return own;
  const Peak* wide = compute(row, "fp32", placement);  // an emulated precision computes in fp32
  if (!own || !wide) return wide ? wide : own;
  return own->value > wide->value ? own : wide;
}

const BandwidthCurve* Roofline::bandwidth(const PointRow& row, const std::string& placement) const {
  const BandwidthCurve *own = nullptr, *fullest = nullptr;
  over_placements(bandwidth_, row.device, "", threads_of(row),
                  [&](const BandwidthCurve& curve, const std::string& label) {
                    if (label == placement) own = &curve;
                    if (!fullest || curve.levels.size() > fullest->levels.size()) fullest = &curve;
                  });
  if (!own) return fullest;
  const double least = fullest->levels.front().working_set_bytes, most = fullest->levels.back().working_set_bytes;
  const double wanted = std::clamp(working_set_bytes(row), least, std::max(least, most));
  const bool covered =
      own->levels.front().working_set_bytes <= wanted && wanted <= own->levels.back().working_set_bytes;
  return covered ? own : fullest;
}

std::optional<double> Roofline::launch_floor(const PointRow& row) const {
  std::optional<double> floor;
  over_placements(
      launch_, row.device, word_axis(row, "launch"), threads_of(row),
      [&floor](const Peak& peak, const std::string&) { floor = floor ? std::min(*floor, peak.value) : peak.value; });
  return floor;
}

void Roofline::apply(AnalyzedPoint& point) const {
  const PointRow& row = *point.row;
  if (row.workload == "launch" || row.workload == "transfer" || !point.seconds) return;
  const double flops = row.flops_per_step, bytes = bytes_of(row);
  if (flops <= 0 && bytes <= 0) return;
  const Peak* peak = compute(row, point.placement);
  const BandwidthCurve* curve = bandwidth(row, point.placement);
  const bool memory_only = flops <= 0 || flops < kSurelyMemoryBound * bytes;
  if ((!peak && !memory_only) || (!curve && bytes > 0)) return;
  const double compute_seconds = peak && flops > 0 ? flops / peak->value : 0;
  const double memory_seconds = bytes > 0 ? bytes / *curve->at(working_set_bytes(row)) : 0;
  const double work_seconds = std::max(compute_seconds, memory_seconds);
  const double floor = launch_floor(row).value_or(0);
  // A GPU step is at least one launch; a CPU step need not dispatch to other threads at all.
  point.roofline_seconds = row.side == "gpu" ? std::max(work_seconds, floor) : work_seconds;
  point.roofline_fraction = *point.roofline_seconds / point.seconds->value;
  const bool by_compute = compute_seconds >= memory_seconds;
  const std::string& used = by_compute ? peak->placement : curve->levels.front().placement;
  if (used != point.placement) point.roofline_placement = used;
  if (by_compute && peak->source == row.key && row.workload != "peak") point.flags.push_back("own_ceiling");
  if (floor > work_seconds) {
    point.bound = Bound::launch;
  } else if (by_compute) {
    point.bound = Bound::compute;
  } else {
    point.bound = working_set_bytes(row) < curve->memory_from_bytes() ? Bound::cache : Bound::bandwidth;
  }
}

std::vector<Peak> Roofline::peaks() const {
  std::vector<Peak> all;
  for (const auto& [key, peak] : compute_) {
    if (fma_.contains(key)) {
      all.push_back(peak);
    } else if (!has_peak_point(peak)) {  // only products were measured: the best of them
      const bool same = !all.empty() && all.back().device == peak.device && all.back().precision == peak.precision &&
                        all.back().threads == peak.threads;
      if (!same) {
        all.push_back(peak);
      } else if (peak.value > all.back().value) {
        all.back() = peak;
      }
    }
  }
  for (const auto& [key, curve] : bandwidth_) all.insert(all.end(), curve.levels.begin(), curve.levels.end());
  for (const auto& [key, peak] : launch_) all.push_back(peak);
  return all;
}

}  // namespace dlbench
