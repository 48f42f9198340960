#include "core/report/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/analysis/roofline.h"
#include "core/base/units.h"

namespace dlbench {

namespace {

/// Devices that aren't hardware are always named as what they are.
bool is_virtual(const PointRow& row) {
  return row.device_kind == "meta";
}

std::string device_text(const PointRow& row) {
  return row.device + (is_virtual(row) ? " (virtual)" : "");
}

/// "12.3 ms ±1.2 %": the larger side of the interval, relative to the value.
std::string with_half_width(const Estimate& e, const std::string& text) {
  if (!e.low || !e.high) return text;
  return fmt::format("{} ±{}", text, percent(std::max(e.value - *e.low, *e.high - e.value) / e.value));
}

std::string x_text(double factor) {
  return significant(factor, factor < 0.1 ? 2 : 3) + "x";
}

std::string speedup_text(const Estimate& e) {
  return e.low && e.high ? fmt::format("{} [{}, {}]", x_text(e.value), x_text(*e.low), x_text(*e.high))
                         : x_text(e.value);
}

/// A column with one value in all rows (of several) is told once, in the title.
void tell_once(Table& table, const std::string& column) {
  const auto at = std::find(table.columns.begin(), table.columns.end(), column);
  if (at == table.columns.end() || table.rows.size() < 2) return;
  const auto c = at - table.columns.begin();
  const std::string value = table.rows.front()[static_cast<size_t>(c)];
  for (const auto& row : table.rows) {
    if (row[static_cast<size_t>(c)] != value || value.empty()) return;
  }
  table.title += (table.title.empty() ? "" : ", ") + column + " " + value;
  table.columns.erase(at);
  table.right_aligned.erase(table.right_aligned.begin() + c);
  for (auto& row : table.rows) row.erase(row.begin() + c);
}

// Where the GPU wins --------------------------------------------------------------------------------------------------

Sentences::Line crossover_line(const Crossover& c) {
  const bool meta = c.gpu_device.starts_with("meta");
  std::string text = fmt::format("{}: {}.", short_name(c.sweep_key), verdict_sentence(c));
  if (meta) text = "[virtual devices] " + text;
  if (c.suspect) return {text + " Suspect: " + *c.suspect + ".", Tone::warning};
  if (c.verdict == "gpu_always" || c.verdict == "single") return {text, Tone::good};
  return {text, c.verdict == "gpu_never" ? Tone::bad : Tone::plain};
}

Sentences::Line nothing_to_compare(const Analysis& analysis) {
  bool cpu = false, gpu = false;
  std::string why;
  for (const AnalyzedPoint& point : analysis.points) {
    (point.row->side == "gpu" ? gpu : cpu) |= point.status == Status::ok;
    if (point.row->side == "gpu" && point.status != Status::ok && why.empty()) why = point.reason;
  }
  if (cpu && !gpu) {
    return {"No GPU was measured, so nothing is said about where one would win" + (why.empty() ? "." : ": " + why),
            Tone::warning};
  }
  if (gpu && !cpu) return {"No CPU was measured, so nothing is said about where the GPU wins.", Tone::warning};
  if (!cpu && !gpu) return {"Nothing was measured successfully; the reasons are below.", Tone::bad};
  return {"No point was measured on both sides, so nothing is said about where the GPU wins.", Tone::warning};
}

void add_verdicts(Document& document, const Analysis& analysis) {
  document.push_back(Heading{"Where the GPU wins"});
  Sentences sentences;
  for (const bool system : {false, true}) {  // what measures the machine itself comes after the work
    for (const Crossover& c : analysis.crossovers) {
      if (c.verdict != "too_few_points" && is_system_workload(c.workload) == system)
        sentences.lines.push_back(crossover_line(c));
    }
  }
  if (analysis.pairs.empty()) sentences.lines.push_back(nothing_to_compare(analysis));
  if (sentences.lines.empty())
    sentences.lines.push_back({"Both sides were measured, but no sweep over a batch: see the speedups below."});
  document.push_back(std::move(sentences));
}

// Machine and ceilings ------------------------------------------------------------------------------------------------

void add_machine(Document& document, const Analysis& analysis) {
  document.push_back(Heading{"Machine"});
  Sentences sentences;
  for (const std::string& line : machine_lines(*analysis.result)) sentences.lines.push_back({line});
  const Result& result = *analysis.result;
  std::set<int> processes;
  for (const TimingRow& row : result.timings) processes.insert(row.process);
  sentences.lines.push_back(
      {fmt::format("{} point{} in {} process{}; intervals are 95 % between processes{}.", result.points.size(),
                   result.points.size() == 1 ? "" : "s", processes.size(), processes.size() == 1 ? "" : "es",
                   processes.size() == 1 ? " and need two" : "")});
  if (result.partial)
    sentences.lines.push_back(
        {"This result is partial: the run was ended before all points were measured.", Tone::warning});
  document.push_back(std::move(sentences));
}

std::string peak_value(const Peak& peak) {
  if (peak.kind == "flop_per_s") return si(peak.value, "FLOP/s");
  if (peak.kind == "bytes_per_s") return si(peak.value, "B/s");
  return si(peak.value, "s");
}

std::string peak_name(const Peak& peak) {
  if (peak.kind == "flop_per_s") return "compute " + peak.precision;
  if (peak.kind == "bytes_per_s") return "memory, " + si_bytes(peak.working_set_bytes);
  return peak.launch.empty() ? "dispatch" : "launch, " + peak.launch;
}

void add_peaks(Document& document, const Analysis& analysis) {
  if (analysis.peaks.empty()) return;
  document.push_back(Heading{"Measured ceilings"});
  Table table{"",
              {"device", "ceiling", "threads", "placement", "value", "measured by"},
              {false, false, true, false, true, false},
              {}};
  for (const Peak& peak : analysis.peaks) {
    table.rows.push_back({peak.device, peak_name(peak), peak.threads > 0 ? std::to_string(peak.threads) : "",
                          peak.placement, peak_value(peak),
                          short_name(peak.source, {"device=" + peak.device, "precision=" + peak.precision})});
  }
  tell_once(table, "placement");
  document.push_back(std::move(table));
}

// Points --------------------------------------------------------------------------------------------------------------

/// "axis=value" of every axis that has one value over all of `keys`; they are told once, in the title.
std::vector<std::string> constant_segments(const std::vector<const AnalyzedPoint*>& points) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, size_t> count;
  for (const AnalyzedPoint* point : points) {
    for (const auto& [axis, value] : point->row->point.axes) {
      values[axis].insert(to_string(value));
      ++count[axis];
    }
  }
  std::vector<std::string> constant;
  for (const auto& [axis, value] : points.front()->row->point.axes) {
    if (axis != "device" && values[axis].size() == 1 && count[axis] == points.size())
      constant.push_back(axis + "=" + *values[axis].begin());
  }
  return constant;
}

std::string join(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : separator) + w;
  return text;
}

std::string throughput_text(const AnalyzedPoint& p) {
  if (!p.samples_per_s) return "";
  const bool bytes = p.row->sample_unit == "bytes";
  return si(*p.samples_per_s, bytes ? "B/s" : p.row->sample_unit + "/s");
}

/// The interval in the unit and with the prefix-free digits of percent, which a reader compares at once.
std::string half_width_text(const AnalyzedPoint& p) {
  if (!p.seconds || !p.seconds->low || !p.seconds->high) return "";
  return "±" +
         percent(std::max(p.seconds->value - *p.seconds->low, *p.seconds->high - p.seconds->value) / p.seconds->value);
}

std::vector<std::string> point_cells(const AnalyzedPoint& p, std::vector<std::string> left_out) {
  left_out.push_back("device=" + p.row->device);
  left_out.push_back(p.row->workload);
  std::string name = short_name(p.row->key, left_out);
  if (p.row->support == "emulated") name += " (emulated)";
  std::vector<std::string> flags = p.flags;
  if (!p.roofline_placement.empty()) flags.push_back("roofline of " + p.roofline_placement);
  return {name.empty() ? "-" : name,
          si(p.seconds->value, "s"),
          half_width_text(p),
          throughput_text(p),
          p.achieved_flop_per_s ? si(*p.achieved_flop_per_s, "FLOP/s") : "",
          p.achieved_bytes_per_s && p.row->workload != "peak" ? si(*p.achieved_bytes_per_s, "B/s") : "",
          p.roofline_fraction ? percent(*p.roofline_fraction) : "",
          p.bound == Bound::unknown ? "" : std::string(to_string(p.bound)),
          p.placement,
          join(flags, ", ")};
}

void add_points(Document& document, const Analysis& analysis) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const AnalyzedPoint*>> groups;
  for (const AnalyzedPoint& point : analysis.points) {
    if (point.status != Status::ok || !point.seconds) continue;
    const std::string name = point.row->workload + " on " + device_text(*point.row);
    auto& group = groups[name];
    if (group.empty()) order.push_back(name);
    group.push_back(&point);
  }
  if (order.empty()) return;
  document.push_back(Heading{"Points"});
  for (const std::string& name : order) {
    const auto& points = groups[name];
    const std::vector<std::string> constant = constant_segments(points);
    Table table{
        name + (constant.empty() ? "" : ": " + join(constant, " ")),
        {"point", "time", "interval", "throughput", "compute", "memory", "roofline", "bound by", "placement", "flags"},
        {false, true, true, true, true, true, true, false, false, false},
        {}};
    for (const AnalyzedPoint* p : points) table.rows.push_back(point_cells(*p, constant));
    tell_once(table, "placement");
    document.push_back(std::move(table));
  }
}

/// Segments that all keys of a table share: told once, in its title.
std::vector<std::string> shared_segments(const std::vector<std::string>& keys) {
  std::vector<std::string> shared;
  for (size_t start = keys.front().find('/'); start != std::string::npos;) {
    const size_t end = keys.front().find('/', start + 1);
    const std::string segment = keys.front().substr(start, end == std::string::npos ? end : end - start);
    const bool in_all = std::all_of(keys.begin(), keys.end(), [&segment](const std::string& key) {
      return (key + "/").find(segment + "/") != std::string::npos;
    });
    if (in_all && keys.size() > 1) shared.push_back(segment.substr(1));
    start = end;
  }
  return shared;
}

template <class Rows, class KeyOf>
std::vector<std::string> shared_segments(const Rows& rows, KeyOf key_of) {
  std::vector<std::string> keys;
  for (const auto& row : rows) keys.push_back(key_of(row));
  return shared_segments(keys);
}

std::string all_with(const std::vector<std::string>& shared) {
  return shared.empty() ? "" : "all with " + join(shared, " ");
}

void add_scaling(Document& document, const Analysis& analysis) {
  if (analysis.scaling.empty()) return;
  document.push_back(Heading{"CPU thread scaling"});
  const auto shared = shared_segments(analysis.scaling, [](const ThreadScaling& row) { return row.pair_key; });
  Table table{all_with(shared),
              {"point", "device", "threads", "speedup over one thread", "efficiency", "placement"},
              {false, false, true, true, true, false},
              {}};
  for (const ThreadScaling& s : analysis.scaling) {
    for (size_t i = 1; i < s.threads.size(); ++i) {
      table.rows.push_back({short_name(s.pair_key, shared), s.device, std::to_string(s.threads[i]),
                            x_text(s.speedup[i]), percent(s.efficiency[i]), s.placement});
    }
  }
  tell_once(table, "placement");
  document.push_back(std::move(table));
}

// Both sides ----------------------------------------------------------------------------------------------------------

std::string cpu_text(const Pair& pair) {
  for (const auto& [axis, value] : pair.cpu->row->point.axes) {
    if (axis == "threads") return fmt::format("{} threads={}", device_text(*pair.cpu->row), to_string(value));
  }
  return device_text(*pair.cpu->row);
}

void add_pairs(Document& document, const Analysis& analysis) {
  if (analysis.pairs.empty()) return;
  document.push_back(Heading{"Speedups: CPU time / GPU time"});
  const auto shared = shared_segments(analysis.pairs, [](const Pair& row) { return row.pair_key; });
  Table table{all_with(shared),
              {"point", "CPU", "CPU time", "GPU", "GPU time", "speedup [95 %]", "placement"},
              {false, false, true, false, true, true, false},
              {}};
  for (const Pair& pair : analysis.pairs) {
    table.rows.push_back({short_name(pair.pair_key, shared), cpu_text(pair),
                          with_half_width(pair.cpu_seconds, si(pair.cpu_seconds.value, "s")),
                          variant_text(device_text(*pair.gpu->row), pair.gpu_variant),
                          with_half_width(pair.gpu_seconds, si(pair.gpu_seconds.value, "s")),
                          speedup_text(pair.speedup), pair.placement});
  }
  tell_once(table, "placement");
  document.push_back(std::move(table));
}

void add_crossovers(Document& document, const Analysis& analysis) {
  if (analysis.crossovers.empty()) return;
  document.push_back(Heading{"Crossovers"});
  const auto shared = shared_segments(analysis.crossovers, [](const Crossover& row) { return row.sweep_key; });
  Table table{all_with(shared),
              {"sweep", "over", "GPU", "verdict", "winner changes between", "estimate", "placement"},
              {false, false, false, false, true, true, false},
              {}};
  for (const Crossover& c : analysis.crossovers) {
    std::string brackets, estimates;
    for (const auto& change : c.changes) {
      brackets +=
          fmt::format("{}{} and {}", brackets.empty() ? "" : "; ", axis_value_text(c.sweep_axis, change.last_before),
                      axis_value_text(c.sweep_axis, change.first_after));
      estimates += (estimates.empty() ? "" : "; ") + significant(change.estimate, 3);
    }
    table.rows.push_back({short_name(c.sweep_key, shared),
                          fmt::format("{} {} to {}", c.sweep_axis, axis_value_text(c.sweep_axis, c.batch.front()),
                                      axis_value_text(c.sweep_axis, c.batch.back())),
                          variant_text(c.gpu_device, c.gpu_variant), c.verdict + (c.suspect ? " (suspect)" : ""),
                          brackets, estimates, c.placement});
  }
  tell_once(table, "placement");
  document.push_back(std::move(table));
}

// What didn't work ----------------------------------------------------------------------------------------------------

void add_statuses(Document& document, const Analysis& analysis) {
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> groups;
  for (const AnalyzedPoint& point : analysis.points) {
    if (point.status == Status::ok) continue;
    const std::pair<std::string, std::string> group{to_string(point.status), point.reason};
    auto& keys = groups[group];
    if (keys.empty()) order.push_back(group);
    keys.push_back(point.row->key);
  }
  if (order.empty()) return;
  document.push_back(Heading{"Points without a result"});
  Table table{"", {"status", "points", "reason", "which"}, {false, true, false, false}, {}};
  for (const auto& group : order) {
    const auto& keys = groups[group];
    const std::string more = keys.size() > 1 ? fmt::format(" and {} more", keys.size() - 1) : "";
    table.rows.push_back({group.first, std::to_string(keys.size()), group.second, keys.front() + more});
  }
  tell_once(table, "placement");
  document.push_back(std::move(table));
}

void add_notes(Document& document, const Analysis& analysis) {
  Sentences sentences;
  for (const std::string& note : analysis.notes) sentences.lines.push_back({note + (note.ends_with('.') ? "" : ".")});
  for (const std::string& warning : analysis.result->warnings)
    sentences.lines.push_back({"Warning: " + warning, Tone::warning});
  if (sentences.lines.empty()) return;
  document.push_back(Heading{"Notes"});
  document.push_back(std::move(sentences));
}

}  // namespace

Document make_document(const Analysis& analysis) {
  Document document;
  add_verdicts(document, analysis);
  add_machine(document, analysis);
  add_crossovers(document, analysis);
  add_pairs(document, analysis);
  add_peaks(document, analysis);
  add_points(document, analysis);
  add_scaling(document, analysis);
  add_statuses(document, analysis);
  add_notes(document, analysis);
  return document;
}

}  // namespace dlbench
