// Ctrl-C and termination while something is measured: the first signal stops it in an orderly way, a second one ends
// the program at once. Why here: every command that measures keeps what there is. Promises: the handlers of before are
// back when a SignalsCaught ends.
#pragma once

#include <atomic>
#include <optional>

#include "core/base/error.h"

namespace dlbench {

class SignalsCaught {
 public:
  SignalsCaught();
  ~SignalsCaught();
  SignalsCaught(const SignalsCaught&) = delete;
  SignalsCaught& operator=(const SignalsCaught&) = delete;

  /// 0, SIGINT or SIGTERM.
  static const std::atomic<int>& caught();
  /// What the program ends with after a signal; empty when there was none.
  static std::optional<ExitCode> exit_code();

 private:
  void (*before_interrupt_)(int);
  void (*before_terminate_)(int);
};

}  // namespace dlbench
