// `dlbench help-man` (hidden): the man page, made from the same objects as --help. The build installs what it prints.
#include <fmt/format.h>

#include <ostream>

#include "commands/command_line.h"

namespace dlbench {

namespace {

/// Text for roff: backslashes and hyphens taken literally, no line that starts with a control character.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

/// Text whose line breaks mean something: examples, tables.
std::string verbatim(const std::string& text) {
  return ".PP\n.nf\n" + roff(text) + "\n.fi\n";
}

void write_option(std::ostream& out, const CLI::Option& option) {
  std::string names;
  for (const auto& name : option.get_snames()) names += (names.empty() ? "" : ", ") + ("-" + name);
  for (const auto& name : option.get_lnames()) names += (names.empty() ? "" : ", ") + ("--" + name);
  if (option.get_positional()) names = option.get_name(true);
  out << ".TP\n\\fB" << roff(names) << "\\fR";
  if (option.get_items_expected_max() > 0) out << " \\fI" << roff(option.get_type_name()) << "\\fR";
  out << "\n" << roff(option.get_description()) << "\n";
}

void write_options(std::ostream& out, const CLI::App& app) {
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* each) { return each->get_positional() && !each->get_group().empty(); }))
    write_option(out, *option);
  for (const CLI::Option* option : visible_options(app)) write_option(out, *option);
}

void write_man_page(std::ostream& out, const CLI::App& app) {
  out << fmt::format(".TH DLBENCH 1 \"\" \"dlbench {}\" \"User Commands\"\n", program_version());
  out << ".SH NAME\ndlbench \\- " << roff(program_description()) << "\n";
  out << ".SH SYNOPSIS\n.B dlbench\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n";
  out << ".SH OPTIONS\n";
  write_options(out, app);
  out << ".SH COMMANDS\n";
  for (const CLI::App* command : visible_commands(app)) {
    out << ".SS dlbench " << roff(command->get_name()) << "\n" << roff(command->get_description()) << "\n";
    write_options(out, *command);
    if (!command->get_footer().empty()) out << verbatim(command->get_footer());
  }
  out << ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : exit_code_meanings())
    out << ".TP\n\\fB" << code << "\\fR\n" << roff(meaning) << "\n";
  out << ".SH ENVIRONMENT\n";
  for (const auto& [name, meaning] : environment_variables())
    out << ".TP\n\\fB" << roff(name) << "\\fR\n" << roff(meaning) << "\n";
}

}  // namespace

void add_help_man_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command = app.add_subcommand("help-man", "Print the man page")->group("");
  command->callback([&app, &program, &action] {
    action = [&app, &program] {
      write_man_page(program.out, app);
      return ExitCode::kOk;
    };
  });
}

}  // namespace dlbench
