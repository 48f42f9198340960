#include "core/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace dlbench {

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return "n/a";
  if (value == 0) return "0";
  // Round first: 999.6 with three digits is 1000, not 1e+03.
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (magnitude < -6 || magnitude >= 15) return fmt::format("{:.{}g}", value, digits);
  const int decimals = std::max(0, digits - 1 - magnitude);
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

std::string si(double value, std::string_view unit, int digits) {
  if (!std::isfinite(value)) return "n/a";
  if (value == 0) return fmt::format("0 {}", unit);
  constexpr std::array kPrefixes = {"p", "n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  constexpr int kUnprefixed = 4;
  int step = static_cast<int>(std::floor(std::log10(std::abs(value)) / 3));
  // 999.7 in three digits would read 1000: take the next prefix.
  const double rounding = 1 - 0.5 * std::pow(10.0, -digits);
  if (std::abs(value) / std::pow(1000.0, step) >= 1000 * rounding) ++step;
  step = std::clamp(step, -kUnprefixed, static_cast<int>(kPrefixes.size()) - 1 - kUnprefixed);
  return fmt::format("{} {}{}", significant(value / std::pow(1000.0, step), digits),
                     kPrefixes[static_cast<size_t>(step + kUnprefixed)], unit);
}

std::string si_bytes(double bytes) {
  if (!std::isfinite(bytes)) return "n/a";
  constexpr std::array kPrefixes = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  size_t step = 0;
  while (std::abs(bytes) >= 1024 * (1 - 0.5e-3) && step + 1 < kPrefixes.size()) {
    bytes /= 1024;
    ++step;
  }
  return fmt::format("{} {}B", significant(bytes, 3), kPrefixes[step]);
}

std::string percent(double fraction) {
  if (!std::isfinite(fraction)) return "n/a";
  return fmt::format("{:.{}f} %", fraction * 100, std::abs(fraction) < 0.0995 ? 1 : 0);
}

}  // namespace dlbench
