// Two or more ways of doing the same thing, timed in turns.
//
// Why: the clock and the placement of cores move by minutes on virtual machines; turns of a few milliseconds see the
// same machine, so that their ratio holds where the times themselves don't.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace dlbench::micro {

inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

struct Side {
  std::function<void()> call;
  std::function<void()> before_turn;  ///< may be empty; not timed
};

/// Seconds per call of every side, `turns` values each; a turn lasts about turn_seconds.
inline std::vector<std::vector<double>> time_in_turns(const std::vector<Side>& sides, int turns, double turn_seconds) {
  std::vector<int64_t> calls;
  for (const Side& side : sides) {
    if (side.before_turn) side.before_turn();
    side.call();
    const double begin = now_seconds();
    side.call();
    calls.push_back(
        std::clamp<int64_t>(static_cast<int64_t>(turn_seconds / std::max(1e-9, now_seconds() - begin)), 1, 1000000));
  }
  std::vector<std::vector<double>> seconds(sides.size());
  for (int turn = 0; turn < turns; ++turn) {
    for (size_t i = 0; i < sides.size(); ++i) {
      const size_t s = turn % 2 ? sides.size() - 1 - i : i;  // there and back: cancels a drift
      if (sides[s].before_turn) sides[s].before_turn();
      sides[s].call();
      const double begin = now_seconds();
      for (int64_t c = 0; c < calls[s]; ++c) sides[s].call();
      seconds[s].push_back((now_seconds() - begin) / static_cast<double>(calls[s]));
    }
  }
  return seconds;
}

}  // namespace dlbench::micro
