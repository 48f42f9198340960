#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "core/base/error.h"
#include "core/plan/config.h"

namespace dlbench {

namespace fs = std::filesystem;

namespace {

/// In the current directory, beside an installed program, and around a program in build/<preset>/bin.
std::vector<fs::path> config_directories() {
  std::vector<fs::path> directories{"configs"};
  std::error_code failure;
  if (const fs::path program = fs::read_symlink("/proc/self/exe", failure); !failure) {
    const fs::path folder = program.parent_path();
    directories.push_back(folder.parent_path() / "share/dlbench/configs");
    directories.push_back(folder.parent_path().parent_path().parent_path() / "configs");
  }
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
    if (each.name == path_or_name || each.name + ".json" == path_or_name) return each.path.string();
    names.push_back(each.name);
  }
  const std::string nearest = nearest_word(path_or_name, names);
  throw UsageError(fmt::format("there is no config '{}'{}: neither a file nor one of the names {}", path_or_name,
                               nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                               fmt::join(names, ", ")));
}

}  // namespace dlbench
