// `dlbench compare BASE CAND`: whether something became slower between two sides of one or several results each.
#include "core/analysis/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "commands/commands.h"
#include "commands/result_files.h"
#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/report/comparison.h"
#include "core/result/integrity.h"
#include "core/result/result_io.h"

namespace dlbench {

namespace {

struct CompareArguments {
  std::vector<std::string> files, base, cand, filters, fail_on;
  std::string noise_profile, markdown, json, junit;
  double min_effect = 2;  ///< percent
  bool github = false;
};

/// A side in memory; `sessions` points into `results`.
struct LoadedSide {
  std::vector<Result> results;
  std::vector<Session> sessions;
};

LoadedSide load_side(const std::vector<std::string>& files) {
  LoadedSide side;
  side.results.reserve(files.size());
  for (const std::string& file : files) {
    const std::string origin = file == "-" ? "standard input" : file;
    const std::string bytes = read_bytes(file);
    side.results.push_back(result_from_json(parse_json(bytes, origin), origin));
    require_integrity(side.results.back(), origin);
    side.sessions.push_back({&side.results.back(), origin, sha256(bytes)});
  }
  return side;
}

FailOn fail_on(const std::vector<std::string>& words) {
  FailOn on;
  if (words.empty()) return on;
  const auto has = [&words](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (has("none") && words.size() > 1) throw UsageError("--fail-on none: stands alone");
  return {.regression = has("regression"),
          .improvement = has("improvement"),
          .inconclusive = has("inconclusive"),
          .missing = has("missing"),
          .incomparable = has("incomparable")};
}

/// BASE CAND, or --base FILE... --cand FILE...
void take_sides(CompareArguments& a) {
  const bool named = !a.base.empty() || !a.cand.empty();
  if (named && !a.files.empty()) {
    throw UsageError(fmt::format("{}: name the sides either as BASE CAND or by --base and --cand", a.files.front()));
  }
  if (!named) {
    if (a.files.size() != 2) {
      throw UsageError(
          fmt::format("`dlbench compare` needs BASE and CAND, got {} file{}; several files a side: --base A "
                      "B --cand C D",
                      a.files.size(), a.files.size() == 1 ? "" : "s"));
    }
    a.base = {a.files[0]};
    a.cand = {a.files[1]};
  }
  if (a.base.empty() || a.cand.empty())
    throw UsageError(fmt::format("{} is missing: name the files of both sides", a.base.empty() ? "--base" : "--cand"));
  const auto inputs = std::count(a.base.begin(), a.base.end(), "-") + std::count(a.cand.begin(), a.cand.end(), "-");
  if (inputs > 1) throw UsageError("standard input (-) can be named once only");
  const int to_stdout = (a.json == "-") + (a.markdown == "-") + (a.junit == "-");
  if (to_stdout > 1) throw UsageError("standard output (-) can be named once only, by --json, --markdown or --junit");
}

void write_outputs(const Comparison& c, const CompareArguments& a, Program& program) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {a.json, a.json.empty() ? "" : dump_json(comparison_json(c)) + "\n"},
      {a.markdown, a.markdown.empty() ? "" : render_comparison_markdown(c)},
      {a.junit, a.junit.empty() ? "" : render_comparison_junit(c)}};
  bool data_on_stdout = false;
  for (const auto& [path, text] : files) {
    if (path.empty()) continue;
    write_text(text, path, program);
    data_on_stdout = data_on_stdout || path == "-";
  }
  if (!data_on_stdout) program.out << render_comparison_console(c, {.width = program.width, .color = program.color});
  // GitHub reads workflow commands from both streams.
  if (a.github) (data_on_stdout ? program.err : program.out) << render_comparison_github(c);
}

ExitCode compare_results(CompareArguments a, Program& program) {
  take_sides(a);
  CompareOptions options{.judge = {.min_effect = a.min_effect / 100},
                         .filter = KeyFilter(a.filters),
                         .fail_on = fail_on(a.fail_on),
                         .profile = std::nullopt,
                         .profile_file = a.noise_profile};
  if (!a.noise_profile.empty()) options.profile = read_noise_profile(a.noise_profile);
  const LoadedSide base = load_side(a.base), cand = load_side(a.cand);
  const Comparison comparison = compare(base.sessions, cand.sessions, std::move(options));
  write_outputs(comparison, a, program);
  return static_cast<ExitCode>(comparison.exit_code());
}

}  // namespace

void add_compare_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command = app.add_subcommand("compare", "Say what became slower between two results, and how sure that is");
  auto a = std::make_shared<CompareArguments>();
  command->add_option("files", a->files, "BASE and CAND: result files; - is standard input")->type_name("FILE");
  command->add_option("--base", a->base, "Result files of the base; several are pooled as sessions")->type_name("FILE");
  command->add_option("--cand", a->cand, "Result files of the candidate; several are pooled as sessions")
      ->type_name("FILE");
  command
      ->add_option("--filter", a->filters,
                   "Only points whose key this regular expression finds; with a - before it, only the others")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  command
      ->add_option("--min-effect", a->min_effect, "Percent: a smaller change is never a regression or an improvement")
      ->check(CLI::Range(0.0, 1000.0))
      ->type_name("PERCENT")
      ->capture_default_str();
  command
      ->add_option("--fail-on", a->fail_on,
                   "Verdicts that fail, instead of regression,incomparable,missing: any of regression, improvement, "
                   "inconclusive, incomparable, missing; or none")
      ->delimiter(',')
      ->check(CLI::IsMember({"regression", "improvement", "inconclusive", "incomparable", "missing", "none"}))
      ->type_name("LIST")
      ->allow_extra_args(false);
  command->add_option("--noise-profile", a->noise_profile, "What `dlbench calibrate` learnt about this machine")
      ->type_name("FILE");
  command->add_option("--markdown", a->markdown, "Also write it as markdown, for a pull request; - is standard output")
      ->type_name("FILE");
  command->add_option("--json", a->json, "Also write it as JSON, every point; - is standard output")->type_name("FILE");
  command->add_option("--junit", a->junit, "Also write it as JUnit XML; - is standard output")->type_name("FILE");
  command->add_flag("--github", a->github, "Also print annotations for GitHub Actions");
  command->footer(
      "Example: dlbench compare base.json candidate.json --markdown comment.md\n"
      "Exit code: 1 a regression or a wrong result; 3 a control kernel shifted, points are missing, or too little data "
      "for any verdict; 4 measured under different conditions. --fail-on changes which verdicts count; a wrong result "
      "and a shift always do.");
  command->callback([a, &program, &action] { action = [a, &program] { return compare_results(*a, program); }; });
}

}  // namespace dlbench
