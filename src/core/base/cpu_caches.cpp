#include "core/base/cpu_caches.h"

#include <cctype>
#include <string>

#include "core/base/usable_cpus.h"

namespace dlbench {

namespace {
/// "32768K" -> 33554432; empty for anything else.
std::optional<int64_t> parse_size(const std::string& text) {
  size_t digits = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits]))) ++digits;
  if (digits == 0 || digits > 12) return std::nullopt;
  const int64_t value = std::stoll(text.substr(0, digits));
  const std::string unit = text.substr(digits);
  if (unit == "K") return value << 10;
  if (unit == "M") return value << 20;
  if (unit == "G") return value << 30;
  return unit.empty() ? std::optional<int64_t>(value) : std::nullopt;
}
}  // namespace

std::optional<int64_t> last_level_cache_bytes(const std::filesystem::path& root) {
  std::optional<int64_t> largest;
  for (int index = 0; index < 16; ++index) {
    const auto folder = root / "sys/devices/system/cpu/cpu0/cache" / ("index" + std::to_string(index));
    const auto type = first_line(folder / "type"), size = first_line(folder / "size");
    if (!type || !size) break;
    if (*type == "Instruction") continue;
    const auto bytes = parse_size(*size);
    if (bytes && (!largest || *bytes > *largest)) largest = bytes;
  }
  return largest;
}

}  // namespace dlbench
