// Standard output that tells when it lost something, and what the terminal is like.
//
// Why: a result that went into a closed pipe or onto a full disk must not end with exit code 0. A C++ stream forgets
// why a write failed; this buffer keeps errno. Promises: `std::cout` writes through it while it lives; SIGPIPE and
// SIGXFSZ are ignored; a descriptor 0, 1 or 2 that was closed at start is occupied, so that no file that is opened
// later gets printed into.
#pragma once

#include <array>
#include <iosfwd>
#include <memory>
#include <streambuf>
#include <string>

namespace dlbench {

class CheckedOutput final : public std::streambuf {
 public:
  explicit CheckedOutput(int descriptor);
  /// Writes what is buffered; "" or the operating system's reason why something was lost.
  std::string finish();

 protected:
  int_type overflow(int_type character) override;
  int sync() override;

 private:
  bool drain();
  int descriptor_;
  int error_ = 0;
  std::array<char, 1 << 16> buffer_;
};

/// Replaces the buffer of std::cout for its lifetime.
class StandardOutput {
 public:
  StandardOutput();
  ~StandardOutput();
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;
  std::string finish() { return output_.finish(); }

 private:
  CheckedOutput output_;
  std::streambuf* before_;
};

bool is_terminal(int descriptor);
/// Columns of the terminal at standard output; COLUMNS or 100 where there is none.
int terminal_width();
/// Colour is for terminals, unless NO_COLOR is set (no-color.org) or TERM is "dumb".
bool wants_color(bool out_is_terminal);
/// Absolute path of the running program.
std::string executable_path();

}  // namespace dlbench
