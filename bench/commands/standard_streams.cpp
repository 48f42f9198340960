#include "commands/standard_streams.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

namespace dlbench {

CheckedOutput::CheckedOutput(int descriptor) : descriptor_(descriptor) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

bool CheckedOutput::drain() {
  const char* from = pbase();
  while (from < pptr() && error_ == 0) {
    const ssize_t written = ::write(descriptor_, from, static_cast<size_t>(pptr() - from));
    if (written >= 0) {
      from += written;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return error_ == 0;
}

CheckedOutput::int_type CheckedOutput::overflow(int_type character) {
  if (!drain()) return traits_type::eof();
  if (!traits_type::eq_int_type(character, traits_type::eof())) sputc(traits_type::to_char_type(character));
  return traits_type::not_eof(character);
}

int CheckedOutput::sync() {
  return drain() ? 0 : -1;
}

std::string CheckedOutput::finish() {
  drain();
  return error_ == 0 ? "" : std::strerror(error_);
}

namespace {

void occupy_closed_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    // Input gets a file that can't be read, output one that can't be written: a use of either is noticed.
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      (void)!::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
  }
}

int prepared_stdout() {
  occupy_closed_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of write(), as a full disk is
  return STDOUT_FILENO;
}

}  // namespace

StandardOutput::StandardOutput() : output_(prepared_stdout()), before_(std::cout.rdbuf(&output_)) {}

StandardOutput::~StandardOutput() {
  std::cout.rdbuf(before_);
}

bool is_terminal(int descriptor) {
  return ::isatty(descriptor) == 1;
}

int terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int width = columns ? std::atoi(columns) : 0;
  return width >= 20 ? width : 100;
}

bool wants_color(bool out_is_terminal) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_color && *no_color) return false;
  return out_is_terminal && term && std::strcmp(term, "dumb") != 0;
}

std::string executable_path() {
  std::error_code failure;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", failure);
  return failure ? std::string("dlbench") : path.string();
}

}  // namespace dlbench
