// `dlbench export FILE... --to FORMAT`: result files for other tools.
#include <fmt/format.h>

#include <ostream>

#include "commands/commands.h"
#include "commands/result_files.h"
#include "core/base/error.h"
#include "core/report/export.h"

namespace dlbench {

namespace {

struct ExportOptions {
  ResultFiles input;
  std::string format, output;
};

std::string as_text(const Json& json) {
  return dump_json(json) + "\n";
}

std::string convert(const Analysis& analysis, const std::string& format) {
  if (format == "csv") return render_csv(analysis);
  if (format == "markdown") return render_markdown(analysis);
  if (format == "gbench") return as_text(export_gbench(analysis));
  if (format == "github-action-benchmark") return as_text(export_github_action_benchmark(analysis));
  if (format == "bencher") return as_text(export_bencher(analysis));
  return as_text(export_pyperf(analysis));
}

ExitCode export_results(const ExportOptions& options, Program& program) {
  const LoadedResult loaded = load_results(options.input);
  const Analysis analysis = analyze(loaded.result);
  size_t measured = 0;
  for (const AnalyzedPoint& point : analysis.points) measured += point.status == Status::ok && point.seconds;
  const size_t left_out = analysis.points.size() - measured;
  const bool has_statuses = options.format == "csv" || options.format == "markdown";
  if (measured == 0 && !has_statuses) {
    throw InputError(fmt::format("{}: no point has a result, so there is nothing to export; `dlbench report` shows why",
                                 options.input.files.front()));
  }
  if (left_out > 0 && !has_statuses && !program.quiet) {
    program.err << fmt::format("dlbench: {} point{} without a result left out: {} has no place for a status\n",
                               left_out, left_out == 1 ? "" : "s", options.format);
  }
  write_text(convert(analysis, options.format), options.output, program);
  return ExitCode::kOk;
}

}  // namespace

void add_export_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command = app.add_subcommand("export", "Write result files in the format of another tool");
  auto options = std::make_shared<ExportOptions>();
  add_result_files(*command, options->input);
  command->add_option("--to", options->format, "csv, markdown, gbench, github-action-benchmark, bencher or pyperf")
      ->required()
      ->check(CLI::IsMember({"csv", "markdown", "gbench", "github-action-benchmark", "bencher", "pyperf"}))
      ->type_name("FORMAT");
  command->add_option("-o,--output", options->output, "Write to this file instead of standard output")
      ->type_name("FILE");
  command->footer("Example: dlbench export results/quick.json --to github-action-benchmark -o benchmark.json");
  command->callback(
      [options, &program, &action] { action = [options, &program] { return export_results(*options, program); }; });
}

}  // namespace dlbench
