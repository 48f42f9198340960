// `dlbench calibrate`: sessions of this same program on this machine, and what its noise lets anybody see.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <ostream>
#include <thread>

#include "commands/measure_options.h"
#include "commands/noise_profiles.h"
#include "commands/progress.h"
#include "commands/result_files.h"
#include "commands/signals.h"
#include "core/analysis/calibration.h"
#include "core/measure/runner.h"
#include "core/result/environment.h"
#include "core/result/result_io.h"

namespace dlbench {

namespace {

namespace fs = std::filesystem;

struct CalibrateArguments {
  MeasureArguments measure;
  std::vector<std::string> from;
  int sessions = 5;
  double pause_seconds = 0;
};

/// Waits; false when a signal came.
bool pause_for(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (SignalsCaught::caught().load() != 0) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return SignalsCaught::caught().load() == 0;
}

/// The virtual hardware of another session has other noise; real hardware sees to that itself.
void change_noise(Config& config, int session) {
  config.meta.seed += 1000 * static_cast<uint64_t>(session);
  if (config.merged.contains("meta")) config.merged["meta"]["seed"] = config.meta.seed;
}

class SessionRuns {
 public:
  SessionRuns(Program& program, const CalibrateArguments& arguments, std::string folder)
      : program_(program), arguments_(arguments), folder_(std::move(folder)) {}

  /// Empty when a signal came.
  std::optional<std::vector<Result>> measure() {
    make_folder();
    std::vector<Result> results;
    for (int session = 0; session < arguments_.sessions; ++session) {
      const std::string file = fmt::format("{}/session-{}.json", folder_, session + 1);
      if (session > 0 && arguments_.pause_seconds > 0 && !pause_for(arguments_.pause_seconds)) return std::nullopt;
      if (!program_.quiet) program_.err << fmt::format("dlbench: session {} of {}\n", session + 1, arguments_.sessions);
      results.push_back(one(session, file));
      if (SignalsCaught::caught().load() != 0) return std::nullopt;
    }
    return results;
  }

  void remove() const {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

 private:
  void make_folder() const {
    std::error_code failure;
    fs::create_directories(folder_, failure);
    if (failure)
      throw UsageError(fmt::format("{}: can't be made: {}; choose another --output", folder_, failure.message()));
  }

  Result one(int session, const std::string& file) const {
    Config config = config_from(arguments_.measure, program_.catalog);
    change_noise(config, session);
    Registry registry({.search_path = {}, .meta = config.meta});
    const Plan plan = make_plan(config, program_.catalog, registry);
    RunOptions options;
    options.output = file;
    options.executable = program_.executable;
    options.command_line = program_.arguments;
    options.resume = arguments_.measure.resume && fs::exists(file);
    options.signal = &SignalsCaught::caught();
    ProgressLine progress(program_.err, program_.err_is_terminal, program_.quiet, program_.width);
    Result result = run_plan(plan, program_.catalog, registry, options, progress);
    progress.clear();
    return result;
  }

  Program& program_;
  const CalibrateArguments& arguments_;
  std::string folder_;
};

std::vector<Result> read_sessions(const std::vector<std::string>& files) {
  std::vector<Result> results;
  for (const std::string& file : files) results.push_back(read_result(file));
  return results;
}

std::string output_of(const CalibrateArguments& arguments, const std::string& fingerprint) {
  if (!arguments.measure.output.empty()) return arguments.measure.output;
  if (const auto path = noise_profile_path(fingerprint)) return *path;
  throw UsageError("neither XDG_STATE_HOME nor HOME says where a noise profile belongs; name a file with --output");
}

ExitCode finish(Program& program, NoiseProfile profile, const std::string& output) {
  profile.created_utc = utc_now();
  std::error_code failure;
  if (const fs::path folder = fs::path(output).parent_path(); !folder.empty()) fs::create_directories(folder, failure);
  if (failure)
    throw Error(fmt::format("{}: can't be made: {}", fs::path(output).parent_path().string(), failure.message()));
  write_noise_profile(profile, output);
  for (const std::string& sentence : calibration_sentences(profile)) program.out << sentence << '\n';
  for (const std::string& warning : profile.warnings) {
    if (!program.quiet) program.err << "dlbench: " << warning << '\n';
  }
  if (!program.quiet) program.err << fmt::format("dlbench: noise profile written to {}\n", output);
  return ExitCode::kOk;
}

ExitCode calibrate_machine(Program& program, const CalibrateArguments& arguments) {
  if (!arguments.from.empty()) {
    const std::vector<Result> sessions = read_sessions(arguments.from);
    NoiseProfile profile = calibrate(sessions);
    return finish(program, profile, output_of(arguments, profile.fingerprint));
  }
  const Config config = config_from(arguments.measure, program.catalog);
  if (config.measure.processes < 2) {
    throw UsageError("calibration tells sessions from processes, so it needs --processes 2 or more");
  }
  Registry registry({.search_path = {}, .meta = config.meta});
  const std::string output = output_of(arguments, environment_record(registry).at("fingerprint").get<std::string>());
  const SignalsCaught signals;
  SessionRuns sessions(program, arguments, output + ".sessions");
  const auto results = sessions.measure();
  if (!results) {
    program.err << "dlbench: stopped; `dlbench calibrate --resume` with the same options goes on\n";
    return SignalsCaught::exit_code().value_or(ExitCode::kInterrupted);
  }
  const ExitCode code = finish(program, calibrate(*results), output);
  sessions.remove();
  return code;
}

}  // namespace

void add_calibrate_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Learn how noisy this machine is, for compare: the same program in several sessions");
  command->footer("Example: dlbench calibrate ci --sessions 5 --pause 600");
  const auto arguments = std::make_shared<CalibrateArguments>();
  arguments->measure.config = "ci";
  add_measure_options(*command, arguments->measure);
  command->add_option("--sessions", arguments->sessions, "How often the whole config is measured (default: 5)")
      ->check(CLI::Range(2, 1000))
      ->type_name("N");
  command->add_option("--pause", arguments->pause_seconds, "Seconds between two sessions; hours show more than minutes")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("SECONDS");
  command->add_option("--from", arguments->from, "Measure nothing: these result files are the sessions")
      ->type_name("FILE");
  command
      ->add_option("-o,--output", arguments->measure.output,
                   "File of the profile (default: ~/.local/state/dlbench/noise-MACHINE.json, where compare finds it)")
      ->type_name("FILE");
  command->add_flag("--resume", arguments->measure.resume, "Go on with the sessions that were interrupted");
  command->callback([&program, &action, arguments] {
    action = [&program, arguments] { return calibrate_machine(program, *arguments); };
  });
}

}  // namespace dlbench
