// `dlbench report FILE...`: what the result files say, as text or data.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <ostream>

#include "commands/commands.h"
#include "commands/result_files.h"
#include "core/report/report.h"

namespace dlbench {

namespace {

struct ReportOptions {
  ResultFiles input;
  std::string format = "console", output;
};

std::string render(const Analysis& analysis, const LoadedResult& loaded, const std::string& format,
                   const Program& program) {
  if (format == "markdown") return render_markdown(analysis);
  if (format == "csv") return render_csv(analysis);
  if (format == "json") return dump_json(render_json(analysis, loaded.sources)) + "\n";
  return render_console(analysis, {.width = program.width, .color = program.color});
}

ExitCode report(const ReportOptions& options, Program& program) {
  const LoadedResult loaded = load_results(options.input);
  const Analysis analysis = analyze(loaded.result);
  Program plain = program;
  if (!options.output.empty()) plain.color = false;
  write_text(render(analysis, loaded, options.format, plain), options.output, program);
  for (const AnalyzedPoint& point : analysis.points) {
    if (point.status == Status::mismatch || point.status == Status::invalid) return ExitCode::kRegression;
  }
  return ExitCode::kOk;
}

}  // namespace

void add_report_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command = app.add_subcommand("report", "Say where the GPU wins, and show every number, from result files");
  auto options = std::make_shared<ReportOptions>();
  add_result_files(*command, options->input);
  command->add_option("--format", options->format, "console, markdown, csv or json (report.json)")
      ->check(CLI::IsMember({"console", "markdown", "csv", "json"}))
      ->type_name("FORMAT");
  command->add_option("-o,--output", options->output, "Write to this file instead of standard output")
      ->type_name("FILE");
  command->footer("Example: dlbench report cpu-box.json gpu-box.json --format markdown -o report.md");
  command->callback(
      [options, &program, &action] { action = [options, &program] { return report(*options, program); }; });
}

}  // namespace dlbench
