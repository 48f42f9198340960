// Status of a point: a closed set. Every planned point has a row with one of these, each but `ok` with a reason.
#pragma once

#include <cstdint>
#include <string_view>

namespace dlbench {

enum class Status : uint8_t {
  ok,
  unsupported,  ///< the device can't do it
  out_of_memory,
  skipped,  ///< not reached: time budget, interrupt
  timeout,
  failed,    ///< an error, or the process died
  mismatch,  ///< checked and wrong: never shown as throughput
  invalid,   ///< faster than physics allows
  device_lost,
};
std::string_view to_string(Status status);
/// @throws InputError naming the known ones.
Status parse_status(std::string_view text);

}  // namespace dlbench
