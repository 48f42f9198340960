#include "commands/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

namespace dlbench {

namespace {
constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kLine{10};  // without a terminal
}  // namespace

std::string readable_duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::lround(std::max(seconds, 0.0)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

void ProgressLine::clear() {
  if (drawn_) err_ << "\r\033[K" << std::flush;
  drawn_ = false;
}

void ProgressLine::on_plan(const Plan& plan) {
  if (quiet_) return;
  const auto open = std::count_if(plan.points.begin(), plan.points.end(),
                                  [](const PlannedPoint& p) { return p.status == Status::ok; });
  err_ << fmt::format("dlbench: {} points to measure in {} processes, about {}; {} can't be measured here\n", open,
                      plan.config.measure.processes, readable_duration(plan.estimated_seconds),
                      static_cast<int64_t>(plan.points.size()) - open);
}

void ProgressLine::draw(const PointProgress& p) {
  const auto now = std::chrono::steady_clock::now();
  if (quiet_ || now - last_ < (redraw_ ? std::chrono::steady_clock::duration(kRedraw) : kLine)) return;
  last_ = now;
  std::string line = fmt::format("[{}/{}] process {}/{}, {} left: {}", p.done, p.total, p.process + 1, p.processes,
                                 readable_duration(p.remaining_seconds), p.key);
  if (!redraw_) {
    err_ << line << std::endl;
    return;
  }
  if (line.size() + 1 > static_cast<size_t>(width_)) line.resize(static_cast<size_t>(std::max(width_ - 1, 1)));
  err_ << "\r\033[K" << line << std::flush;
  drawn_ = true;
}

void ProgressLine::on_point_start(const PointProgress& progress) {
  draw(progress);
}

void ProgressLine::on_point_done(const PointProgress& p) {
  if (!quiet_ && p.status != Status::ok) {
    clear();
    err_ << fmt::format("dlbench: {}: {}: {}\n", p.key, to_string(p.status), p.reason) << std::flush;
  }
  draw(p);
}

void ProgressLine::on_warning(const std::string& sentence) {
  if (quiet_) return;
  clear();
  err_ << "dlbench: " << sentence << std::endl;
}

}  // namespace dlbench
