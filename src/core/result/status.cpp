#include "core/result/status.h"

#include <array>
#include <string>

#include "core/base/error.h"

namespace dlbench {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::unsupported:
      return "unsupported";
    case Status::out_of_memory:
      return "out_of_memory";
    case Status::skipped:
      return "skipped";
    case Status::timeout:
      return "timeout";
    case Status::failed:
      return "failed";
    case Status::mismatch:
      return "mismatch";
    case Status::invalid:
      return "invalid";
    case Status::device_lost:
      return "device_lost";
  }
  throw Error("to_string: not a status");
}

Status parse_status(std::string_view text) {
  std::string known;
  for (int i = 0; i <= static_cast<int>(Status::device_lost); ++i) {
    const auto status = static_cast<Status>(i);
    if (to_string(status) == text) return status;
    known += (known.empty() ? "" : ", ") + std::string(to_string(status));
  }
  throw InputError("unknown status '" + std::string(text) + "'; known: " + known);
}

}  // namespace dlbench
