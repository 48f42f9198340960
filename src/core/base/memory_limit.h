// How much memory this process may use by the limits of its cgroup and of every parent.
//
// Why: Linux promises memory that a limit will not let it have; the process is then ended without a word. Asking first
// turns that into the status `out_of_memory`.
// Promises: cgroup v2 (memory.max) and v1 (memory.limit_in_bytes); empty where there is no limit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace dlbench {

struct MemoryLimit {
  std::optional<int64_t> limit_bytes;  ///< the tightest limit
  std::optional<int64_t> left_bytes;   ///< the least that any of the limits still leaves
};

/// @param root where /proc and /sys are looked for; another one in tests.
MemoryLimit cgroup_memory(const std::filesystem::path& root = "/");

}  // namespace dlbench
