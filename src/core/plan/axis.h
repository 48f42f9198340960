// Axes: what is swept. An axis has a name, a kind of value, a default and the values it allows.
//
// Why: key order, config validation, result columns and pairing all follow from the same declaration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/device/device.h"

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

/// An axis may exist only where an axis before it has one of these words: `layer` only where family=linear.
struct AxisCondition {
  std::string axis;  ///< empty: always
  std::vector<std::string> words{};
};

struct AxisSpec {
  std::string name;
  AxisKind kind = AxisKind::integer;
  AxisValue fallback = int64_t{1};
  int64_t low = 1, high = int64_t{1} << 40;  ///< allowed range of integers
  std::vector<std::string> words{};          ///< allowed words; empty: any
  std::string summary{};                     ///< one line with the unit
  PairRole pair_role = PairRole::shared;
  std::optional<Side> only_on{};  ///< the side that has the axis; empty: both
  AxisCondition only_when{};

  /// "" when `value` is allowed, else the end of a sentence: "-3 is not allowed; must be a whole number from 1 to
  /// 4096".
  std::string complaint_about(const AxisValue& value) const;
};

/// Value of `threads` that stands for every usable CPU ("all" in configs) until the plan replaces it by their number.
inline constexpr int64_t kAllThreads = 0;

/// The axes of every workload, in key order after the workload's own: precision, launch, data, cache, threads, device.
const std::vector<AxisSpec>& common_axes();

/// "1:1024:x2" (geometric), "8:64:+8" (arithmetic), "4,8,32", "32"; ends included when they are hit. Numbers may end in
/// KiB, MiB or GiB. @throws UsageError saying what is allowed.
std::vector<int64_t> parse_range(const std::string& text);

}  // namespace dlbench
