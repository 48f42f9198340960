#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <string>

#include "core/plan/plan.h"

namespace dlbench {

namespace {

std::string scaled(double value, double base, const std::array<const char*, 6>& units) {
  size_t unit = 0;
  for (; unit + 1 < units.size() && value >= base; ++unit) value /= base;
  return fmt::format("{:.{}f} {}", value, unit == 0 || value >= 100 ? 0 : 1, units[unit]);
}
std::string flops_text(double flops) {
  return flops > 0 ? scaled(flops, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"}) : "-";
}
std::string bytes_text(double bytes) {
  return bytes > 0 ? scaled(bytes, 1000, {"B", "kB", "MB", "GB", "TB", "PB"}) : "-";
}
std::string memory_text(double bytes) {
  return scaled(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string seconds_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  if (seconds < 6000) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string counted(size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string measured_lines(const Plan& plan) {
  std::string text = fmt::format("{:>11} {:>10} {:>10} {:>4} {:>9}  {}\n", "work/step", "bytes/step", "memory", "sets",
                                 "estimated", "point");
  for (const PlannedPoint& p : plan.points) {
    if (p.status != Status::ok) continue;
    const std::string emulated =
        p.support.level == SupportLevel::emulated ? "  (emulated: " + p.support.reason + ")" : "";
    text += fmt::format("{:>11} {:>10} {:>10} {:>4} {:>9}  {}{}\n", flops_text(p.work.cost.flops),
                        bytes_text(p.work.cost.bytes()), memory_text(static_cast<double>(p.tensor_bytes)),
                        p.buffer_sets, seconds_text(p.estimated_seconds), p.key, emulated);
  }
  return text;
}

/// Points that won't be measured, under the status and reason they share.
std::string refused_lines(const Plan& plan) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const PlannedPoint*>> groups;
  for (const PlannedPoint& p : plan.points) {
    if (p.status == Status::ok) continue;
    const std::string title = fmt::format("{}: {}", to_string(p.status), p.reason);
    if (groups[title].empty()) order.push_back(title);
    groups[title].push_back(&p);
  }
  std::string text;
  for (const std::string& title : order) {
    text += fmt::format("\n{}\n", title);
    for (const PlannedPoint* p : groups[title]) text += fmt::format("  {}\n", p->key);
  }
  return text;
}

}  // namespace

std::string render_plan(const Plan& plan) {
  size_t measured = 0;
  for (const PlannedPoint& p : plan.points) measured += p.status == Status::ok;
  const size_t refused = plan.points.size() - measured;
  std::string text = fmt::format("plan of {}: {} to measure in {}, about {}; {} can't be measured here\n\n",
                                 plan.config.name, counted(measured, "point", "points"),
                                 counted(static_cast<size_t>(plan.config.measure.processes), "process", "processes"),
                                 seconds_text(plan.estimated_seconds), refused);
  if (measured > 0) text += measured_lines(plan);
  if (refused > 0) text += refused_lines(plan);
  return text;
}

}  // namespace dlbench
