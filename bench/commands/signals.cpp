#include "commands/signals.h"

#include <csignal>

namespace dlbench {

namespace {

std::atomic<int> caught_signal{0};

extern "C" void remember_signal(int signal) {
  caught_signal.store(signal);
  std::signal(signal, SIG_DFL);
}

}  // namespace

SignalsCaught::SignalsCaught() {
  caught_signal.store(0);
  before_interrupt_ = std::signal(SIGINT, remember_signal);
  before_terminate_ = std::signal(SIGTERM, remember_signal);
}

SignalsCaught::~SignalsCaught() {
  std::signal(SIGINT, before_interrupt_);
  std::signal(SIGTERM, before_terminate_);
}

const std::atomic<int>& SignalsCaught::caught() {
  return caught_signal;
}

std::optional<ExitCode> SignalsCaught::exit_code() {
  if (caught_signal.load() == SIGINT) return ExitCode::kInterrupted;
  if (caught_signal.load() == SIGTERM) return ExitCode::kTerminated;
  return std::nullopt;
}

}  // namespace dlbench
