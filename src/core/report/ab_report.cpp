#include "core/report/ab_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/analysis/statistics.h"
#include "core/base/error.h"
#include "core/base/units.h"

namespace dlbench {

namespace {

std::string change(double effect) {
  return fmt::format("{:+.1f} %", 100 * effect);
}

std::string interval(const AbJudgement& j) {
  return j.low && j.high ? fmt::format("{} to {}", change(*j.low), change(*j.high)) : "";
}

std::string tool_text(const Json& tool) {
  const auto field = [&tool](const char* name) {
    return tool.contains(name) && tool.at(name).is_string() ? tool.at(name).get<std::string>() : std::string();
  };
  const std::string commit = field("commit");
  return "dlbench " + field("version") + (commit.empty() ? "" : ", " + commit);
}

int count(const AbOutcome& outcome, AbVerdict verdict) {
  return static_cast<int>(std::count_if(outcome.points.begin(), outcome.points.end(),
                                        [verdict](const AbJudgement& j) { return j.verdict == verdict; }));
}

std::string plural(int n, const std::string& word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

/// Regressions first, then what else was suspected, the largest change first.
std::vector<size_t> suspects_in_order(const AbOutcome& outcome) {
  std::vector<size_t> order;
  for (size_t i = 0; i < outcome.points.size(); ++i) {
    if (outcome.points[i].suspect && outcome.points[i].verdict != AbVerdict::not_judged) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const AbJudgement &x = outcome.points[a], &y = outcome.points[b];
    if (x.verdict != y.verdict) return x.verdict < y.verdict;
    return x.effect.value_or(0) > y.effect.value_or(0);
  });
  return order;
}

Table suspects_table(const AbSession& session, const AbOutcome& outcome) {
  Table table;
  table.title = "What the screen suspected, judged on fresh rounds";
  table.columns = {"verdict", "change", "90 % interval", "p", "rounds", "base itself", "point"};
  table.right_aligned = {false, true, true, true, true, true, false};
  for (const size_t i : suspects_in_order(outcome)) {
    const AbJudgement& j = outcome.points[i];
    table.rows.push_back({std::string(to_string(j.verdict)), j.effect ? change(*j.effect) : "", interval(j),
                          j.p_value ? fmt::format("{:.1e}", *j.p_value) : "", std::to_string(j.rounds),
                          j.null_effect ? change(*j.null_effect) : "", session.points[i].key});
  }
  return table;
}

Table failures_table(const AbSession& session) {
  Table table;
  table.title = "Not measured";
  table.columns = {"status", "in", "point", "reason"};
  table.right_aligned = {false, false, false, false};
  for (const AbPoint& point : session.points) {
    if (point.failed_in.empty()) continue;
    table.rows.push_back({std::string(to_string(point.status)), point.failed_in, point.key, point.reason});
  }
  return table;
}

Sentences::Line verdict_line(const AbSession& session, const AbOutcome& outcome) {
  const int regressions = count(outcome, AbVerdict::regression), improvements = count(outcome, AbVerdict::improvement);
  if (outcome.null_alarm) {
    return {
        "The base program differed from itself: this machine changes too much to judge by, and nothing is called. Run "
        "again when it is quieter.",
        Tone::warning};
  }
  if (!outcome.screened) return {"It ended before every point was screened: nothing is called.", Tone::warning};
  const auto wrong = std::count_if(session.points.begin(), session.points.end(), [](const AbPoint& p) {
    return p.failed_in == "candidate" && (p.status == Status::mismatch || p.status == Status::invalid);
  });
  std::string text;
  if (wrong > 0) text = fmt::format("The candidate is wrong at {}. ", plural(static_cast<int>(wrong), "point"));
  if (regressions > 0) {
    text += fmt::format("The candidate is slower at {}", plural(regressions, "point"));
  } else {
    text += "No point is slower";
  }
  if (improvements > 0) text += fmt::format(", and faster at {}", improvements);
  return {text + ".", regressions > 0 || wrong > 0 ? Tone::bad : Tone::good};
}

/// "half of the points at 2.1 %, nine of ten at 4 %"
std::string sight(const AbOutcome& outcome) {
  std::vector<double> effects;
  for (const AbJudgement& j : outcome.points) {
    if (j.detectable_effect && !j.suspect) effects.push_back(*j.detectable_effect);
  }
  if (effects.empty()) return "";
  std::sort(effects.begin(), effects.end());
  return fmt::format(
      "Of a slowdown this run would have suspected, with 80 % probability: {} at half of the points, {} at nine "
      "of ten, {} at all.",
      percent(effects[(effects.size() - 1) / 2]), percent(effects[(effects.size() - 1) * 9 / 10]),
      percent(effects.back()));
}

Sentences summary(const AbSession& session, const AbOutcome& outcome, const AbContext& context) {
  Sentences s;
  s.lines.push_back(verdict_line(session, outcome));
  if (!session.stopped.empty()) {
    s.lines.push_back({fmt::format("It was stopped early: {}.", session.stopped), Tone::warning});
  }
  const int measured = static_cast<int>(std::count_if(session.points.begin(), session.points.end(),
                                                      [](const AbPoint& p) { return p.status == Status::ok; }));
  const int failed = static_cast<int>(std::count_if(session.points.begin(), session.points.end(),
                                                    [](const AbPoint& p) { return !p.failed_in.empty(); }));
  s.lines.push_back({fmt::format(
      "{} measured: {}, {}, {} equivalent, {} inconclusive; {} failed, {} can't be measured here.",
      plural(measured, "point"), plural(count(outcome, AbVerdict::regression), "regression"),
      plural(count(outcome, AbVerdict::improvement), "improvement"), count(outcome, AbVerdict::equivalent),
      count(outcome, AbVerdict::inconclusive), failed, static_cast<int>(session.points.size()) - measured - failed)});
  s.lines.push_back({fmt::format(
      "{} screening and {} confirming rounds in {:.0f} s; {} suspected; {} thrown away because the machine changed its "
      "state in between.",
      session.screen_rounds, session.confirm_rounds, session.elapsed_seconds, plural(outcome.suspects, "point"),
      plural(session.disturbed, "measurement"))});
  if (const std::string seen = sight(outcome); !seen.empty()) s.lines.push_back({seen});
  s.lines.push_back({fmt::format(
      "Rule: changes beyond {}, estimated at {} or more, with at most {} probability of any wrong accusation.",
      percent(context.rule.margin), percent(context.rule.min_effect), percent(context.rule.family_wise_error))});
  return s;
}

std::map<std::string, int> placements_of(const AbPoint& point) {
  std::map<std::string, int> labels;
  for (const auto* rounds : {&point.screen, &point.confirm}) {
    for (const AbRound& round : *rounds) ++labels[round.placement];
  }
  return labels;
}

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json rounds_json(const std::vector<AbRound>& rounds) {
  Json rows = Json::array();
  for (const AbRound& r : rounds) {
    rows.push_back({{"base_seconds", r.base_seconds},
                    {"ratio", r.ratio},
                    {"null_ratio", or_null(r.null_ratio)},
                    {"placement", r.placement}});
  }
  return rows;
}

Json point_json(const AbPoint& point, const AbJudgement& j) {
  return {{"key", point.key},
          {"status", to_string(point.status)},
          {"reason", point.reason},
          {"failed_in", point.failed_in.empty() ? Json(nullptr) : Json(point.failed_in)},
          {"verdict", to_string(j.verdict)},
          {"suspect", j.suspect},
          {"effect", or_null(j.effect)},
          {"effect_low", or_null(j.low)},
          {"effect_high", or_null(j.high)},
          {"p_value", or_null(j.p_value)},
          {"rounds", j.rounds},
          {"null_effect", or_null(j.null_effect)},
          {"null_alarm", j.null_alarm},
          {"detectable_effect", or_null(j.detectable_effect)},
          {"placements", placements_of(point)},
          {"screen", rounds_json(point.screen)},
          {"confirm", rounds_json(point.confirm)}};
}

std::vector<AbRound> rounds_from_json(const Json& rows) {
  std::vector<AbRound> rounds;
  for (const Json& row : rows) {
    AbRound r;
    r.base_seconds = row.at("base_seconds").get<double>();
    r.ratio = row.at("ratio").get<double>();
    if (row.at("null_ratio").is_number()) r.null_ratio = row.at("null_ratio").get<double>();
    r.placement = row.at("placement").get<std::string>();
    rounds.push_back(std::move(r));
  }
  return rounds;
}

}  // namespace

Document ab_document(const AbSession& session, const AbOutcome& outcome, const AbContext& context) {
  Document document;
  document.push_back(
      Heading{fmt::format("{}: {} ({}) against {} ({})", context.config, context.candidate,
                          tool_text(session.candidate_tool), context.base, tool_text(session.base_tool))});
  document.push_back(summary(session, outcome, context));
  document.push_back(suspects_table(session, outcome));
  document.push_back(failures_table(session));
  return document;
}

Json ab_json(const AbSession& session, const AbOutcome& outcome, const AbContext& context) {
  const AbRule& rule = context.rule;
  Json points = Json::array();
  for (size_t i = 0; i < session.points.size(); ++i) points.push_back(point_json(session.points[i], outcome.points[i]));
  return {{"schema_version", kAbSchemaVersion},
          {"kind", "ab"},
          {"partial", !session.stopped.empty() || !outcome.screened},
          {"stopped", session.stopped.empty() ? Json(nullptr) : Json(session.stopped)},
          {"run", {{"started_utc", context.started_utc}, {"command_line", context.command_line}}},
          {"base", {{"program", context.base}, {"tool", session.base_tool}}},
          {"candidate", {{"program", context.candidate}, {"tool", session.candidate_tool}}},
          {"environment", context.environment},
          {"config", context.merged_config},
          {"rule",
           {{"family_wise_error", rule.family_wise_error},
            {"margin", rule.margin},
            {"min_effect", rule.min_effect},
            {"min_effect_seconds", rule.min_effect_seconds},
            {"equivalence", rule.equivalence},
            {"screen_rounds", rule.screen_rounds},
            {"looks", rule.looks}}},
          {"summary",
           {{"regressions", count(outcome, AbVerdict::regression)},
            {"improvements", count(outcome, AbVerdict::improvement)},
            {"equivalent", count(outcome, AbVerdict::equivalent)},
            {"inconclusive", count(outcome, AbVerdict::inconclusive)},
            {"suspects", outcome.suspects},
            {"level", outcome.level},
            {"screened", outcome.screened},
            {"null_alarm", outcome.null_alarm},
            {"screen_rounds", session.screen_rounds},
            {"confirm_rounds", session.confirm_rounds},
            {"disturbed", session.disturbed},
            {"elapsed_seconds", session.elapsed_seconds}}},
          {"points", points}};
}

AbSession ab_session_from_json(const Json& json, const std::string& origin) {
  try {
    if (json.at("kind") != "ab") throw InputError(fmt::format("{}: /kind: isn't a result of `dlbench ab`", origin));
    AbSession session;
    session.base_tool = json.at("base").at("tool");
    session.candidate_tool = json.at("candidate").at("tool");
    const Json& summary = json.at("summary");
    session.screen_rounds = summary.at("screen_rounds").get<int>();
    session.confirm_rounds = summary.at("confirm_rounds").get<int>();
    session.disturbed = summary.at("disturbed").get<int>();
    session.elapsed_seconds = summary.at("elapsed_seconds").get<double>();
    if (json.at("stopped").is_string()) session.stopped = json.at("stopped").get<std::string>();
    for (const Json& row : json.at("points")) {
      AbPoint point;
      point.key = row.at("key").get<std::string>();
      point.status = parse_status(row.at("status").get<std::string>());
      point.reason = row.at("reason").get<std::string>();
      if (row.at("failed_in").is_string()) point.failed_in = row.at("failed_in").get<std::string>();
      point.screen = rounds_from_json(row.at("screen"));
      point.confirm = rounds_from_json(row.at("confirm"));
      session.points.push_back(std::move(point));
    }
    return session;
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}: isn't a whole result of `dlbench ab`: {}", origin, error.what()));
  }
}

}  // namespace dlbench
