// comparison.json: the Comparison as data (results/README.md lists every field).
#include <cmath>

#include "core/report/comparison.h"

namespace dlbench {

namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json relative(const std::optional<double>& effect) {
  return effect ? Json(std::expm1(*effect)) : Json(nullptr);
}

Json member_or_null(const Json& json, const char* name) {
  return json.contains(name) ? json[name] : Json(nullptr);
}

Json sessions_json(const std::vector<Session>& side) {
  Json rows = Json::array();
  for (const Session& s : side) {
    rows.push_back({{"file", s.file},
                    {"sha256", s.sha256},
                    {"run_id", member_or_null(s.result->run, "id")},
                    {"commit", member_or_null(s.result->tool, "commit")},
                    {"fingerprint", member_or_null(s.result->environment, "fingerprint")},
                    {"processes", s.result->processes.size()},
                    {"partial", s.result->partial}});
  }
  return rows;
}

Json estimate_json(const std::optional<Estimate>& e) {
  if (!e) return nullptr;
  return {{"value", e->value},
          {"low", or_null(e->low)},
          {"high", or_null(e->high)},
          {"minimum", e->minimum},
          {"processes", e->processes}};
}

Json point_json(const ComparedPoint& p) {
  const std::optional<JudgedPoint>& j = p.judged;
  const bool tested = j && j->enough, estimated = j && j->degrees > 0;
  const auto only_if = [](bool condition, double value) { return condition ? Json(value) : Json(nullptr); };
  return {{"key", p.key},
          {"workload", p.workload},
          {"device", p.device},
          {"verdict", to_string(p.change)},
          {"reason", text_or_null(p.reason)},
          {"resolve", text_or_null(p.resolve)},
          {"placement", text_or_null(p.placement)},
          {"steps_per_timing", p.steps_per_timing > 0 ? Json(p.steps_per_timing) : Json(nullptr)},
          {"processes_left_out", p.processes_left_out},
          {"base", estimate_json(p.base)},
          {"candidate", estimate_json(p.cand)},
          {"change", j ? Json(std::expm1(j->effect)) : Json(nullptr)},
          {"change_low", j ? relative(j->low) : Json(nullptr)},
          {"change_high", j ? relative(j->high) : Json(nullptr)},
          {"log_effect", j ? Json(j->effect) : Json(nullptr)},
          {"log_standard_error", only_if(estimated, estimated ? j->standard_error : 0)},
          {"degrees", only_if(estimated, estimated ? j->degrees : 0)},
          {"p_slower", only_if(tested, tested ? j->p_slower : 0)},
          {"q_slower", only_if(tested, tested ? j->q_slower : 0)},
          {"p_faster", only_if(tested, tested ? j->p_faster : 0)},
          {"q_faster", only_if(tested, tested ? j->q_faster : 0)},
          {"detectable", j ? relative(j->detectable) : Json(nullptr)},
          {"processes_needed", j && j->processes_needed > 0 ? Json(j->processes_needed) : Json(nullptr)}};
}

Json controls_json(const Comparison& c) {
  Json rows = Json::array();
  for (const ComparedControl& k : c.controls) {
    rows.push_back({{"name", k.name},
                    {"device", k.device},
                    {"placement", text_or_null(k.placement)},
                    {"base_seconds", k.base_seconds},
                    {"candidate_seconds", k.cand_seconds},
                    {"change", std::expm1(k.judged.effect)},
                    {"half_width", relative(k.judged.half_width)},
                    {"shifted", k.judged.shifted}});
  }
  return rows;
}

Json noise_json(const Comparison& c) {
  Json rows = Json::array();
  for (const ComparedNoise& n : c.noise) {
    rows.push_back({{"device_class", n.given.device_class},
                    {"points", n.used.points},
                    {"source", n.used.from_sessions ? "sessions" : n.source},
                    {"between_session_sd", n.used.between_session_sd},
                    {"prior_variance", n.used.prior.variance},
                    {"prior_degrees", n.used.prior.degrees},
                    {"additive_seconds", n.given.additive_seconds}});
  }
  return rows;
}

Json summary_json(const Comparison& c) {
  Json summary = Json::object();
  for (const Change change : {Change::regression, Change::improvement, Change::equivalent, Change::inconclusive,
                              Change::incomparable, Change::missing, Change::invalid}) {
    summary[std::string(to_string(change))] = c.count(change);
  }
  return summary;
}

}  // namespace

Json comparison_json(const Comparison& c) {
  Json points = Json::array();
  for (const ComparedPoint& p : c.points) points.push_back(point_json(p));
  const JudgeOptions& o = c.options.judge;
  return {{"schema_version", kComparisonSchemaVersion},
          {"kind", "comparison"},
          {"verdict", c.verdict()},
          {"exit_code", c.exit_code()},
          {"summary", summary_json(c)},
          {"drifted", c.drifted},
          {"base", sessions_json(c.base)},
          {"candidate", sessions_json(c.cand)},
          {"noise_profile", text_or_null(c.options.profile_file)},
          {"options",
           {{"margin", o.margin},
            {"false_rate", o.false_rate},
            {"min_effect", o.min_effect},
            {"equivalence", o.equivalence},
            {"control_shift", o.control_shift}}},
          {"incomparable", c.incomparable},
          {"noise", noise_json(c)},
          {"controls", controls_json(c)},
          {"points", std::move(points)},
          {"notes", c.notes},
          {"warnings", c.warnings}};
}

}  // namespace dlbench
