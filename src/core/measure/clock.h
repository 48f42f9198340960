// Clock: where "now" comes from.
//
// Why: the whole harness is tested on a virtual clock, exactly and in milliseconds; on hardware it is steady_clock.
#pragma once

#include <chrono>

namespace dlbench {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds since an arbitrary start; never goes back.
  virtual double now_seconds() = 0;
};

class SteadyClock final : public Clock {
 public:
  double now_seconds() override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

}  // namespace dlbench
