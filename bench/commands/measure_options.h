// The options that `run` and `check` share: which config, what overrides it, which of its points.
//
// Why: the same words mean the same in both. Promises: values are checked where they mean something (the config), so
// that a wrong one gets the same sentence as in a file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "commands/commands.h"
#include "core/plan/plan.h"

namespace dlbench {

struct MeasureArguments {
  std::string config = "quick";
  std::string output;
  std::vector<std::string> filters, points, devices, require, sets;
  std::string batch, precision, profile;
  std::string processes, threads, time_budget, seed;
  bool resume = false;
};

/// Adds them all; `run` and `check` add their own after.
void add_measure_options(CLI::App& command, MeasureArguments& arguments);
/// @throws UsageError
Config config_from(const MeasureArguments& arguments, const WorkloadCatalog& catalog);

}  // namespace dlbench
