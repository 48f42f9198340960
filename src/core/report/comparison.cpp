#include "core/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/units.h"

namespace dlbench {

namespace {

constexpr size_t kConsoleRows = 40, kMarkdownRows = 500;

std::string count_text(int n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string interval_text(const JudgedPoint& j) {
  return j.low ? fmt::format("{} to {}", change_text(*j.low), change_text(*j.high)) : "";
}

/// "results/base.json (dlbench 0.1.0, commit 63b3843be64a, 5 processes, 2026-11-30T22:39:34Z)"
std::string session_text(const Session& session) {
  const Result& r = *session.result;
  const auto text = [](const Json& json, const char* name) {
    return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : std::string("unknown");
  };
  return fmt::format("{} (dlbench {}, commit {}, {} process{}, {})", session.file, text(r.tool, "version"),
                     text(r.tool, "commit"), r.processes.size(), r.processes.size() == 1 ? "" : "es",
                     text(r.run, "started_utc"));
}

bool changed(Change change) {
  return change == Change::regression || change == Change::improvement || change == Change::invalid;
}

Tone tone_of(const Comparison& c) {
  switch (c.exit_code()) {
    case 0:
      return Tone::good;
    case 3:
      return Tone::warning;
    default:
      return Tone::bad;
  }
}

/// What a gate of this noise can see at all: one that sees nothing must not look like one that found nothing.
std::string detectable_sentence(const Comparison& c) {
  std::vector<double> effects;
  for (const ComparedPoint& p : c.points) {
    if (p.judged && p.judged->detectable) effects.push_back(*p.judged->detectable);
  }
  if (effects.empty()) return "";
  const double worst = *std::max_element(effects.begin(), effects.end());
  return fmt::format(
      "Slowdowns that would have been found with 80 % probability: from {:.1f} % on the median point, from "
      "{:.1f} % on every point.",
      100 * std::expm1(median(effects)), 100 * std::expm1(worst));
}

void add_headline(Document& document, const Comparison& c) {
  document.push_back(Heading{"Comparison"});
  Sentences sentences;
  sentences.lines.push_back({comparison_headline(c), tone_of(c)});
  for (const std::string& reason : c.incomparable)
    sentences.lines.push_back({"Incomparable: " + reason + ".", Tone::bad});
  if (const std::string seen = detectable_sentence(c); !seen.empty()) sentences.lines.push_back({seen});
  for (const auto& [name, side] : {std::pair("Base", &c.base), std::pair("Candidate", &c.cand)}) {
    for (const Session& s : *side) sentences.lines.push_back({fmt::format("{}: {}.", name, session_text(s))});
  }
  for (const std::string& line : machine_lines(*c.base.front().result)) sentences.lines.push_back({line});
  document.push_back(std::move(sentences));
}

void add_points(Document& document, const std::vector<const ComparedPoint*>& points, const std::string& heading,
                size_t most) {
  if (points.empty()) return;
  document.push_back(Heading{heading});
  Table table{"",
              {"point", "base", "candidate", "change", "95 % interval", "verdict", "processes", "placement"},
              {false, true, true, true, true, false, true, false},
              {}};
  for (size_t i = 0; i < std::min(points.size(), most); ++i) {
    const ComparedPoint& p = *points[i];
    const std::string processes =
        p.base && p.cand ? fmt::format("{} / {}", p.base->processes, p.cand->processes) : std::string();
    table.rows.push_back({p.key, p.base ? si(p.base->value, "s") : "", p.cand ? si(p.cand->value, "s") : "",
                          p.judged ? change_text(p.judged->effect) : "", p.judged ? interval_text(*p.judged) : "",
                          std::string(to_string(p.change)), processes, p.placement});
  }
  const size_t more = points.size() - table.rows.size();
  document.push_back(std::move(table));
  if (more > 0) document.push_back(Sentences{{{fmt::format("… and {} more; --json FILE has all of them.", more)}}});
}

/// Points that aren't a verdict about time, by reason.
void add_reasons(Document& document, const Comparison& c) {
  std::map<std::pair<std::string, std::string>, std::vector<const ComparedPoint*>> groups;
  std::vector<const ComparedPoint*> unresolved;
  for (const ComparedPoint& p : c.points) {
    if (p.reason.empty()) continue;
    // Sentences about the size of a slowdown differ in a number only; the headline has that number.
    const bool sized = p.change == Change::inconclusive && p.judged && p.judged->enough && !c.drifted;
    groups[{std::string(to_string(p.change)), sized ? std::string("too noisy for a verdict") : p.reason}].push_back(&p);
  }
  if (groups.empty()) return;
  document.push_back(Heading{"Points without a verdict"});
  Table table{"", {"verdict", "points", "reason", "which", "what to do"}, {false, true, false, false, false}, {}};
  for (const auto& [group, points] : groups) {
    // Of several commands, the one that helps the most demanding point.
    const auto hardest = std::max_element(points.begin(), points.end(), [](const auto* a, const auto* b) {
      const auto need = [](const ComparedPoint* p) {
        return !p->judged ? 0 : p->judged->processes_needed == 0 ? 1000 : p->judged->processes_needed;
      };
      return need(a) < need(b);
    });
    const std::string more = points.size() > 1 ? fmt::format(" and {} more", points.size() - 1) : "";
    table.rows.push_back(
        {group.first, std::to_string(points.size()), group.second, points.front()->key + more, (*hardest)->resolve});
  }
  document.push_back(std::move(table));
}

void add_controls(Document& document, const Comparison& c) {
  if (c.controls.empty()) return;
  document.push_back(Heading{"Control kernels"});
  Table table{"",
              {"control", "device", "base", "candidate", "change", "+-", "verdict", "placement"},
              {false, false, true, true, true, true, false, false},
              {}};
  for (const ComparedControl& k : c.controls) {
    table.rows.push_back({k.name, k.device, si(k.base_seconds, "s"), si(k.cand_seconds, "s"),
                          change_text(k.judged.effect),
                          k.judged.half_width ? fmt::format("{:.1f} %", 100 * std::expm1(*k.judged.half_width)) : "",
                          k.judged.shifted ? "shifted" : "steady", k.placement});
  }
  document.push_back(std::move(table));
}

void add_notes(Document& document, const Comparison& c) {
  Sentences sentences;
  for (const ComparedNoise& n : c.noise) {
    const std::string prior = n.used.prior.degrees > 0
                                  ? fmt::format("{:.2f} % between processes (d0 = {:.3g})",
                                                100 * std::sqrt(n.used.prior.variance), n.used.prior.degrees)
                                  : std::string("no variance in common");
    sentences.lines.push_back({fmt::format("Noise of {}: {} between sessions ({}), {}.", n.given.device_class,
                                           fmt::format("{:.2f} %", 100 * n.used.between_session_sd),
                                           n.used.from_sessions ? "seen in these sessions" : n.source, prior)});
  }
  for (const std::string& note : c.notes) sentences.lines.push_back({note + "."});
  for (const std::string& warning : c.warnings) sentences.lines.push_back({"Warning: " + warning, Tone::warning});
  if (sentences.lines.empty()) return;
  document.push_back(Heading{"Notes"});
  document.push_back(std::move(sentences));
}

std::vector<const ComparedPoint*> select(const Comparison& c, bool changes) {
  std::vector<const ComparedPoint*> points;
  for (const ComparedPoint& p : c.points) {
    if (changed(p.change) == changes) points.push_back(&p);
  }
  if (changes) {
    std::stable_sort(points.begin(), points.end(), [](const auto* a, const auto* b) {
      const auto size = [](const ComparedPoint* p) { return p->judged ? p->judged->effect : 1e9; };
      return size(a) > size(b);
    });
  }
  return points;
}

Document make(const Comparison& c, bool all_points, size_t most) {
  Document document;
  add_headline(document, c);
  add_points(document, select(c, true), "What changed", most);
  if (all_points) add_points(document, select(c, false), "What didn't", most);
  add_reasons(document, c);
  add_controls(document, c);
  add_notes(document, c);
  return document;
}

}  // namespace

std::string change_text(double effect) {
  const double percent = 100 * std::expm1(effect);
  return fmt::format("{}{:.{}f} %", percent < 0 ? "-" : "+", std::abs(percent), std::abs(percent) < 99.95 ? 1 : 0);
}

std::string change_sentence(const ComparedPoint& p) {
  if (!p.judged || !p.base || !p.cand) return p.reason;
  const double percent = 100 * std::expm1(p.judged->effect);
  std::string text = fmt::format("{:.1f} % {} ({} -> {} per step", std::abs(percent), percent < 0 ? "faster" : "slower",
                                 si(p.base->value, "s"), si(p.cand->value, "s"));
  if (p.judged->low) text += ", 95 % interval " + interval_text(*p.judged);
  return text + ")";
}

std::string comparison_headline(const Comparison& c) {
  if (!c.incomparable.empty()) return "The two sides can't be compared: they were measured under different conditions.";
  const int total = static_cast<int>(c.points.size());
  std::vector<std::string> parts;
  for (const Change change : {Change::invalid, Change::regression, Change::improvement, Change::equivalent,
                              Change::inconclusive, Change::incomparable, Change::missing}) {
    const int n = c.count(change);
    const bool noun = change == Change::regression || change == Change::improvement;
    if (n > 0)
      parts.push_back(noun ? count_text(n, to_string(change).data()) : fmt::format("{} {}", n, to_string(change)));
  }
  std::string text = count_text(total, "point") + ": ";
  for (size_t i = 0; i < parts.size(); ++i) text += (i ? ", " : "") + parts[i];
  text += ".";
  if (c.drifted)
    text += " A control kernel shifted: the machine changed between the sides, so no regression is concluded.";
  return text;
}

Document make_comparison_document(const Comparison& comparison, bool all_points) {
  return make(comparison, all_points, kConsoleRows);
}

std::string render_comparison_console(const Comparison& comparison, const ConsoleOptions& options) {
  return render_console(make(comparison, true, kConsoleRows), options);
}

std::string render_comparison_markdown(const Comparison& comparison) {
  std::string text = render_markdown(make(comparison, false, kConsoleRows));
  Document rest;
  add_points(rest, select(comparison, false), "What didn't", kMarkdownRows);
  if (rest.empty()) return text;
  return text + "\n<details><summary>Points that didn't change</summary>\n\n" + render_markdown(rest) +
         "\n</details>\n";
}

}  // namespace dlbench
