// Observer: how a run tells what happens, without knowing who listens (progress line, log, tests).
#pragma once

#include <string>

#include "core/plan/plan.h"

namespace dlbench {

struct PointProgress {
  int process = 0, processes = 1;
  size_t done = 0, total = 0;  ///< (point, process) pairs
  double elapsed_seconds = 0, remaining_seconds = 0;
  std::string key;
  Status status = Status::ok;
  std::string reason;
  double seconds_per_step = 0;
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_plan(const Plan&) {}
  virtual void on_point_start(const PointProgress&) {}
  virtual void on_point_done(const PointProgress&) {}
  virtual void on_warning(const std::string&) {}
};

}  // namespace dlbench
