#include "core/base/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "core/base/usable_cpus.h"

namespace dlbench {

namespace {

namespace fs = std::filesystem;

/// A limit above this is how cgroup v1 spells "no limit" (the largest multiple of a page).
constexpr int64_t kNoLimit = int64_t{1} << 60;

/// Empty when the file is missing or isn't a number: version 2 writes "max" for no limit.
std::optional<int64_t> integer_in(const fs::path& file) {
  std::istringstream text(first_line(file).value_or(""));
  int64_t value = 0;
  return text >> value ? std::optional(value) : std::nullopt;
}

void take(const fs::path& directory, const char* limit_file, const char* usage_file, MemoryLimit& result) {
  const auto limit = integer_in(directory / limit_file);
  if (!limit || *limit >= kNoLimit) return;
  const int64_t left = std::max<int64_t>(0, *limit - integer_in(directory / usage_file).value_or(0));
  result.limit_bytes = std::min(result.limit_bytes.value_or(*limit), *limit);
  result.left_bytes = std::min(result.left_bytes.value_or(left), left);
}

bool names_memory(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == "memory") return true;
  }
  return false;
}

}  // namespace

MemoryLimit cgroup_memory(const fs::path& root) {
  MemoryLimit result;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "hierarchy:controllers:path", cgroups(7)
    const size_t first = line.find(':'), second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && !names_memory(controllers)) continue;
    const fs::path base = root / "sys/fs/cgroup";
    const fs::path mount = unified ? base : fs::exists(base / controllers) ? base / controllers : base / "memory";
    for (fs::path relative = fs::path(line.substr(second + 1)).relative_path();; relative = relative.parent_path()) {
      const fs::path directory = relative.empty() ? mount : mount / relative;
      if (unified)
        take(directory, "memory.max", "memory.current", result);
      else
        take(directory, "memory.limit_in_bytes", "memory.usage_in_bytes", result);
      if (relative.empty()) break;
    }
  }
  return result;
}

}  // namespace dlbench
