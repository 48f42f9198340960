#include "core/analysis/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/analysis/gates.h"

namespace dlbench {

namespace {

double bytes_of(const PointRow& row) {
  return row.bytes_read_per_step + row.bytes_written_per_step;
}

/// Two merged files may both have a device `cpu`: their ceilings have nothing to do with each other.
std::string machine_device(const std::string& source, const std::string& device) {
  return source + "|" + device;
}
std::string machine_device(const PointRow& row) {
  return machine_device(row.source, row.device);
}

/// Of the bytes that a step moves.
double written_share(const PointRow& row) {
  return bytes_of(row) > 0 ? row.bytes_written_per_step / bytes_of(row) : 0;
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
/// Streams whose written shares differ by more are no ceiling for each other. The shares measured are 0 (read), 1/3
/// (triad) and 1/2 (copy): triad and copy stand in for each other, read for neither.
constexpr double kSameMix = 0.2;
/// Working sets within this factor lie at the same level, unless the border of a cache happens to be between them: then
/// a point faster than the ceiling shows it.
constexpr double kNearWorkingSet = 2;
/// Beyond this many times the last-level cache a working set is memory.
constexpr double kBeyondCache = 2;

}  // namespace

double working_set_bytes(const PointRow& row) {
  if (row.buffer_sets <= 1) return row.working_set_bytes;
  return std::max(row.working_set_bytes, static_cast<double>(row.tensor_bytes) * static_cast<double>(row.buffer_sets));
}

bool is_system_workload(const std::string& workload) {
  return workload == "peak" || workload == "membw" || workload == "launch" || workload == "transfer";
}

std::optional<double> BandwidthCurve::at(double working_set, double cache_bytes) const {
  if (levels.empty()) return std::nullopt;
  const double memory_from = cache_bytes > 0 ? kBeyondCache * cache_bytes : levels.back().working_set_bytes;
  const auto comparable = [&](const Peak& level) {
    if (level.working_set_bytes >= memory_from && working_set >= memory_from) return true;
    const double ratio = working_set / level.working_set_bytes;
    return ratio <= kNearWorkingSet && ratio >= 1 / kNearWorkingSet;
  };
  const auto above = std::lower_bound(levels.begin(), levels.end(), working_set,
                                      [](const Peak& p, double bytes) { return p.working_set_bytes < bytes; });
  const Peak* high = above == levels.end() ? nullptr : &*above;
  const Peak* low = above == levels.begin() ? nullptr : &*(above - 1);
  const bool agree =
      low && high && std::max(low->value, high->value) <= kMemoryPlateau * std::min(low->value, high->value);
  const bool use_low = low && (agree || comparable(*low)), use_high = high && (agree || comparable(*high));
  if (use_low && use_high) {
    const double share =
        std::log(working_set / low->working_set_bytes) / std::log(high->working_set_bytes / low->working_set_bytes);
    return std::exp(std::log(low->value) + share * std::log(high->value / low->value));
  }
  if (use_low) return low->value;
  if (use_high) return high->value;
  return std::nullopt;
}

double BandwidthCurve::memory_from_bytes() const {
  double from = INFINITY;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    if (level->value > kMemoryPlateau * levels.back().value) break;
    from = level->working_set_bytes;
  }
  return from;
}

Roofline::Roofline(const std::vector<AnalyzedPoint>& points, const TimingIndex& timings, const Json& environment) {
  add_caches(environment, "");
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
  const std::string device = machine_device(row);
  if (row.workload == "launch") {
    peak.kind = "launch_seconds";
    peak.value = seconds / launches_of(row);
    peak.launch = word_axis(row, "launch");
    const auto [it, fresh] = launch_.try_emplace(Key{device, peak.launch, peak.threads, placement}, peak);
    if (!fresh && peak.value < it->second.value) it->second = peak;
  } else if (row.workload == "membw") {
    if (bytes_of(row) <= 0 || row.working_set_bytes <= 0) return;
    peak.kind = "bytes_per_s";
    peak.value = bytes_of(row) / seconds;
    peak.working_set_bytes = working_set_bytes(row);
    BandwidthCurve& curve = bandwidth_[Key{device, fmt::format("{:.2f}", written_share(row)), peak.threads, placement}];
    curve.written_share = written_share(row);
    auto& levels = curve.levels;
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
    const Key key{device, peak.precision, peak.threads, placement};
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

void Roofline::add_caches(const Json& environment, const std::string& source) {
  if (const auto machines = environment.find("machines"); machines != environment.end() && machines->is_array()) {
    for (const Json& machine : *machines) {
      if (machine.contains("environment")) add_caches(machine["environment"], machine.value("source", ""));
    }
  }
  const auto devices = environment.find("devices");
  if (devices == environment.end() || !devices->is_array()) return;
  for (const Json& device : *devices) {
    if (!device.is_object() || !device.contains("facts") || !device["facts"].is_object()) continue;
    for (const char* fact : {"last_level_cache_bytes", "l2_bytes"}) {
      const auto size = device["facts"].find(fact);
      if (size == device["facts"].end() || !size->is_string()) continue;
      const double bytes = std::strtod(size->get_ref<const std::string&>().c_str(), nullptr);
      if (bytes > 0) cache_bytes_[machine_device(source, device.value("id", ""))] = bytes;
    }
  }
}

double Roofline::cache_bytes(const PointRow& row) const {
  const auto found = cache_bytes_.find(machine_device(row));
  return found == cache_bytes_.end() ? 0 : found->second;
}

bool Roofline::has_peak_point(const Key& like) const {
  bool found = false;
  over_placements(fma_, std::get<0>(like), std::get<1>(like), std::get<2>(like),
                  [&found](const Peak&, const std::string&) { found = true; });
  return found;
}

/// A placement in which no `peak` point was timed has only the few products that happened to run in it: its ceiling
/// would be as low as they are. Then the best of any placement is taken.
const Peak* Roofline::compute(const PointRow& row, const std::string& precision, const std::string& placement) const {
  const int threads = threads_of(row);
  const std::string device = machine_device(row);
  if (fma_.contains({device, precision, threads, placement})) {
    return &compute_.at({device, precision, threads, placement});
  }
  const Peak* best = nullptr;
  over_placements(compute_, device, precision, threads, [&](const Peak& peak, const std::string& label) {
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

Roofline::Memory Roofline::bandwidth(const PointRow& row, const std::string& placement) const {
  const std::string device = machine_device(row);
  const double wanted = written_share(row), working_set = working_set_bytes(row), cache = cache_bytes(row);
  Memory best;
  double distance = kSameMix;
  bool any = false, same_placement = false, same_mix = false;
  for (const auto& [key, curve] : bandwidth_) {
    if (std::get<0>(key) != device || std::get<2>(key) != threads_of(row)) continue;
    any = true;
    if (row.side == "cpu" && std::get<3>(key) != placement) continue;
    same_placement = true;
    const double apart = std::fabs(curve.written_share - wanted);
    if (apart > kSameMix) continue;
    same_mix = true;
    const auto value = curve.at(working_set, cache);
    if (!value || apart > distance || (apart == distance && *value < best.bytes_per_s)) continue;
    best = {&curve, *value, ""};
    distance = apart;
  }
  if (best.curve) return best;
  best.missing = !any              ? "no bandwidth of this device and thread count was measured"
                 : !same_placement ? "no bandwidth was measured in the same placement of the cores"
                 : !same_mix       ? "no stream that writes about the same share of its bytes was measured"
                                   : "no bandwidth was measured near its working set";
  return best;
}

/// Bandwidth falls as working sets grow: what a larger set reached, a smaller one does as well. The least of the
/// streams.
std::optional<double> Roofline::least_bandwidth(const PointRow& row) const {
  std::optional<double> least;
  for (const auto& [key, curve] : bandwidth_) {
    if (std::get<0>(key) != machine_device(row) || std::get<2>(key) != threads_of(row)) continue;
    double of_curve = curve.levels.back().value;
    for (const Peak& level : curve.levels) {
      if (level.working_set_bytes >= working_set_bytes(row)) of_curve = std::max(of_curve, level.value);
    }
    least = least ? std::min(*least, of_curve) : of_curve;
  }
  return least;
}

std::optional<double> Roofline::launch_floor(const PointRow& row) const {
  std::optional<double> floor;
  over_placements(
      launch_, machine_device(row), word_axis(row, "launch"), threads_of(row),
      [&floor](const Peak& peak, const std::string&) { floor = floor ? std::min(*floor, peak.value) : peak.value; });
  return floor;
}

void Roofline::apply(AnalyzedPoint& point) const {
  const PointRow& row = *point.row;
  if (row.workload == "launch" || row.workload == "transfer" || !point.seconds) return;
  const double flops = row.flops_per_step, bytes = bytes_of(row);
  if (flops <= 0 && bytes <= 0) return;
  const Peak* peak = compute(row, point.placement);
  const bool memory_only = flops <= 0 || flops < kSurelyMemoryBound * bytes;
  if (!peak && !memory_only) {
    point.roofline_missing = "no peak of its precision and thread count was measured";
    return;
  }
  const double compute_seconds = peak && flops > 0 ? flops / peak->value : 0;
  const Memory memory = bytes > 0 ? bandwidth(row, point.placement) : Memory{};
  // A GPU step is at least one launch; a CPU step need not dispatch to other threads at all.
  const double floor = launch_floor(row).value_or(0), least_seconds = row.side == "gpu" ? floor : 0;
  if (bytes > 0 && !memory.curve) {
    // Bound by something else even at the least bandwidth that it surely has: then it doesn't matter which one fits.
    const auto least = least_bandwidth(row);
    if (!least || bytes / *least > std::max(compute_seconds, least_seconds)) {
      point.roofline_missing = memory.missing;
      return;
    }
  }
  const double memory_seconds = memory.curve ? bytes / memory.bytes_per_s : 0;
  const double work_seconds = std::max(compute_seconds, memory_seconds);
  const double seconds = std::max(work_seconds, least_seconds);
  const bool by_compute = compute_seconds >= memory_seconds;
  if (seconds > kPhysicsMargin * point.seconds->value) {
    point.roofline_missing = "it is faster than the ceiling that was measured for it";
    return;
  }
  point.roofline_seconds = seconds;
  point.roofline_fraction = seconds / point.seconds->value;
  const Peak* used = !by_compute ? &memory.curve->levels.front() : peak;  // null where the launch decides alone
  if (used && used->placement != point.placement) point.roofline_placement = used->placement;
  if (by_compute && peak && peak->source == row.key && row.workload != "peak") point.flags.push_back("own_ceiling");
  const double cache = cache_bytes(row), working_set = working_set_bytes(row);
  if (floor > work_seconds) {
    point.bound = Bound::launch;
  } else if (by_compute) {
    point.bound = Bound::compute;
  } else {
    const double memory_from = cache > 0 ? kBeyondCache * cache : memory.curve->memory_from_bytes();
    point.bound = working_set < memory_from ? Bound::cache : Bound::bandwidth;
  }
}

std::vector<Peak> Roofline::peaks() const {
  std::vector<Peak> all;
  for (const auto& [key, peak] : compute_) {
    if (fma_.contains(key)) {
      all.push_back(peak);
    } else if (!has_peak_point(key)) {  // only products were measured: the best of them
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
