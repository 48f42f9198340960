// `dlbench ab BASE CANDIDATE CONFIG`: two programs measured side by side in rounds, and whether one became slower.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <ostream>

#include "commands/measure_options.h"
#include "commands/progress.h"
#include "commands/result_files.h"
#include "commands/signals.h"
#include "core/measure/ab_run.h"
#include "core/report/ab_report.h"
#include "core/report/report.h"
#include "core/result/environment.h"

namespace dlbench {

namespace {

struct AbArguments {
  std::string base, candidate, json, markdown, fail_on = "regression";
  MeasureArguments measure;
  AbRule rule;
  double min_effect_percent = 2;
};

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kLine{10};  // without a terminal

/// Progress on stderr, and the file that grows with every round.
class AbProgressLine final : public AbObserver {
 public:
  AbProgressLine(Program& program, const AbArguments& arguments, AbContext& context)
      : program_(program), arguments_(arguments), context_(context) {}

  void on_progress(const AbProgress& p) override {
    const auto now = std::chrono::steady_clock::now();
    const bool redraw = program_.err_is_terminal;
    if (program_.quiet || now - last_ < (redraw ? std::chrono::steady_clock::duration(kRedraw) : kLine)) return;
    last_ = now;
    std::string line = fmt::format(
        "{} round {}/{} [{}/{}]{}: {}", p.confirming ? "confirming" : "screening", p.round, p.rounds, p.done, p.total,
        p.remaining_seconds > 0 ? fmt::format(", {} left {}", readable_duration(p.remaining_seconds),
                                              p.confirming ? "until the next look" : "of the screen")
                                : std::string(),
        p.key);
    if (!redraw) {
      program_.err << line << std::endl;
      return;
    }
    line.resize(std::min(line.size(), static_cast<size_t>(std::max(program_.width - 1, 1))));
    program_.err << "\r\033[K" << line << std::flush;
    drawn_ = true;
  }

  void on_note(const std::string& sentence) override {
    if (program_.quiet) return;
    clear();
    program_.err << "dlbench: " << sentence << std::endl;
  }

  void on_round(const AbSession& session) override {
    if (arguments_.json.empty() || arguments_.json == "-") return;
    AbSession unfinished = session;
    unfinished.stopped = "not finished";
    write(unfinished);
  }

  void write(const AbSession& session) const {
    const AbOutcome outcome = judge(session.points, arguments_.rule);
    write_text(dump_json(ab_json(session, outcome, context_)) + "\n", arguments_.json, program_);
  }

  void clear() {
    if (drawn_) program_.err << "\r\033[K" << std::flush;
    drawn_ = false;
  }

 private:
  Program& program_;
  const AbArguments& arguments_;
  AbContext& context_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

std::string absolute_program(const std::string& written) {
  std::error_code failure;
  const std::filesystem::path path = std::filesystem::absolute(written, failure);
  return failure ? written : path.string();
}

ExitCode ab(Program& program, AbArguments& arguments) {
  arguments.rule.min_effect = arguments.min_effect_percent / 100;
  if (arguments.json == "-" && arguments.markdown == "-") {
    throw UsageError("--json - and --markdown - both want standard output; name a file for one of them");
  }
  if (!arguments.measure.processes.empty()) {
    throw UsageError("--processes means nothing to `dlbench ab`: its rounds go on until its suspects are judged");
  }
  const Config config = config_from(arguments.measure, program.catalog);
  Registry registry({.search_path = {}, .meta = config.meta});
  AbContext context{.base = arguments.base,
                    .candidate = arguments.candidate,
                    .config = config.name,
                    .merged_config = config.merged,
                    .environment = environment_record(registry),
                    .command_line = program.arguments,
                    .started_utc = utc_now(),
                    .rule = arguments.rule};
  AbOptions options{.base = absolute_program(arguments.base),
                    .candidate = absolute_program(arguments.candidate),
                    .rule = arguments.rule,
                    .time_budget_seconds = config.measure.time_budget_seconds,
                    .signal = &SignalsCaught::caught()};
  const SignalsCaught signals;
  AbProgressLine progress(program, arguments, context);
  const AbSession session = run_ab(config, options, progress);
  progress.clear();
  const AbOutcome outcome = judge(session.points, arguments.rule);
  const Document document = ab_document(session, outcome, context);
  if (!arguments.json.empty()) progress.write(session);
  if (!arguments.markdown.empty()) write_text(render_markdown(document), arguments.markdown, program);
  if (arguments.json != "-" && arguments.markdown != "-") {
    program.out << render_console(document, {.width = program.width, .color = program.color});
  }
  if (const auto stopped = SignalsCaught::exit_code()) return *stopped;
  return exit_code_of(session, outcome, arguments.fail_on == "inconclusive");
}

}  // namespace

void add_ab_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command = app.add_subcommand("ab", "Measure two dlbench programs side by side and say what became slower");
  command->footer("Example: dlbench ab ../main/build/bin/dlbench build/bin/dlbench ci --json ab.json --markdown ab.md");
  const auto arguments = std::make_shared<AbArguments>();
  command->add_option("base", arguments->base, "The program to compare with")->required()->type_name("PROGRAM");
  command->add_option("candidate", arguments->candidate, "The program that may have become slower")
      ->required()
      ->type_name("PROGRAM");
  arguments->measure.config = "ci";
  add_measure_options(*command, arguments->measure);
  command
      ->add_option("--json", arguments->json,
                   "Every round and every verdict as JSON, kept after each round; - for stdout")
      ->type_name("FILE");
  command->add_option("--markdown", arguments->markdown, "The report for a pull request; - for stdout")
      ->type_name("FILE");
  command
      ->add_option("--min-effect", arguments->min_effect_percent,
                   "Smallest change in per cent that is called one (default: 2)")
      ->check(CLI::Range(1.0, 1000.0))
      ->type_name("PERCENT");
  command
      ->add_option("--fail-on", arguments->fail_on,
                   "regression, or inconclusive: suspects that stay open end with 3 as well")
      ->check(CLI::IsMember({"regression", "inconclusive"}))
      ->type_name("WHAT");
  command->callback(
      [&program, &action, arguments] { action = [&program, arguments] { return ab(program, *arguments); }; });
}

}  // namespace dlbench
