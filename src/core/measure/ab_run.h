// Two programs measured side by side, for `dlbench ab`: rounds of fresh worker processes, point by point.
//
// Why side by side: a shared machine changes within seconds. In a round every program has one fresh process; of each
// point all of them are set up, then timed in turns, one timing at a time, forth and back (A B B A; A B N N B A with
// the second process of the base program), so that what the machine does changes all of them; who goes first changes
// from round to round. Promises: what was measured until an interruption or the end of the time budget is returned; a
// point that crashes one of the programs costs itself only.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "core/analysis/ab.h"
#include "core/plan/config.h"

namespace dlbench {

struct AbProgress {
  bool confirming = false;
  int round = 0, rounds = 0;   ///< of the stage; while confirming: until the next look
  size_t done = 0, total = 0;  ///< points of the round
  double elapsed_seconds = 0;
  double remaining_seconds = 0;  ///< of the stage, from what was measured so far; 0: not known yet
  std::string key;
};

/// How it tells what happens.
class AbObserver {
 public:
  virtual ~AbObserver() = default;
  virtual void on_progress(const AbProgress&) {}
  virtual void on_note(const std::string&) {}
  /// After every round: what there is so far, to be kept.
  virtual void on_round(const AbSession&) {}
};

struct AbOptions {
  std::string base, candidate;  ///< programs, started as `PROGRAM worker`
  AbRule rule;
  double time_budget_seconds = 0;            ///< 0: none
  const std::atomic<int>* signal = nullptr;  ///< set to SIGINT / SIGTERM by the handler
};

/// @throws InputError when one of the programs is no dlbench that can do this, or when they plan different points.
AbSession run_ab(const Config& config, const AbOptions& options, AbObserver& observer);

}  // namespace dlbench
