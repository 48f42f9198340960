// Result files on the command line, for the commands that read them: one or several, merged.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "commands/commands.h"
#include "core/report/report.h"
#include "core/result/result.h"

namespace dlbench {

struct ResultFiles {
  std::vector<std::string> files;
  std::string preferred;
};
/// FILE... and --prefer.
void add_result_files(CLI::App& command, ResultFiles& files);

struct LoadedResult {
  Result result;
  std::vector<ReportSource> sources;
};
/// @throws InputError naming the file and the place.
LoadedResult load_results(const ResultFiles& files);

/// To a file (atomically), or to standard output for "" and "-".
void write_text(const std::string& text, const std::string& path, Program& program);
/// The bytes of a file; "-" is standard input.
std::string read_bytes(const std::string& path);

}  // namespace dlbench
