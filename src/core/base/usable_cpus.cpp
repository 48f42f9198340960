#include "core/base/usable_cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace dlbench {

namespace fs = std::filesystem;

namespace {

std::vector<int> affinity_mask() {
  // The kernel's mask may be larger than cpu_set_t: grow until it fits.
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    CPU_ZERO_S(bytes, set);
    const bool fits = sched_getaffinity(0, bytes, set) == 0;
    std::vector<int> list;
    for (int cpu = 0; fits && cpu < cpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set)) list.push_back(cpu);
    }
    CPU_FREE(set);
    if (!list.empty()) return list;
  }
  std::vector<int> list(static_cast<size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
  for (size_t i = 0; i < list.size(); ++i) list[i] = static_cast<int>(i);
  return list;
}

/// `path` and its parents down to (and with) `mount`, innermost first.
std::vector<fs::path> with_parents(const fs::path& mount, const std::string& path) {
  std::vector<fs::path> directories;
  fs::path relative = fs::path(path).relative_path();
  for (;;) {
    directories.push_back(relative.empty() ? mount : mount / relative);
    if (relative.empty()) return directories;
    relative = relative.parent_path();
  }
}

bool names_cpu(const std::string& controllers) {
  std::stringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

/// CPUs that a cgroup v2 "cpu.max" or v1 "cpu.cfs_quota_us" in `directory` allows; empty: no limit there.
std::optional<double> quota_in(const fs::path& directory, std::string& source) {
  if (const auto line = first_line(directory / "cpu.max")) {
    std::istringstream words(*line);
    std::string quota;
    double period = 0;
    if (words >> quota >> period && quota != "max" && period > 0) {
      source = (directory / "cpu.max").string();
      return std::strtod(quota.c_str(), nullptr) / period;
    }
    return std::nullopt;
  }
  const auto quota = first_line(directory / "cpu.cfs_quota_us");
  const auto period = first_line(directory / "cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  const double q = std::strtod(quota->c_str(), nullptr), p = std::strtod(period->c_str(), nullptr);
  if (q <= 0 || p <= 0) return std::nullopt;
  source = (directory / "cpu.cfs_quota_us").string();
  return q / p;
}

}  // namespace

std::optional<std::string> first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) return std::nullopt;
  return line;
}

std::vector<fs::path> cpu_cgroup_directories(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  std::vector<fs::path> unified;
  for (std::string line; std::getline(file, line);) {  // "hierarchy:controllers:path", cgroups(7)
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      unified = with_parents(root / "sys/fs/cgroup", path);
    } else if (names_cpu(controllers)) {
      for (const std::string& mount : {controllers, std::string("cpu")}) {
        if (fs::exists(root / "sys/fs/cgroup" / mount)) return with_parents(root / "sys/fs/cgroup" / mount, path);
      }
    }
  }
  return unified;
}

UsableCpus usable_cpus(const fs::path& root) {
  UsableCpus result;
  result.affinity = affinity_mask();
  for (const fs::path& directory : cpu_cgroup_directories(root)) {
    std::string source;
    const auto quota = quota_in(directory, source);
    if (quota && (!result.quota_cpus || *quota < *result.quota_cpus)) {
      result.quota_cpus = quota;
      result.quota_source = source;
    }
  }
  result.count = static_cast<int>(result.affinity.size());
  if (result.quota_cpus)
    result.count = std::min(result.count, std::max(1, static_cast<int>(std::floor(*result.quota_cpus))));
  return result;
}

}  // namespace dlbench
