// `dlbench run`: measures what a config asks for and reports it from the file that was written.
#include <fmt/format.h>

#include <memory>
#include <ostream>

#include "commands/measure_options.h"
#include "commands/progress.h"
#include "commands/signals.h"
#include "core/measure/runner.h"
#include "core/report/report.h"
#include "core/result/result_io.h"

namespace dlbench {

namespace {

struct RunArguments : MeasureArguments {
  std::string json, gbench_out;
  bool dry_run = false;
};

ExitCode exit_code_of(const Result& result) {
  if (const auto stopped = SignalsCaught::exit_code()) return *stopped;
  ExitCode code = ExitCode::kOk;
  for (const PointRow& row : result.points) {
    switch (row.status) {
      case Status::mismatch:
      case Status::invalid:
        return ExitCode::kRegression;
      case Status::failed:
      case Status::timeout:
      case Status::device_lost:
        code = ExitCode::kSomeFailed;
        break;
      case Status::ok:
      case Status::unsupported:
      case Status::out_of_memory:
      case Status::skipped:
        break;
    }
  }
  return code;
}

void say_what_is_left(Program& program, const Result& result, const std::string& output) {
  if (!result.partial || output == "-") return;
  program.err << fmt::format("dlbench: {} is partial; `dlbench run --resume` with the same options finishes it\n",
                             output);
}

ExitCode run(Program& program, const RunArguments& arguments) {
  if (!arguments.json.empty() && arguments.json != "-") {
    throw UsageError(
        fmt::format("--json {}: only - (standard output) is known; --output FILE writes a file", arguments.json));
  }
  const Config config = config_from(arguments, program.catalog);
  Registry registry({.search_path = {}, .meta = config.meta});
  const Plan plan = make_plan(config, program.catalog, registry);
  if (arguments.dry_run) {
    program.out << render_plan(plan);
    return ExitCode::kOk;
  }
  RunOptions options;
  options.output = arguments.output.empty() ? config.name + ".result.json" : arguments.output;
  options.executable = program.executable;
  options.gbench_out = arguments.gbench_out;
  options.command_line = program.arguments;
  options.resume = arguments.resume;
  options.signal = &SignalsCaught::caught();
  if (options.resume && options.output == "-") throw UsageError("--resume needs the file of --output, not -");
  const SignalsCaught signals;
  ProgressLine progress(program.err, program.err_is_terminal, program.quiet, program.width);
  Result result = run_plan(plan, program.catalog, registry, options, progress);
  progress.clear();
  if (options.output == "-") return exit_code_of(result);
  result = read_result(options.output);  // what is shown is what is on disk
  if (arguments.json == "-") {
    program.out << result_text(result);
  } else {
    program.out << render_console(analyze(result), {.width = program.width, .color = program.color});
  }
  if (!program.quiet) program.err << fmt::format("dlbench: result written to {}\n", options.output);
  say_what_is_left(program, result, options.output);
  return exit_code_of(result);
}

}  // namespace

void add_run_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command = app.add_subcommand("run", "Measure the points of a config on every device and report them");
  command->footer("Example: dlbench run quick --output quick.json --batch 1:1024:x2 --precision fp32,bf16");
  const auto arguments = std::make_shared<RunArguments>();
  add_measure_options(*command, *arguments);
  command
      ->add_option("-o,--output", arguments->output,
                   "Result file, - for standard output; a file that is there is moved to FILE.previous "
                   "(default: <config>.result.json)")
      ->type_name("FILE");
  command->add_flag("--resume", arguments->resume,
                    "Finish the interrupted result of --output instead of starting anew");
  command->add_flag("--dry-run", arguments->dry_run, "Print the plan with its estimated time and measure nothing");
  command->add_option("--json", arguments->json, "- prints the result file instead of the tables")->type_name("-");
  command->add_option("--gbench-out", arguments->gbench_out, "Also write the timings in Google Benchmark's JSON")
      ->type_name("FILE");
  command->callback(
      [&program, &action, arguments] { action = [&program, arguments] { return run(program, *arguments); }; });
}

}  // namespace dlbench
