// The sentences of a report: who wins where, and on what machine.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"
#include "core/report/document.h"

namespace dlbench {

namespace {

std::vector<std::string> segments_of(const std::string& key) {
  std::vector<std::string> segments;
  for (size_t start = 0; start <= key.size();) {
    const size_t end = std::min(key.find('/', start), key.size());
    segments.push_back(key.substr(start, end - start));
    start = end + 1;
  }
  return segments;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

std::string times(double factor) {
  return significant(factor, factor < 0.1 ? 2 : 3) + "x";
}

std::string at(const Crossover& c, double value) {
  return axis_value_text(c.sweep_axis, value);
}

/// "64" or "64 to 1024".
std::string range(const Crossover& c, size_t first, size_t last) {
  return first == last ? at(c, c.batch[first]) : at(c, c.batch[first]) + " to " + at(c, c.batch[last]);
}

/// The lowest and highest speedup over the batches that `winner` wins.
std::string speedups(const Crossover& c, Winner winner) {
  double low = INFINITY, high = 0;
  for (size_t i = 0; i < c.batch.size(); ++i) {
    if (c.winner[i] != winner) continue;
    const double factor = winner == Winner::gpu ? c.speedup[i].value : 1 / c.speedup[i].value;
    low = std::min(low, factor);
    high = std::max(high, factor);
  }
  if (times(low) == times(high)) return times(low);
  return times(low) + " to " + times(high);
}

std::string ties(const Crossover& c) {
  std::string list;
  for (size_t i = 0; i < c.batch.size(); ++i) {
    if (c.winner[i] == Winner::tie) list += (list.empty() ? "" : ", ") + at(c, c.batch[i]);
  }
  return list.empty() ? "" : fmt::format("; no winner at {}", list);
}

std::string name_of(Winner winner, const Crossover& c) {
  switch (winner) {
    case Winner::cpu:
      return fmt::format("the CPU ({})", c.cpu_device);
    case Winner::gpu:
      return fmt::format("the GPU ({}{})", c.gpu_device, c.gpu_variant.empty() ? "" : ", " + c.gpu_variant);
    case Winner::tie:
      return "nobody";
  }
  return "";
}

std::string one_change(const Crossover& c) {
  const Crossover::Change& change = c.changes.front();
  std::string text = fmt::format("{} wins from {} {} up, {} up to {}", name_of(change.to, c), c.sweep_axis,
                                 at(c, change.first_after), name_of(change.from, c), at(c, change.last_before));
  if (change.estimate > 0) {
    text += fmt::format(" (crossing near {})",
                        c.sweep_axis == "bytes" ? si_bytes(change.estimate) : significant(change.estimate));
  }
  return text + fmt::format("; where it wins, the GPU is {} faster", speedups(c, Winner::gpu));
}

std::string many_changes(const Crossover& c) {
  std::string list;
  size_t i = 0;
  while (i < c.batch.size()) {
    size_t last = i;
    while (last + 1 < c.batch.size() && c.winner[last + 1] == c.winner[i]) ++last;
    if (c.winner[i] != Winner::tie) {
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", c.winner[i] == Winner::gpu ? "GPU" : "CPU",
                          range(c, i, last));
    }
    i = last + 1;
  }
  return fmt::format("the winner changes {} times over {}: {} ({} against {})", c.changes.size(), c.sweep_axis, list,
                     name_of(Winner::cpu, c), name_of(Winner::gpu, c));
}

std::string text_or(const Json& json, const char* pointer, const std::string& fallback) {
  const Json::json_pointer place(pointer);
  if (!json.contains(place) || !json[place].is_string()) return fallback;
  return json[place].get<std::string>();
}

double number_or(const Json& json, const char* pointer, double fallback) {
  const Json::json_pointer place(pointer);
  return json.contains(place) && json[place].is_number() ? json[place].get<double>() : fallback;
}

std::string machine_line(const Json& environment) {
  std::string line = text_or(environment, "/cpu/model", "unknown CPU");
  const double usable = number_or(environment, "/cpu/usable_cpus", 0);
  if (usable > 0) line += fmt::format(", {:g} usable core{}", usable, usable == 1 ? "" : "s");
  const double memory = number_or(environment, "/memory/total_bytes", 0);
  if (memory > 0) line += ", " + si_bytes(memory) + " memory";
  const std::string os = text_or(environment, "/os/name", "");
  if (!os.empty()) line += ", " + os;
  const Json devices = environment.contains("devices") ? environment["devices"] : Json::array();
  for (const Json& device : devices) {
    const std::string kind = text_or(device, "/kind", "");
    if (kind != "gpu" && kind != "meta") continue;
    line += fmt::format("; {}: {}{}", text_or(device, "/id", kind), text_or(device, "/name", "unnamed"),
                        kind == "meta" ? " (virtual)" : "");
  }
  return line;
}

}  // namespace

std::string verdict_sentence(const Crossover& c) {
  const auto over = [&c] { return fmt::format("{} {}", c.sweep_axis, range(c, 0, c.batch.size() - 1)); };
  const auto decided = [&c] {  // from the first batch that has a winner to the last
    const auto has_winner = [](Winner w) { return w != Winner::tie; };
    const auto first = std::find_if(c.winner.begin(), c.winner.end(), has_winner) - c.winner.begin();
    const auto last = c.winner.rend() - std::find_if(c.winner.rbegin(), c.winner.rend(), has_winner) - 1;
    return fmt::format("{} {}", c.sweep_axis, range(c, static_cast<size_t>(first), static_cast<size_t>(last)));
  };
  if (c.verdict == "too_few_points")
    return fmt::format("measured at {} {} only: too few points for a crossover", c.sweep_axis,
                       c.batch.empty() ? "none" : range(c, 0, 0));
  if (c.verdict == "tie") return fmt::format("no winner at {}: every interval of the speedup includes 1", over());
  if (c.verdict == "gpu_always") {
    return fmt::format("{} wins at {}, {} faster{}", name_of(Winner::gpu, c), decided(), speedups(c, Winner::gpu),
                       ties(c));
  }
  if (c.verdict == "gpu_never") {
    return fmt::format("{} wins at {}, {} faster than {}{}", name_of(Winner::cpu, c), decided(),
                       speedups(c, Winner::cpu), name_of(Winner::gpu, c), ties(c));
  }
  return (c.changes.size() == 1 ? one_change(c) : many_changes(c)) + ties(c);
}

std::string short_name(const std::string& key, const std::vector<std::string>& left_out) {
  std::string name;
  for (const std::string& segment : segments_of(key)) {
    if (std::find(left_out.begin(), left_out.end(), segment) != left_out.end()) continue;
    const size_t equals = segment.find('=');
    const bool show_name = equals != std::string::npos && is_number(segment.substr(equals + 1));
    std::string shown = equals == std::string::npos || show_name ? segment : segment.substr(equals + 1);
    if (show_name && segment.starts_with("bytes=")) shown = si_bytes(std::stod(segment.substr(equals + 1)));
    name += (name.empty() ? "" : " ") + shown;
  }
  return name;
}

std::vector<std::string> machine_lines(const Result& result) {
  if (!result.environment.contains("machines")) return {machine_line(result.environment)};
  std::vector<std::string> lines;
  for (const Json& machine : result.environment["machines"]) {
    lines.push_back(fmt::format("{}: {}", text_or(machine, "/source", "?"), machine_line(machine["environment"])));
  }
  return lines;
}

std::string axis_value_text(const std::string& axis, double value) {
  return axis == "bytes" ? si_bytes(value) : fmt::format("{:.0f}", value);
}

std::string variant_text(const std::string& device, const std::string& variant) {
  std::string text = device;
  for (size_t start = 0; start < variant.size();) {
    const size_t end = std::min(variant.find(", ", start), variant.size());
    const std::string segment = variant.substr(start, end - start);
    const bool plain = segment.starts_with("launch=") || segment.starts_with("data=");
    text += " " + (plain ? segment.substr(segment.find('=') + 1) : segment);
    start = end + 2;
  }
  return text;
}

}  // namespace dlbench
