#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "core/base/error.h"
#include "core/plan/config.h"

namespace dlbench {

namespace fs = std::filesystem;

namespace {

/// Beside an installed program, beside a program in build/<preset>/bin, and in the current directory.
std::vector<fs::path> config_directories() {
  std::vector<fs::path> directories;
  std::error_code failure;
  if (const fs::path program = fs::read_symlink("/proc/self/exe", failure); !failure) {
    const fs::path folder = program.parent_path();
    directories.push_back(folder.parent_path() / "share/dlbench/configs");
    directories.push_back(folder.parent_path().parent_path().parent_path() / "configs");
  }
  directories.push_back("configs");
  return directories;
}

}  // namespace

std::vector<ConfigFile> known_configs() {
  std::vector<ConfigFile> known;
  for (const fs::path& directory : config_directories()) {
    std::error_code failure;
    for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end; entry.increment(failure)) {
      const fs::path& path = entry->path();
      const auto same_name = [&](const ConfigFile& each) { return each.name == path.stem(); };
      if (path.extension() == ".json" && std::none_of(known.begin(), known.end(), same_name))
        known.push_back({path.stem().string(), path});
    }
  }
  std::sort(known.begin(), known.end(), [](const ConfigFile& a, const ConfigFile& b) { return a.name < b.name; });
  return known;
}

std::string find_config(const std::string& path_or_name) {
  std::error_code failure;
  if (fs::is_regular_file(path_or_name, failure) || path_or_name == "-") return path_or_name;
  std::vector<std::string> names;
  for (const ConfigFile& each : known_configs()) {
    if (each.name == path_or_name) return each.path.string();
    names.push_back(each.name);
  }
  throw UsageError(fmt::format("there is no config '{}': neither a file nor one of the names {}", path_or_name,
                               fmt::join(names, ", ")));
}

}  // namespace dlbench
