// SHA-256 (FIPS 180-4): names the result file that a report was made from.
#pragma once

#include <string>
#include <string_view>

namespace dlbench {

/// Of the bytes of `data`, as 64 lower-case hexadecimal digits.
std::string sha256(std::string_view data);

}  // namespace dlbench
