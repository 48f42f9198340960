#include "core/measure/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/base/error.h"
#include "core/measure/worker.h"

namespace dlbench {

namespace {

constexpr size_t kKeptStderrLines = 20;
constexpr std::chrono::seconds kEndPatience{10};
constexpr int kFirstFreeDescriptor = 10;  // above those that the child's dup2 calls fill

[[noreturn]] void fail(const char* what) {
  throw Error(fmt::format("a worker process can't be started: {}: {}", what, std::strerror(errno)));
}

/// A pipe whose ends are closed on exec and never are descriptors 0 to 9.
std::array<int, 2> make_pipe() {
  std::array<int, 2> low{}, high{};
  if (::pipe2(low.data(), O_CLOEXEC) != 0) fail("pipe");
  for (size_t i = 0; i < 2; ++i) {
    high[i] = ::fcntl(low[i], F_DUPFD_CLOEXEC, kFirstFreeDescriptor);
    ::close(low[i]);
    if (high[i] < 0) fail("pipe");
  }
  return high;
}

/// Runs in the child between fork and exec: only calls that are safe there.
[[noreturn]] void become_worker(const char* executable, int commands, int answers, int errors, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the call above
  ::signal(SIGINT, SIG_IGN);                // the parent decides what Ctrl-C means
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(commands, STDIN_FILENO);
  ::dup2(answers, kWorkerAnswers);
  ::dup2(errors, STDERR_FILENO);
  ::dup2(errors, STDOUT_FILENO);  // nothing but answers may look like one
  const char* arguments[] = {executable, "worker", nullptr};
  ::execv(executable, const_cast<char* const*>(arguments));
  ::_exit(127);
}

}  // namespace

WorkerProcess::WorkerProcess(const std::string& executable) {
  const std::array<int, 2> commands = make_pipe(), answers = make_pipe(), errors = make_pipe();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) become_worker(executable.c_str(), commands[0], answers[1], errors[1], parent);
  ::close(commands[0]);
  ::close(answers[1]);
  ::close(errors[1]);
  commands_ = commands[1];
  answers_ = answers[0];
  errors_ = errors[0];
  ::fcntl(answers_, F_SETFL, O_NONBLOCK);
  ::fcntl(errors_, F_SETFL, O_NONBLOCK);
}

WorkerProcess::~WorkerProcess() {
  if (running()) kill();
  for (const int descriptor : {commands_, answers_, errors_}) ::close(descriptor);
}

void WorkerProcess::send(const Json& command) {
  const std::string line = command.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  // A worker that is gone shows in `receive`; SIGPIPE must not end the parent.
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(commands_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    done += static_cast<size_t>(n);
  }
  ::sigaction(SIGPIPE, &before, nullptr);
}

void WorkerProcess::read_some(int descriptor, std::string& buffer, bool& open) {
  char piece[1 << 16];
  for (;;) {
    const ssize_t n = ::read(descriptor, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    if (n == 0) {
      open = false;
      return;
    }
    buffer.append(piece, static_cast<size_t>(n));
  }
}

void WorkerProcess::collect_stderr() {
  for (size_t end = 0; (end = error_buffer_.find('\n')) != std::string::npos;) {
    const std::string line = error_buffer_.substr(0, end);
    error_buffer_.erase(0, end + 1);
    if (line.empty()) continue;
    stderr_lines_.push_back(line);
    new_stderr_.push_back(line);
    if (stderr_lines_.size() > kKeptStderrLines) stderr_lines_.pop_front();
  }
}

std::optional<Json> WorkerProcess::receive(double seconds) {
  using Steady = std::chrono::steady_clock;
  const auto deadline =
      Steady::now() + std::chrono::duration_cast<Steady::duration>(std::chrono::duration<double>(seconds));
  for (;;) {
    if (const size_t end = answer_buffer_.find('\n'); end != std::string::npos) {
      const std::string line = answer_buffer_.substr(0, end);
      answer_buffer_.erase(0, end + 1);
      return parse_json(line, "an answer of the worker");
    }
    if (!answers_open_) {
      if (running()) reap();
      return std::nullopt;
    }
    const auto left = std::chrono::duration<double, std::milli>(deadline - Steady::now()).count();
    if (left <= 0) return std::nullopt;
    std::array<pollfd, 2> files{{{answers_, POLLIN, 0}, {errors_open_ ? errors_ : -1, POLLIN, 0}}};
    const int ready = ::poll(files.data(), files.size(), static_cast<int>(left) + 1);
    if (ready < 0 && errno == EINTR) return std::nullopt;  // a signal: the caller looks at it
    if (files[1].revents) read_some(errors_, error_buffer_, errors_open_);
    collect_stderr();
    if (files[0].revents) read_some(answers_, answer_buffer_, answers_open_);
  }
}

std::deque<std::string> WorkerProcess::take_stderr() {
  std::deque<std::string> lines;
  lines.swap(new_stderr_);
  return lines;
}

void WorkerProcess::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  reap();
}

void WorkerProcess::reap() {
  int status = 0;
  const auto start = std::chrono::steady_clock::now();
  for (bool killed = false;;) {
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) break;
    ::usleep(1000);
    if (!killed && std::chrono::steady_clock::now() - start > kEndPatience) {
      ::kill(pid_, SIGKILL);  // its answers are closed, but something in it goes on
      killed = true;
    }
  }
  pid_ = -1;
  if (errors_open_) read_some(errors_, error_buffer_, errors_open_);
  if (!error_buffer_.empty() && error_buffer_.back() != '\n') error_buffer_ += '\n';
  collect_stderr();
  if (WIFSIGNALED(status)) {
    signal_ = WTERMSIG(status);
    ended_ = fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  } else {
    ended_ = WEXITSTATUS(status) == 0 ? "ok" : fmt::format("exit {}", WEXITSTATUS(status));
  }
}

}  // namespace dlbench
