// How many CPUs this process may really use: the affinity mask, cut by the quota of its cgroup and of every parent.
//
// Why: neither oneTBB nor OpenBLAS looks at cgroup quotas; more threads than quota are stopped by the kernel for most
// of each period, which no benchmark survives. Promises: usable = min(CPUs in the mask, max(1, floor(quota / period))).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dlbench {

struct UsableCpus {
  std::vector<int> affinity;         ///< CPU numbers of the mask, ascending
  std::optional<double> quota_cpus;  ///< smallest quota / period over the cgroup and its parents; empty: no limit
  std::string quota_source;          ///< the file that sets it
  int count = 1;
};

/// @param root where /proc and /sys are looked for; another one in tests.
UsableCpus usable_cpus(const std::filesystem::path& root = "/");

/// Directories of this process's cgroup in the hierarchy that limits CPU time, innermost first, ending at the mount
/// point.
std::vector<std::filesystem::path> cpu_cgroup_directories(const std::filesystem::path& root = "/");

/// First line of a file, or empty when it can't be read.
std::optional<std::string> first_line(const std::filesystem::path& path);

}  // namespace dlbench
