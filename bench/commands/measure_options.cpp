#include "commands/measure_options.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace dlbench {

namespace {

/// A number of type T, finite and at least `least`; the option's name is in the error.
template <class T>
T number_of(const std::string& option, const std::string& text, const char* what, T least = 0) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool finite = static_cast<double>(value) <= std::numeric_limits<double>::max();  // NaN isn't either
  if (error != std::errc() || end != text.data() + text.size() || !finite || value < least) {
    throw UsageError(fmt::format("{} {}: must be {}", option, text, what));
  }
  return value;
}

}  // namespace

void add_measure_options(CLI::App& command, MeasureArguments& a) {
  command.add_option("config", a.config, "A config file, or the name of one (`dlbench list configs`)")
      ->capture_default_str();
  command
      .add_option("--filter", a.filters,
                  "Only points whose key this regular expression finds; with a - before it, only the others")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  command.add_option("--point", a.points, "Exactly the point of this key; may be repeated")
      ->type_name("KEY")
      ->allow_extra_args(false);
  command.add_option("--device", a.devices, "Instead of the config's devices: cpu, gpu, gpu:0; may be repeated")
      ->type_name("DEVICE")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--batch", a.batch, "Instead of the config's: 1:1024:x2, 8:64:+8, or 4,8,32")->type_name("RANGE");
  command.add_option("--precision", a.precision, "Instead of the config's: fp32,bf16")->type_name("LIST");
  command.add_option("--set", a.sets, "Any axis or config entry: --set layer=ffn_up --set /measure/max_timings=21")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--profile", a.profile, "How much is measured: quick, normal or thorough");
  command.add_option("--processes", a.processes, "Fresh processes that each measure every point (the replicates)")
      ->type_name("N");
  command.add_option("--time-budget", a.time_budget, "Seconds for the whole run; points beyond are skipped")
      ->type_name("SECONDS");
  command.add_option("--seed", a.seed, "Of the data and of the order of the points")->type_name("N");
  command.add_option("--threads", a.threads, "CPU threads of points that name none (default: every usable CPU)")
      ->type_name("N");
  command.add_option("--require", a.require, "Exit with 6 when this device isn't there; may be repeated")
      ->type_name("DEVICE")
      ->delimiter(',')
      ->allow_extra_args(false);
}

Config config_from(const MeasureArguments& a, const WorkloadCatalog& catalog) {
  Overrides overrides;
  for (const std::string& set : a.sets) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(fmt::format("--set {}: write NAME=VALUE, as in --set batch=8", set));
    }
    overrides.set.emplace_back(set.substr(0, equals), set.substr(equals + 1));
  }
  if (!a.batch.empty()) overrides.set.emplace_back("batch", a.batch);
  if (!a.precision.empty()) overrides.set.emplace_back("precision", a.precision);
  overrides.devices = a.devices;
  overrides.require = a.require;
  overrides.filters = a.filters;
  overrides.points = a.points;
  if (!a.processes.empty())
    overrides.processes = number_of<int>("--processes", a.processes, "a whole number from 1", 1);
  if (!a.threads.empty()) overrides.threads = number_of<int>("--threads", a.threads, "a whole number from 1", 1);
  if (!a.time_budget.empty()) {
    overrides.time_budget_seconds = number_of<double>("--time-budget", a.time_budget, "a number of seconds from 0");
  }
  if (!a.seed.empty()) overrides.seed = number_of<uint64_t>("--seed", a.seed, "a whole number from 0");
  if (!a.profile.empty()) overrides.profile = a.profile;
  return load_config(a.config, overrides, catalog);
}

}  // namespace dlbench
