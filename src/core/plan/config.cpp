#include "core/plan/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>

#include "core/base/error.h"
#include "core/plan/sweep.h"

namespace dlbench {

namespace {

/// More points than this are a typing error: at a tenth of a second each they take hours.
constexpr int64_t kMaxPoints = 100000;
/// std::regex compiles and matches by recursion: a much longer expression could end the program.
constexpr size_t kMaxFilterLength = 1000;
constexpr int64_t kLargest = int64_t{1} << 53;  // whole numbers that every JSON reader keeps exactly

struct Profile {
  const char* name;
  int processes;
  double point_budget_seconds;
};
constexpr Profile kProfiles[] = {{"quick", 3, 2}, {"normal", 5, 10}, {"thorough", 10, 20}};

[[noreturn]] void refuse(const std::string& origin, const std::string& pointer, const std::string& what) {
  throw UsageError(fmt::format("{}: {}: {}", origin, pointer, what));
}

MeasureOptions read_measure(const Json* json, const std::string& origin) {
  const Json empty = Json::object();
  ObjectReader reader(json ? *json : empty, origin, "/measure");
  MeasureOptions m;
  std::vector<std::string> names;
  for (const Profile& profile : kProfiles) names.emplace_back(profile.name);
  m.profile = reader.choice_or("profile", "normal", names);
  for (const Profile& profile : kProfiles) {
    if (m.profile != profile.name) continue;
    m.processes = profile.processes;
    m.point_budget_seconds = profile.point_budget_seconds;
  }
  m.processes = static_cast<int>(reader.integer_or("processes", m.processes, 1, 1000));
  m.point_budget_seconds = reader.number_or("point_budget_seconds", m.point_budget_seconds, 0.001, 86400);
  m.point_timeout_seconds = reader.number_or("point_timeout_seconds", m.point_timeout_seconds, 0.01, 604800);
  m.time_budget_seconds = reader.number_or("time_budget_seconds", m.time_budget_seconds, 0, 1e9);
  m.warmup_seconds = reader.number_or("warmup_seconds", m.warmup_seconds, -1, 3600);
  if (m.warmup_seconds < 0 && m.warmup_seconds != -1) {
    reader.fail("warmup_seconds",
                fmt::format("{} is not allowed; must be 0 or more, or -1 for 0.3 s on a CPU and 0.5 s on "
                            "a GPU",
                            m.warmup_seconds));
  }
  m.min_timing_seconds = reader.number_or("min_timing_seconds", m.min_timing_seconds, 0.0001, 60);
  m.max_timings = static_cast<int>(reader.integer_or("max_timings", m.max_timings, 11, 81));
  if (m.max_timings != 11 && m.max_timings != 21 && m.max_timings != 41 && m.max_timings != 81) {
    reader.fail("max_timings", fmt::format("{} is not allowed; must be 11, 21, 41 or 81", m.max_timings));
  }
  m.verify_flop_cap = reader.number_or("verify_flop_cap", m.verify_flop_cap, 0, 1e15);
  reader.finish();
  return m;
}

MetaProfile read_meta_profile(const Json* json, const std::string& origin, const std::string& pointer, MetaProfile p) {
  if (!json) return p;
  ObjectReader reader(*json, origin, pointer);
  p.flop_per_s = reader.number_or("flop_per_s", p.flop_per_s, 1, 1e20);
  p.bytes_per_s = reader.number_or("bytes_per_s", p.bytes_per_s, 1, 1e20);
  p.launch_seconds = reader.number_or("launch_seconds", p.launch_seconds, 0, 1);
  p.memory_bytes = reader.integer_or("memory_bytes", p.memory_bytes, 1, kLargest);
  p.link_bytes_per_s = reader.number_or("link_bytes_per_s", p.link_bytes_per_s, 1, 1e20);
  p.threads = static_cast<int>(reader.integer_or("threads", p.threads, 1, 65536));
  p.last_level_cache_bytes = reader.integer_or("last_level_cache_bytes", p.last_level_cache_bytes, 0, kLargest);
  reader.finish();
  return p;
}

constexpr std::pair<const char*, NoiseShape> kNoiseShapes[] = {{"normal", NoiseShape::normal},
                                                               {"t3", NoiseShape::t3},
                                                               {"bimodal", NoiseShape::bimodal},
                                                               {"heteroscedastic", NoiseShape::heteroscedastic}};

MetaOptions read_meta(const Json* json, const std::string& origin) {
  MetaOptions m;
  if (!json) return m;
  ObjectReader reader(*json, origin, "/meta");
  m.cpu = read_meta_profile(reader.find("cpu"), origin, "/meta/cpu", m.cpu);
  m.gpu = read_meta_profile(reader.find("gpu"), origin, "/meta/gpu", m.gpu);
  m.seed = static_cast<uint64_t>(reader.integer_or("seed", 0, 0, kLargest));
  std::vector<std::string> shapes;
  for (const auto& [name, shape] : kNoiseShapes) shapes.emplace_back(name);
  const std::string shape_name = reader.choice_or("shape", "normal", shapes);
  for (const auto& [name, shape] : kNoiseShapes) {
    if (shape_name == name) m.shape = shape;
  }
  m.noise_sd = reader.number_or("noise_sd", m.noise_sd, 0, 10);
  m.process_sd = reader.number_or("process_sd", m.process_sd, 0, 10);
  m.drift_per_second = reader.number_or("drift_per_second", m.drift_per_second, -10, 10);
  m.spike_probability = reader.number_or("spike_probability", m.spike_probability, 0, 1);
  m.fail_after_ops = reader.integer_or("fail_after_ops", m.fail_after_ops, -1, kLargest);
  m.crash_after_ops = reader.integer_or("crash_after_ops", m.crash_after_ops, -1, kLargest);
  m.hang_seconds = reader.number_or("hang_seconds", m.hang_seconds, 0, 86400);
  reader.finish();
  return m;
}

Json json_of(const MetaProfile& p) {
  return {{"flop_per_s", p.flop_per_s},
          {"bytes_per_s", p.bytes_per_s},
          {"launch_seconds", p.launch_seconds},
          {"memory_bytes", p.memory_bytes},
          {"link_bytes_per_s", p.link_bytes_per_s},
          {"threads", p.threads},
          {"last_level_cache_bytes", p.last_level_cache_bytes}};
}

Json json_of(const MetaOptions& m) {
  const char* shape_name = "normal";
  for (const auto& [name, shape] : kNoiseShapes) {
    if (shape == m.shape) shape_name = name;
  }
  return {{"cpu", json_of(m.cpu)},
          {"gpu", json_of(m.gpu)},
          {"seed", m.seed},
          {"shape", shape_name},
          {"noise_sd", m.noise_sd},
          {"process_sd", m.process_sd},
          {"drift_per_second", m.drift_per_second},
          {"spike_probability", m.spike_probability},
          {"fail_after_ops", m.fail_after_ops},
          {"crash_after_ops", m.crash_after_ops},
          {"hang_seconds", m.hang_seconds}};
}

Json json_of(const MeasureOptions& m) {
  return {{"profile", m.profile},
          {"processes", m.processes},
          {"point_budget_seconds", m.point_budget_seconds},
          {"point_timeout_seconds", m.point_timeout_seconds},
          {"time_budget_seconds", m.time_budget_seconds},
          {"warmup_seconds", m.warmup_seconds},
          {"min_timing_seconds", m.min_timing_seconds},
          {"max_timings", m.max_timings},
          {"verify_flop_cap", m.verify_flop_cap}};
}

/// A list of different, non-empty strings.
std::vector<std::string> read_words(ObjectReader& reader, const std::string& key, std::vector<std::string> fallback,
                                    bool may_be_empty, const char* what) {
  const Json* json = reader.find(key);
  if (!json) return fallback;
  if (!json->is_array()) reader.fail(key, fmt::format("{} is not allowed; must be a list of {}", json->dump(), what));
  if (json->empty() && !may_be_empty) reader.fail(key, fmt::format("the list is empty; name one of the {}", what));
  std::vector<std::string> words;
  for (const Json& item : *json) {
    const std::string place = key + "/" + std::to_string(words.size());
    if (!item.is_string() || item.get<std::string>().empty()) {
      reader.fail(place, fmt::format("{} is not allowed; must be one of the {}", item.dump(), what));
    }
    const std::string word = item.get<std::string>();
    if (std::find(words.begin(), words.end(), word) != words.end()) {
      reader.fail(place, fmt::format("\"{}\" is listed twice; keep one", word));
    }
    words.push_back(word);
  }
  return words;
}

int read_threads(ObjectReader& reader) {
  const Json* json = reader.find("threads");
  if (json && json->is_string() && json->get<std::string>() == "all") return 0;
  if (json && !json->is_number_integer()) {
    reader.fail("threads", fmt::format("{} is not allowed; must be \"all\" or a whole number from 1 to 65536 (0: all)",
                                       json->dump()));
  }
  return static_cast<int>(reader.integer_or("threads", 0, 0, 65536));
}

Sweep read_sweep(const Json& json, const std::string& origin, const std::string& pointer,
                 const WorkloadCatalog& catalog) {
  ObjectReader reader(json, origin, pointer);
  if (!reader.has("workload")) {
    reader.fail("workload", fmt::format("is missing; name one of: {}", fmt::join(catalog.names(), ", ")));
  }
  const std::string name = reader.choice_or("workload", "", catalog.names());
  const WorkloadDescriptor& workload = *catalog.find(name);
  Sweep sweep{.workload = name, .axes = {}};
  reader.string_or("comment", "");
  for (const AxisSpec& spec : axes_of(workload)) {
    if (spec.name == "device") continue;  // `devices` of the config
    const Json* values = reader.find(spec.name);
    if (!values) continue;
    try {
      sweep.axes.emplace_back(spec.name, parse_axis_values(spec, *values));
    } catch (const UsageError& e) {
      reader.fail(spec.name, e.what());
    }
    for (const AxisValue& value : sweep.axes.back().second) {
      if (spec.name == "threads" && value == AxisValue{kAllThreads}) continue;
      const std::string complaint = spec.complaint_about(value);
      if (!complaint.empty()) reader.fail(spec.name, complaint);
    }
  }
  reader.finish();
  try {
    refuse_useless_axes(workload, sweep);
  } catch (const UsageError& e) {
    refuse(origin, pointer, e.what());
  }
  return sweep;
}

/// Builds every point once, so that a shape that can't be counted is refused here, with its place.
void check_points(const Config& config, const std::string& origin, bool merged_by_hand,
                  const WorkloadCatalog& catalog) {
  int64_t total = 0;
  std::map<std::string, size_t> first_sweep;
  for (size_t i = 0; i < config.sweeps.size(); ++i) {
    const std::string pointer = fmt::format("/sweeps/{}", i);
    const Sweep& sweep = config.sweeps[i];
    const WorkloadDescriptor& workload = *catalog.find(sweep.workload);
    const int64_t count = combination_count(sweep);
    total = std::min(total, kMaxPoints) + std::min(count, kMaxPoints);
    if (total >= kMaxPoints) {
      refuse(origin, pointer,
             fmt::format("the config has more than {} points by here; make its lists shorter", kMaxPoints));
    }
    for (const Side side : workload.sides) {
      std::vector<Point> points;
      try {
        points = expand_sweep(workload, sweep, std::string(to_string(side)));
        for (const Point& point : points) create_workload(workload, point);
      } catch (const UsageError& e) {
        refuse(origin, pointer, e.what());
      }
      for (const Point& point : points) {
        const auto [it, is_new] = first_sweep.emplace(point.key(), i);
        if (is_new || merged_by_hand) continue;
        refuse(
            origin, pointer,
            fmt::format("its point {} is also in /sweeps/{}; each point is measured once, remove it from one of them",
                        point.key(), it->second));
      }
    }
  }
}

void read_sweeps(ObjectReader& root, Config& config, const WorkloadCatalog& catalog) {
  const Json* json = root.find("sweeps");
  if (!json && config.points.empty()) root.fail("sweeps", "is missing; list at least one {\"workload\": …}");
  if (!json) return;
  if (!json->is_array()) root.fail("sweeps", fmt::format("expected a list […], found {}", json->type_name()));
  if (json->empty() && config.points.empty())
    root.fail("sweeps", "the list is empty; list at least one {\"workload\": …}");
  for (size_t i = 0; i < json->size(); ++i) {
    config.sweeps.push_back(read_sweep((*json)[i], root.origin(), fmt::format("/sweeps/{}", i), catalog));
  }
}

void check_filters(const Config& config, const ObjectReader& root) {
  for (size_t i = 0; i < config.filters.size(); ++i) {
    const std::string& filter = config.filters[i];
    if (filter.size() > kMaxFilterLength) {
      root.fail(
          fmt::format("filters/{}", i),
          fmt::format("has {} characters; a filter may have {}: name a shorter part of the keys, or several filters",
                      filter.size(), kMaxFilterLength));
    }
    try {
      const std::regex compiled(filter.starts_with('-') ? filter.substr(1) : filter);
    } catch (const std::regex_error& e) {
      root.fail(fmt::format("filters/{}", i), fmt::format("\"{}\" is not a regular expression: {}", filter, e.what()));
    }
  }
}

void check_keys(const Config& config, const ObjectReader& root, const WorkloadCatalog& catalog) {
  for (size_t i = 0; i < config.points.size(); ++i) {
    try {
      const Point point = parse_point_key(config.points[i], catalog);
      create_workload(*catalog.find(point.workload), point);
    } catch (const UsageError& e) {
      root.fail(fmt::format("points/{}", i), e.what());
    }
  }
}

/// The same config with everything that had a default written out; reading it again gives the same plan.
Json merged_json(const Config& config, const Json& json) {
  Json merged;
  merged["name"] = config.name;
  if (json.contains("summary")) merged["summary"] = json["summary"];
  merged["devices"] = config.devices;
  merged["require"] = config.require;
  merged["seed"] = config.seed;
  merged["threads"] = config.threads;
  merged["measure"] = json_of(config.measure);
  merged["sweeps"] = json.contains("sweeps") ? json["sweeps"] : Json::array();
  merged["filters"] = config.filters;
  merged["points"] = config.points;
  const bool uses_meta = std::any_of(config.devices.begin(), config.devices.end(),
                                     [](const std::string& device) { return device.starts_with("meta"); });
  if (uses_meta || json.contains("meta")) merged["meta"] = json_of(config.meta);
  return merged;
}

}  // namespace

Config parse_config(const Json& json, const std::string& origin, const Overrides& overrides,
                    const WorkloadCatalog& catalog) {
  Json merged = json;
  if (merged.is_object()) merge_into(merged, origin, overrides, catalog);
  ObjectReader root(merged, origin, "");
  root.string_or("$schema", "");
  root.string_or("summary", "");
  root.find("defaults");
  if (merged.contains("defaults")) {
    root.fail("defaults", fmt::format("expected an object {{…}}, found {}", merged["defaults"].type_name()));
  }
  Config config;
  config.name = root.string_or("name", std::filesystem::path(origin).stem().string());
  config.devices = read_words(root, "devices", {"cpu", "gpu"}, false, "devices, such as \"cpu\" and \"gpu\"");
  config.require = read_words(root, "require", {}, true, "devices, such as \"cpu\" and \"gpu\"");
  config.seed = static_cast<uint64_t>(root.integer_or("seed", 42, 0, kLargest));
  config.threads = read_threads(root);
  config.measure = read_measure(root.find("measure"), origin);
  config.meta = read_meta(root.find("meta"), origin);
  config.filters = read_words(root, "filters", {}, true, "regular expressions on keys");
  config.points = read_words(root, "points", {}, true, "point keys");
  read_sweeps(root, config, catalog);
  root.finish();
  check_filters(config, root);
  check_keys(config, root, catalog);
  check_points(config, origin, !overrides.set.empty(), catalog);
  config.merged = merged_json(config, merged);
  return config;
}

Config load_config(const std::string& path_or_name, const Overrides& overrides, const WorkloadCatalog& catalog) {
  const std::string path = find_config(path_or_name);
  Json json;
  try {
    json = read_json_file(path, JsonComments::kAllow);
  } catch (const InputError& e) {
    throw UsageError(e.what());
  }
  return parse_config(json, path == "-" ? "standard input" : path, overrides, catalog);
}

}  // namespace dlbench
