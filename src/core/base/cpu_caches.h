// Sizes of this machine's CPU caches, as the kernel reports them.
//
// Why: streaming stores, rotation of inputs and levels of the roofline depend on the last-level cache. The C library's
// sysconf multiplies what CPUID says and was seen 10 times too large on a virtual machine; sysfs was right.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace dlbench {

/// Bytes of the largest data or unified cache that CPU 0 can use, from /sys/devices/system/cpu/cpu0/cache; empty when
/// the kernel doesn't say.
/// @param root where /sys is looked for; another one in tests.
std::optional<int64_t> last_level_cache_bytes(const std::filesystem::path& root = "/");

}  // namespace dlbench
