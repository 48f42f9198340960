// Axes: what is swept. An axis has a name, a kind of value, a default and the values it allows.
//
// Why: key order, config validation, result columns and pairing all follow from the same declaration.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace dlbench {

/// Whole number or word.
using AxisValue = std::variant<int64_t, std::string>;
std::string to_string(const AxisValue& value);

enum class AxisKind : uint8_t { integer, word };

/// Whether two points may differ in this axis and still be a pair.
enum class PairRole : uint8_t {
  shared,    ///< both points of a pair have the same value
  one_side,  ///< exists on one side only (launch, threads, library): ignored when pairing
};

struct AxisSpec {
  std::string name;
  AxisKind kind = AxisKind::integer;
  AxisValue fallback = int64_t{1};
  int64_t low = 1, high = int64_t{1} << 40;  ///< allowed range of integers
  std::vector<std::string> words;            ///< allowed words; empty: any
  std::string summary;                       ///< one line with the unit
  PairRole pair_role = PairRole::shared;
};

/// The axes of every workload, in key order after the workload's own: precision, launch, data, cache, threads, device.
const std::vector<AxisSpec>& common_axes();

/// "1:1024:x2" (geometric), "8:64:+8" (arithmetic), "4,8,32", "32"; ends included when they are hit.
/// @throws UsageError saying what is allowed.
std::vector<int64_t> parse_range(const std::string& text);

}  // namespace dlbench
