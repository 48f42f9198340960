// `dlbench compare BASE CAND`: whether something became slower between two sides of one or several results each.
#include "core/analysis/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <ostream>
#include <utility>

#include "commands/commands.h"
#include "commands/result_files.h"
#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/report/comparison.h"
#include "core/result/integrity.h"
#include "core/result/placement.h"
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

struct LoadedFile {
  Result result;
  std::string sha256;
};

/// Reads a file; the hash is made beside the parsing.
LoadedFile load_file(const std::string& file, const std::string& origin) {
  const std::string bytes = read_bytes(file);
  auto hash = std::async(std::launch::async, [&bytes] { return sha256(bytes); });
  LoadedFile loaded;
  loaded.result = result_from_json(parse_json(bytes, origin), origin);
  require_integrity(loaded.result, origin);
  loaded.sha256 = hash.get();
  return loaded;
}

std::string origin_of(const std::string& file) {
  return file == "-" ? "standard input" : file;
}

using Loading = std::vector<std::future<LoadedFile>>;

/// Files are read beside each other: reading them is nearly all of the time of a comparison.
Loading start_loading(const std::vector<std::string>& files) {
  Loading loading;
  for (const std::string& file : files)
    loading.push_back(std::async(std::launch::async, [file] { return load_file(file, origin_of(file)); }));
  return loading;
}

/// @throws InputError of the first file that has one.
LoadedSide finish_loading(Loading loading, const std::vector<std::string>& files) {
  LoadedSide side;
  side.results.reserve(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    LoadedFile loaded = loading[i].get();
    side.results.push_back(std::move(loaded.result));
    side.sessions.push_back({&side.results.back(), origin_of(files[i]), std::move(loaded.sha256)});
  }
  return side;
}

/// The labels of both sides' placements, made to mean the same: a session that saw one state can't tell which it was.
void relabel_sides(LoadedSide& base, LoadedSide& cand) {
  std::vector<Result> all;
  for (LoadedSide* side : {&base, &cand})
    std::move(side->results.begin(), side->results.end(), std::back_inserter(all));
  relabel_together(all);
  auto labelled = all.begin();
  for (LoadedSide* side : {&base, &cand}) {
    for (Result& result : side->results) result = std::move(*labelled++);
  }
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
  Loading base_loading = start_loading(a.base), cand_loading = start_loading(a.cand);
  LoadedSide base = finish_loading(std::move(base_loading), a.base);
  LoadedSide cand = finish_loading(std::move(cand_loading), a.cand);
  relabel_sides(base, cand);
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
