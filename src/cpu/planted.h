// A slowdown planted into one op, for the acceptance of `dlbench ab` (scripts/verify_gate): a gate that was never shown
// a regression proves nothing.
//
// Exists only in builds configured with -DDLBENCH_PLANTED_SLOWDOWN=ON; in every other build DLB_PLANTED is nothing, and
// tests/cli/test_gate.py looks that the shipped backend doesn't even hold the name of the variable. There, the
// environment variable DLBENCH_PLANTED_SLOWDOWN=OP:FACTOR makes calls of that op take FACTOR times as long.
#pragma once

#ifdef DLBENCH_PLANTED_SLOWDOWN

#include <chrono>
#include <cstdlib>
#include <string>

namespace dlbench::cpu {

class Planted {
 public:
  explicit Planted(const char* op) : extra_(extra_of(op)), start_(extra_ > 0 ? Clock::now() : Clock::time_point{}) {}
  ~Planted() {
    if (extra_ <= 0) return;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>((Clock::now() - start_) * extra_);
    while (Clock::now() < end) {
    }
  }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  static double extra_of(const char* op) {
    static const std::string text = [] {
      const char* value = std::getenv("DLBENCH_PLANTED_SLOWDOWN");
      return std::string(value ? value : "");
    }();
    const size_t colon = text.find(':');
    if (colon == std::string::npos || text.compare(0, colon, op) != 0) return 0;
    return std::strtod(text.c_str() + colon + 1, nullptr) - 1;
  }

  double extra_;
  Clock::time_point start_;
};

}  // namespace dlbench::cpu

#define DLB_PLANTED(op) const ::dlbench::cpu::Planted planted_slowdown(#op)
#else
#define DLB_PLANTED(op) static_cast<void>(0)
#endif
