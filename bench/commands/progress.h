// Progress of a run on stderr: a line that is redrawn on a terminal, and now and then a line of its own elsewhere.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

#include "core/measure/observer.h"

namespace dlbench {

class ProgressLine final : public Observer {
 public:
  /// @param redraw stderr is a terminal.
  ProgressLine(std::ostream& err, bool redraw, bool quiet, int width)
      : err_(err), redraw_(redraw), quiet_(quiet), width_(width) {}
  ~ProgressLine() override { clear(); }

  void on_plan(const Plan& plan) override;
  void on_point_start(const PointProgress& progress) override;
  void on_point_done(const PointProgress& progress) override;
  void on_warning(const std::string& sentence) override;
  /// Removes the line that is redrawn.
  void clear();

 private:
  void draw(const PointProgress& progress);
  std::ostream& err_;
  bool redraw_, quiet_, drawn_ = false;
  int width_;
  std::chrono::steady_clock::time_point last_{};
};

/// "12 s", "3 min 20 s", "2 h 05 min"
std::string readable_duration(double seconds);

}  // namespace dlbench
