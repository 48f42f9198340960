// report.json: the Analysis as data (results/README.md lists every field).
#include "core/base/json.h"
#include "core/report/report.h"

namespace dlbench {

namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json estimate_json(const Estimate& e) {
  return {{"value", e.value}, {"low", or_null(e.low)}, {"high", or_null(e.high)}, {"processes", e.processes}};
}

Json point_json(const AnalyzedPoint& p) {
  const std::optional<Estimate>& s = p.seconds;
  return {{"key", p.row->key},
          {"status", to_string(p.status)},
          {"reason", p.reason},
          {"virtual", p.row->device_kind == "meta"},
          {"support", p.row->support},
          {"source", text_or_null(p.row->source)},
          {"placement", text_or_null(p.placement)},
          {"timings_used", p.timings_used},
          {"timings_left_out", p.timings_left_out},
          {"processes", s ? s->processes : 0},
          {"seconds", s ? Json(s->value) : Json(nullptr)},
          {"seconds_low", s ? or_null(s->low) : Json(nullptr)},
          {"seconds_high", s ? or_null(s->high) : Json(nullptr)},
          {"seconds_minimum", s ? Json(s->minimum) : Json(nullptr)},
          {"device_seconds", p.device_seconds ? Json(p.device_seconds->value) : Json(nullptr)},
          {"samples_per_s", or_null(p.samples_per_s)},
          {"samples_per_s_low", or_null(p.samples_per_s_low)},
          {"samples_per_s_high", or_null(p.samples_per_s_high)},
          {"sample_unit", p.row->sample_unit},
          {"achieved_flop_per_s", or_null(p.achieved_flop_per_s)},
          {"achieved_bytes_per_s", or_null(p.achieved_bytes_per_s)},
          {"arithmetic_intensity", or_null(p.arithmetic_intensity)},
          {"roofline_seconds", or_null(p.roofline_seconds)},
          {"roofline_fraction", or_null(p.roofline_fraction)},
          {"roofline_placement", text_or_null(p.roofline_placement)},
          {"roofline_missing", text_or_null(p.roofline_missing)},
          {"bound", to_string(p.bound)},
          {"flags", p.flags}};
}

Json peak_json(const Peak& p) {
  return {{"device", p.device},
          {"kind", p.kind},
          {"precision", text_or_null(p.precision)},
          {"value", p.value},
          {"working_set_bytes", p.working_set_bytes > 0 ? Json(p.working_set_bytes) : Json(nullptr)},
          {"threads", p.threads > 0 ? Json(p.threads) : Json(nullptr)},
          {"launch", text_or_null(p.launch)},
          {"placement", text_or_null(p.placement)},
          {"source", p.source}};
}

Json pair_json(const Pair& p) {
  return {{"pair_key", p.pair_key},
          {"workload", p.workload},
          {"precision", p.precision},
          {"cpu_key", p.cpu->row->key},
          {"gpu_key", p.gpu->row->key},
          {"gpu_variant", text_or_null(p.gpu_variant)},
          {"virtual", p.gpu->row->device_kind == "meta"},
          {"cpu_seconds", estimate_json(p.cpu_seconds)},
          {"gpu_seconds", estimate_json(p.gpu_seconds)},
          {"speedup", estimate_json(p.speedup)},
          {"placement", text_or_null(p.placement)}};
}

Json crossover_json(const Crossover& c) {
  Json steps = Json::array();
  for (size_t i = 0; i < c.batch.size(); ++i) {
    steps.push_back({{"sweep_value", c.batch[i]},
                     {"speedup", c.speedup[i].value},
                     {"low", or_null(c.speedup[i].low)},
                     {"high", or_null(c.speedup[i].high)},
                     {"winner", to_string(c.winner[i])}});
  }
  Json changes = Json::array();
  for (const auto& change : c.changes) {
    changes.push_back({{"from", to_string(change.from)},
                       {"to", to_string(change.to)},
                       {"last_before", change.last_before},
                       {"first_after", change.first_after},
                       {"estimate", change.estimate > 0 ? Json(change.estimate) : Json(nullptr)}});
  }
  return {{"sweep_key", c.sweep_key},
          {"sweep_axis", c.sweep_axis},
          {"workload", c.workload},
          {"precision", c.precision},
          {"cpu_device", c.cpu_device},
          {"gpu_device", c.gpu_device},
          {"gpu_variant", text_or_null(c.gpu_variant)},
          {"virtual", c.gpu_device.starts_with("meta")},
          {"placement", text_or_null(c.placement)},
          {"verdict", c.verdict},
          {"suspect", or_null(c.suspect)},
          {"changes", std::move(changes)},
          {"steps", std::move(steps)}};
}

Json scaling_json(const ThreadScaling& s) {
  return {{"pair_key", s.pair_key}, {"device", s.device},   {"placement", text_or_null(s.placement)},
          {"threads", s.threads},   {"speedup", s.speedup}, {"efficiency", s.efficiency}};
}

template <class Rows, class Convert>
Json array_of(const Rows& rows, Convert convert) {
  Json json = Json::array();
  for (const auto& row : rows) json.push_back(convert(row));
  return json;
}

}  // namespace

Json render_json(const Analysis& analysis, const std::vector<ReportSource>& sources) {
  Json files = Json::array();
  for (const ReportSource& source : sources) files.push_back({{"file", source.file}, {"sha256", source.sha256}});
  return {{"schema_version", kReportSchemaVersion},
          {"kind", "report"},
          {"results", std::move(files)},
          {"partial", analysis.result->partial},
          {"tool", analysis.result->tool},
          {"environment", analysis.result->environment},
          {"points", array_of(analysis.points, point_json)},
          {"peaks", array_of(analysis.peaks, peak_json)},
          {"pairs", array_of(analysis.pairs, pair_json)},
          {"crossovers", array_of(analysis.crossovers, crossover_json)},
          {"scaling", array_of(analysis.scaling, scaling_json)},
          {"notes", analysis.notes},
          {"warnings", analysis.result->warnings}};
}

}  // namespace dlbench
