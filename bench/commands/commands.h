// Subcommands: each adds itself to the command line and leaves an action to run when it was chosen.
//
// Why: `main` is parse -> command -> exit code and nothing else; streams, catalog and registry options are passed in,
// so commands have no globals.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/train/workload.h"

namespace dlbench {

/// What every command gets. Results go to `out` (stdout), progress and warnings to `err` (stderr).
struct Program {
  std::ostream& out;
  std::ostream& err;
  const WorkloadCatalog& catalog;
  std::string executable;              ///< absolute path of this program, to start workers with
  std::vector<std::string> arguments;  ///< as it was called, for the record of a run
  bool quiet = false;                  ///< --quiet
  bool out_is_terminal = false, err_is_terminal = false;
  bool color = false;  ///< terminal and no NO_COLOR
  int width = 100;     ///< columns of the terminal
};

using Action = std::function<ExitCode()>;

#define DLB_COMMAND(name) void add_##name##_command(CLI::App& app, Program& program, Action& action);
#include "commands/commands.def"
#undef DLB_COMMAND

}  // namespace dlbench
