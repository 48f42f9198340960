// dlbench: parse -> command -> exit code.
#include <unistd.h>

#include <iostream>
#include <new>

#include "commands/command_line.h"
#include "commands/standard_streams.h"
#include "workloads/catalog.h"

namespace {

using namespace dlbench;

int report_error(const std::string& sentence, ExitCode code) {
  std::cerr << "dlbench: " << sentence << '\n';
  return static_cast<int>(code);
}

int run_program(int argc, char** argv) {
  const bool out_is_terminal = is_terminal(STDOUT_FILENO);
  Program program{.out = std::cout,
                  .err = std::cerr,
                  .catalog = workload_catalog(),
                  .executable = executable_path(),
                  .arguments = std::vector<std::string>(argv, argv + argc),
                  .out_is_terminal = out_is_terminal,
                  .err_is_terminal = is_terminal(STDERR_FILENO),
                  .color = wants_color(out_is_terminal),
                  .width = terminal_width()};
  Action action;
  const auto app = make_command_line(program, action);
  try {
    app->parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app->exit(help_or_version, std::cout, std::cerr);
  } catch (const CLI::ParseError& error) {
    return report_error(usage_sentence(*app, error), ExitCode::kUsage);
  }
  return static_cast<int>(action());
}

int run_and_explain(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const Error& error) {
    return report_error(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return report_error("this machine has no memory left for it; close other programs or ask for smaller sizes",
                        ExitCode::kSomeFailed);
  } catch (const std::exception& error) {
    return report_error(std::string("internal error, please report it: ") + error.what(), ExitCode::kSomeFailed);
  } catch (...) {
    return report_error("internal error, please report it: an exception without a message", ExitCode::kSomeFailed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  StandardOutput output;
  const int code = run_and_explain(argc, argv);
  if (const std::string lost = output.finish(); !lost.empty()) {
    const int lost_code = report_error("standard output lost results: " + lost, ExitCode::kSomeFailed);
    return code == 0 ? lost_code : code;
  }
  return code;
}
