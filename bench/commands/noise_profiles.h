// Where the noise profile of a machine lies: one file per machine, named by the fingerprint of its environment.
//
// Why here: `calibrate` writes what `compare` looks for. Promises: follows the XDG base directory specification;
// nothing is made by looking.
#pragma once

#include <optional>
#include <string>

namespace dlbench {

/// $XDG_STATE_HOME/dlbench/noise-FINGERPRINT.json, in ~/.local/state where that isn't set or isn't absolute; empty
/// without either.
std::optional<std::string> noise_profile_path(const std::string& fingerprint);

}  // namespace dlbench
