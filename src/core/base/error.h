// Errors that reach a person, and the exit code that each of them means.
//
// Why: every failure ends as one clear sentence (what, where, what is allowed, what to do next) and as one exit code.
// Promises: the message of an Error is complete on its own; `main` prints it unchanged behind "dlbench: ".
#pragma once

#include <stdexcept>
#include <string>

namespace dlbench {

/// Exit codes of the program; a closed set, documented in README.md.
enum class ExitCode : int {
  kOk = 0,
  kRegression = 1,    ///< a regression, a mismatch or an invalid point
  kUsage = 2,         ///< command line or config is wrong
  kInconclusive = 3,  ///< environment drift, or too little data for a verdict
  kUnreadable = 4,    ///< an input file is incomparable or unreadable
  kSomeFailed = 5,    ///< some points failed; the result file was written
  kDeviceAbsent = 6,  ///< a device that was demanded isn't there
  kInterrupted = 130,
  kTerminated = 143,
};

/// Base of every error that dlbench throws on purpose.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ExitCode code = ExitCode::kSomeFailed)
      : std::runtime_error(message), code_(code) {}
  ExitCode exit_code() const { return code_; }

 private:
  ExitCode code_;
};

/// The command line or the config asks for something that doesn't exist or can't be.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(message, ExitCode::kUsage) {}
};

/// A file can't be read, isn't what it should be, or can't be compared with another one.
class InputError : public Error {
 public:
  explicit InputError(const std::string& message) : Error(message, ExitCode::kUnreadable) {}
};

/// A device was demanded that isn't usable here; the message says which of the reasons it is.
class DeviceAbsentError : public Error {
 public:
  explicit DeviceAbsentError(const std::string& message) : Error(message, ExitCode::kDeviceAbsent) {}
};

/// An allocation failed or would exceed the device's memory: the point's status becomes `out_of_memory`.
class OutOfMemoryError : public Error {
 public:
  using Error::Error;
};

/// The device can't do this op at this precision: the point's status becomes `unsupported`.
class UnsupportedError : public Error {
 public:
  using Error::Error;
};

/// The device stopped answering (a sticky CUDA error, for example): every later point of it is `device_lost`.
class DeviceLostError : public Error {
 public:
  using Error::Error;
};

}  // namespace dlbench
