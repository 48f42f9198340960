// Numbers as people read them: three or four significant digits with an SI prefix and the unit.
//
// Promises: never prints NaN or infinity ("n/a" instead); pure, locale-independent.
#pragma once

#include <string>
#include <string_view>

namespace dlbench {

/// si(2.34e11, "FLOP/s") = "234 GFLOP/s"; si(1.2e-6, "s") = "1.2 us"; significant digits: 3 by default.
std::string si(double value, std::string_view unit, int digits = 3);
/// si_bytes(1048576) = "1 MiB": binary prefixes, for sizes of memory.
std::string si_bytes(double bytes);
/// A plain number with so many significant digits and without an exponent where it is short: "12.3", "1230", "0.00123".
std::string significant(double value, int digits = 3);
/// 0.834 -> "83 %"; below 10 % one decimal.
std::string percent(double fraction);

}  // namespace dlbench
