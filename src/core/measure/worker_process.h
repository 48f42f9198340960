// A worker as its parent sees it: started, told what to do, waited for, ended.
//
// Promises: the worker dies with its parent (PR_SET_PDEATHSIG); Ctrl-C in a terminal reaches the parent only; ending
// goes by the worker's own process id; no descriptor leaks into it but its command pipe, its answer pipe and stderr.
#pragma once

#include <sys/types.h>

#include <deque>
#include <optional>
#include <string>

#include "core/base/json.h"

namespace dlbench {

class WorkerProcess {
 public:
  /// Starts `executable worker`. @throws Error when it can't be started.
  explicit WorkerProcess(const std::string& executable);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  void send(const Json& command);
  /// The next answer, waiting at most `seconds`; empty when there is none yet or the worker is gone.
  std::optional<Json> receive(double seconds);
  /// False once it has ended and every answer was read.
  bool running() const { return pid_ > 0; }
  void kill();
  /// "ok", "exit 3", "signal 9 (Killed)"; of an ended worker.
  const std::string& how_it_ended() const { return ended_; }
  bool ended_by(int signal) const { return signal_ == signal; }
  /// The last line that it wrote to stderr.
  std::string last_words() const { return stderr_lines_.empty() ? "" : stderr_lines_.back(); }
  /// Lines from its stderr since the last call.
  std::deque<std::string> take_stderr();
  pid_t pid() const { return pid_; }

 private:
  void read_some(int descriptor, std::string& buffer, bool& open);
  void collect_stderr();
  void reap();

  pid_t pid_ = -1;
  int signal_ = 0;  ///< that ended it
  int commands_ = -1, answers_ = -1, errors_ = -1;
  bool answers_open_ = true, errors_open_ = true;
  std::string answer_buffer_, error_buffer_, ended_;
  std::deque<std::string> stderr_lines_, new_stderr_;
};

}  // namespace dlbench
