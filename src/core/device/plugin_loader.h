// Opens one backend plugin and says, in one sentence, why it can't be used.
//
// Why: an absent plugin, one built for another dlbench, a missing vendor library and a missing driver look alike to
// dlopen; people need to know which of them it is. Promises: never throws; the fingerprint is compared before anything
// else of the plugin is called; an accepted plugin stays loaded until the process ends (its threads and devices may
// outlive any handle).
#pragma once

#include <filesystem>
#include <string>

#include "core/device/plugin.h"

namespace dlbench {

struct LoadedPlugin {
  const BackendPlugin* table = nullptr;  ///< nullptr when it can't be used at all
  ProbeResult probe;                     ///< the plugin's own, or why there is no table
};

/// @param kind what the file name promises; the plugin's own `kind` must be equal.
LoadedPlugin load_plugin(const std::filesystem::path& file, const std::string& kind);

/// Files named libdlbench_backend_<kind>.so in `folder`, sorted by kind; empty when the folder can't be read.
std::vector<std::pair<std::string, std::filesystem::path>> plugins_in(const std::filesystem::path& folder);

}  // namespace dlbench
