#include "commands/noise_profiles.h"

#include <cstdlib>
#include <filesystem>

namespace dlbench {

std::optional<std::string> noise_profile_path(const std::string& fingerprint) {
  std::filesystem::path folder;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && std::filesystem::path(state).is_absolute()) {
    folder = state;
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    folder = std::filesystem::path(home) / ".local/state";
  } else {
    return std::nullopt;
  }
  return (folder / "dlbench" / ("noise-" + fingerprint + ".json")).string();
}

}  // namespace dlbench
