#include "commands/command_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/json.h"

namespace dlbench {

namespace {

/// The innermost subcommand that was chosen, `app` itself when there is none.
const CLI::App& chosen(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : chosen(*parsed.front());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() ? full_name(*app.get_parent()) + " " + app.get_name() : std::string("dlbench");
}

/// "-o" and "--output" of every option that may stand behind `app`, the options of its parents included.
std::vector<std::string> option_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* level = &app; level; level = level->get_parent()) {
    for (const CLI::Option* option : visible_options(*level)) {
      for (const auto& name : option->get_lnames()) words.push_back("--" + name);
      for (const auto& name : option->get_snames()) words.push_back("-" + name);
    }
  }
  return words;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest_word(word, known);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

std::string unexpected_word(const CLI::App& app, const std::string& word) {
  const std::string name = full_name(app);
  if (word.size() > 1 && word[0] == '-') {
    const std::string option = word.substr(0, word.find('='));
    const std::string near = suggestion(option, option_words(app));
    return fmt::format("`{}` has no option '{}'{} `{} --help` lists its options", name, option,
                       near.empty() ? ";" : near, name);
  }
  if (!app.get_parent()) {
    std::vector<std::string> names;
    for (const CLI::App* command : visible_commands(app)) names.push_back(command->get_name());
    return fmt::format("there is no subcommand '{}'{} the subcommands are {}", word,
                       suggestion(word, names).empty() ? ";" : suggestion(word, names), fmt::join(names, ", "));
  }
  return fmt::format("`{}` takes no further argument, but got '{}'; see `{} --help`", name, word, name);
}

std::string help_footer() {
  std::string text = "Example: dlbench run quick --output quick.json\n\nExit codes:\n";
  for (const auto& [code, meaning] : exit_code_meanings()) text += fmt::format("  {:>3}  {}\n", code, meaning);
  text += "\nEnvironment:\n";
  for (const auto& [name, meaning] : environment_variables()) text += fmt::format("  {:<18}  {}\n", name, meaning);
  return text;
}

/// An empty value is a slip of the shell (`--batch "$UNSET"`), and no option means something by it.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    option->check([](const std::string& value) { return value.empty() ? std::string("the value is empty") : ""; });
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) refuse_empty_values(*command);
}

}  // namespace

const char* program_version() {
  return DLBENCH_VERSION;
}
const char* program_description() {
  return DLBENCH_DESCRIPTION;
}

std::vector<std::pair<int, std::string>> exit_code_meanings() {
  return {{0, "everything went well"},
          {1, "a regression, a wrong result (mismatch) or an invalid point"},
          {2, "the command line or the config is wrong"},
          {3, "inconclusive: the environment drifted, or there is too little data for a verdict"},
          {4, "an input file is unreadable or can't be compared"},
          {5, "some points failed (the result file was written), or output could not be written"},
          {6, "a device that was demanded isn't there"},
          {130, "interrupted (Ctrl-C); 143: terminated. What was measured until then is in the result file"}};
}

std::vector<std::pair<std::string, std::string>> environment_variables() {
  return {{"DLBENCH_PLUGIN_DIR", "first directory in which device backends (libdlbench_backend_*.so) are looked for"},
          {"NO_COLOR", "when set to anything, no colour (also none where standard output is no terminal)"},
          {"COLUMNS", "width of tables where standard output is no terminal"}};
}

std::vector<const CLI::App*> visible_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> visible_options(const CLI::App& app) {
  return app.get_options(
      [](const CLI::Option* option) { return !option->get_group().empty() && !option->get_positional(); });
}

std::unique_ptr<CLI::App> make_command_line(Program& program, Action& action) {
  auto app = std::make_unique<CLI::App>(std::string(program_description()), "dlbench");
  app->set_version_flag("--version", fmt::format("dlbench {}", program_version()), "Print the version and exit");
  app->set_help_flag("-h,--help", "Print this help and exit");
  app->add_flag("--quiet", program.quiet, "Print results and errors only: no progress, no notes");
  app->fallthrough();  // so that `dlbench run --quiet` works as `dlbench --quiet run`
  app->require_subcommand(1);
  app->footer(help_footer());
#define DLB_COMMAND(name) add_##name##_command(*app, program, action);
#include "commands/commands.def"
#undef DLB_COMMAND
  refuse_empty_values(*app);
  return app;
}

std::string usage_sentence(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen(app);
  const std::string name = full_name(command);
  if (const auto words = app.remaining(true); !words.empty()) return unexpected_word(command, words.front());
  if (&command == &app && dynamic_cast<const CLI::RequiredError*>(&error)) {
    std::vector<std::string> names;
    for (const CLI::App* each : visible_commands(app)) names.push_back(each->get_name());
    return fmt::format("a subcommand is needed: {}; `dlbench --help` says what each does", fmt::join(names, ", "));
  }
  std::string what = error.what();
  if (const size_t line = what.find('\n'); line != std::string::npos) what.resize(line);
  return fmt::format("`{}`: {}; see `{} --help`", name, what, name);
}

}  // namespace dlbench
