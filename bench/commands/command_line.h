// The command line as a whole: every subcommand added, and what CLI11 finds wrong told as one sentence.
//
// Why: `main`, the man page, the shell completion and their tests look at the same object.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands/commands.h"

namespace dlbench {

/// Adds the options of the program and all rows of commands.def; `action` receives what the chosen subcommand does.
std::unique_ptr<CLI::App> make_command_line(Program& program, Action& action);

/// What is wrong, what would be near, and where to look: one sentence for a parse error of `app`.
std::string usage_sentence(const CLI::App& app, const CLI::ParseError& error);

/// The subcommands that people use, without hidden ones (an empty group).
std::vector<const CLI::App*> visible_commands(const CLI::App& app);
/// The options of `app` that people use, --help included.
std::vector<const CLI::Option*> visible_options(const CLI::App& app);

/// Exit codes and environment variables with one sentence each, as --help and the man page print them.
std::vector<std::pair<int, std::string>> exit_code_meanings();
std::vector<std::pair<std::string, std::string>> environment_variables();

const char* program_version();
const char* program_description();

}  // namespace dlbench
