// Config: what a person asked for, validated; and the merge of file, overrides and defaults.
//
// Why: a typing error must stop the run before an hour is spent; the merged config is stored in the result, so the
// result says what was asked.
// Promises: every error names origin, JSON pointer, the value and what is allowed. Format: configs/README.md.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/device/meta_device.h"
#include "core/plan/axis.h"
#include "core/train/workload.h"

namespace dlbench {

/// One entry of `sweeps`: a workload and the values of each axis that was named.
struct Sweep {
  std::string workload;
  std::vector<std::pair<std::string, std::vector<AxisValue>>> axes;
};

/// How much is measured; the numbers of a profile can each be overridden.
struct MeasureOptions {
  std::string profile = "normal";      ///< quick | normal | thorough
  int processes = 5;                   ///< 3 | 5 | 10
  double point_budget_seconds = 10;    ///< timed seconds per point and process
  double point_timeout_seconds = 300;  ///< then the worker is ended and the point is `timeout`
  double time_budget_seconds = 0;      ///< of the whole run, 0: none; points beyond it are `skipped`
  double warmup_seconds = -1;          ///< -1: 0.3 cpu, 0.5 gpu
  double min_timing_seconds = 0.010;   ///< steps per timing: smallest power of two that takes this long
  int max_timings = 81;                ///< 11 | 21 | 41 | 81
  double verify_flop_cap = 2e8;        ///< see ReferenceOptions::max_flops_per_op
};

struct Config {
  std::string name;  ///< "quick"
  std::vector<Sweep> sweeps;
  std::vector<std::string>
      devices;  ///< as written: "cpu", "gpu", "gpu:0", "meta:cpu"; `gpu` absent: rows `unsupported`
  std::vector<std::string> require;  ///< devices whose absence ends the run with exit code 6
  MeasureOptions measure;
  uint64_t seed = 42;
  int threads = 0;                   ///< 0: every usable CPU
  std::vector<std::string> filters;  ///< regular expressions on keys; "-" prefix excludes
  std::vector<std::string> points;   ///< keys; non-empty: exactly these
  MetaOptions meta;
  Json merged;  ///< what is stored in the result
};

/// What the command line adds; each replaces the config's entry before validation.
struct Overrides {
  std::vector<std::pair<std::string, std::string>>
      set;  ///< --set axis_or_pointer=value; --batch, --precision land here too
  std::vector<std::string> devices, require, filters, points;
  std::optional<int> processes, threads;
  std::optional<double> time_budget_seconds;
  std::optional<uint64_t> seed;
  std::optional<std::string> profile;
};

/// A config that has a name here: configs/<name>.json beside the program (source tree or <prefix>/share/dlbench).
struct ConfigFile {
  std::string name;  ///< "quick"
  std::filesystem::path path;
};
/// Sorted by name; the first directory that has a name wins. See config_files.cpp for where is looked.
std::vector<ConfigFile> known_configs();
/// A path, or the name of a config beside the program ("quick"). @throws UsageError listing the names that exist.
std::string find_config(const std::string& path_or_name);
Config load_config(const std::string& path_or_name, const Overrides& overrides, const WorkloadCatalog& catalog);
Config parse_config(const Json& json, const std::string& origin, const Overrides& overrides,
                    const WorkloadCatalog& catalog);

}  // namespace dlbench
