// `dlbench validate FILE...`: whether files are what dlbench writes and reads.
#include <fmt/format.h>

#include <ostream>

#include "commands/commands.h"
#include "commands/result_files.h"
#include "core/base/error.h"
#include "core/plan/config.h"
#include "core/result/result_io.h"
#include "core/result/validate.h"

namespace dlbench {

namespace {

/// Violations of one file; `kind` is what it was taken for.
std::vector<Violation> check(const std::string& text, const std::string& origin, const Program& program,
                             std::string& kind) {
  const Json json = parse_json(text, origin, JsonComments::kAllow);
  const auto found = kind_of(json);
  if (!found) {
    throw InputError(fmt::format(
        "{}: /kind: neither a result, a report, a noise profile nor a comparison of dlbench, and without \"sweeps\" no config either", origin));
  }
  kind = to_string(*found);
  if (*found == FileKind::config) {
    parse_config(json, origin, {}, program.catalog);
    return {};
  }
  parse_json(text, origin);  // comments are for configs
  return violations(json, *found);
}

ExitCode validate(const std::vector<std::string>& files, Program& program) {
  bool all_valid = true;
  for (const std::string& file : files) {
    const std::string origin = file == "-" ? "standard input" : file;
    std::string kind;
    try {
      const std::vector<Violation> found = check(read_bytes(file), origin, program, kind);
      for (const Violation& v : found) program.out << fmt::format("{}: {}: {}\n", origin, v.pointer, v.what);
      if (found.empty()) program.out << fmt::format("{}: valid {}\n", origin, kind);
      all_valid = all_valid && found.empty();
    } catch (const Error& error) {  // the next files are still looked at
      program.out << error.what() << '\n';
      all_valid = false;
    }
  }
  return all_valid ? ExitCode::kOk : ExitCode::kUnreadable;
}

}  // namespace

void add_validate_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command = app.add_subcommand("validate", "Check result, report and config files against their schemas");
  auto files = std::make_shared<std::vector<std::string>>();
  command->add_option("files", *files, "Files; the kind is found in each; - is standard input")
      ->required()
      ->type_name("FILE");
  command->footer(
      "Example: dlbench validate results/quick.json\nExit code 4 when a file is not valid; one line per violation.");
  command->callback([files, &program, &action] { action = [files, &program] { return validate(*files, program); }; });
}

}  // namespace dlbench
