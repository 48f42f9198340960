// `dlbench help-completion` (hidden): the bash completion, made from the same objects as --help.
#include <fmt/format.h>

#include <ostream>

#include "commands/command_line.h"

namespace dlbench {

namespace {

std::vector<std::string> words_of(const CLI::Option& option) {
  std::vector<std::string> words;
  for (const auto& name : option.get_snames()) words.push_back("-" + name);
  for (const auto& name : option.get_lnames()) words.push_back("--" + name);
  return words;
}

std::string all_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : visible_options(app))
    for (const auto& word : words_of(*option)) words.push_back(word);
  return fmt::format("{}", fmt::join(words, " "));
}

/// The allowed values of an option that has a closed set of them: CLI11 writes "TEXT:{a,b}" into its type name.
std::string closed_set(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  std::string words = type.substr(open + 1, close - open - 1);
  for (char& c : words)
    if (c == ',') c = ' ';
  return words;
}

/// What to offer behind an option, as a bash expression; "" for a file name.
std::string values_of(const CLI::Option& option) {
  if (const std::string words = closed_set(option); !words.empty()) return words;
  for (const auto& [name, list] : {std::pair{"device", "devices"}, {"require", "devices"}, {"precision", "precisions"}})
    if (option.check_lname(name)) return fmt::format("$(\"$program\" list {} --names 2>/dev/null)", list);
  return "";
}

void write_values(std::ostream& out, const CLI::App& app, const std::string& command) {
  for (const CLI::Option* option : visible_options(app)) {
    if (option->get_items_expected_max() == 0) continue;
    const std::string values = values_of(*option);
    std::vector<std::string> patterns;
    for (const auto& word : words_of(*option)) patterns.push_back(command + ":" + word);
    out << fmt::format("    {})\n      ", fmt::join(patterns, "|"));
    out << (values.empty() ? std::string("COMPREPLY=($(compgen -f -- \"$current\"))")
                           : fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$current\"))", values));
    out << "\n      return ;;\n";
  }
}

void write_completion(std::ostream& out, const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : visible_commands(app)) names.push_back(command->get_name());
  out << "# bash completion of dlbench, printed by `dlbench help-completion`\n_dlbench() {\n"
         "  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local command='' word\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case $word in\n";
  out << fmt::format("      {}) command=$word; break ;;\n    esac\n  done\n", fmt::join(names, "|"));
  out << "  case $command:$before in\n";
  for (const CLI::App* command : visible_commands(app)) write_values(out, *command, command->get_name());
  out << "  esac\n  case $command in\n";
  out << fmt::format("    '') COMPREPLY=($(compgen -W \"{} {}\" -- \"$current\")); return ;;\n", fmt::join(names, " "),
                     all_words(app));
  for (const CLI::App* command : visible_commands(app))
    out << fmt::format(
        "    {}) [[ $current == -* ]] && {{ COMPREPLY=($(compgen -W \"{} --quiet\" -- \"$current\")); return; }} ;;\n",
        command->get_name(), all_words(*command));
  out << "  esac\n  COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "  case $command in\n"
         "    run|check) COMPREPLY+=($(compgen -W \"$(\"$program\" list configs --names 2>/dev/null)\" -- "
         "\"$current\")) ;;\n"
         "    list) COMPREPLY=($(compgen -W \"workloads configs precisions devices\" -- \"$current\")) ;;\n"
         "  esac\n}\n"
         "complete -o filenames -F _dlbench dlbench\n";
}

}  // namespace

void add_help_completion_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command = app.add_subcommand("help-completion", "Print the bash completion")->group("");
  command->callback([&app, &program, &action] {
    action = [&app, &program] {
      write_completion(program.out, app);
      return ExitCode::kOk;
    };
  });
}

}  // namespace dlbench
