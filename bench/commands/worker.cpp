// `dlbench worker` (hidden): the process that measures, started and told what to do by `dlbench run`.
#include <unistd.h>

#include "commands/commands.h"
#include "core/measure/worker.h"

namespace dlbench {

void add_worker_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command = app.add_subcommand("worker", "Measure what `dlbench run` asks for")->group("");
  command->callback([&program, &action] {
    action = [&program] { return static_cast<ExitCode>(run_worker(STDIN_FILENO, kWorkerAnswers, program.catalog)); };
  });
}

}  // namespace dlbench
