// Merging, done on the JSON before anything is validated: `--set /pointer=value`, then the `defaults` block into every
// sweep that leaves the axis open, then `--set axis=values` into every sweep that can take it.
//
// Why on the JSON: what is validated, what runs and what is stored in the result are then one and the same text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/plan/sweep.h"

namespace dlbench {

namespace {

/// What an option is called in errors: --batch and --precision have options of their own.
std::string option_name(const std::string& axis) {
  return axis == "batch" || axis == "precision" ? "--" + axis : "--set " + axis;
}

/// Sets the value at a JSON pointer; text that isn't JSON is a string.
void set_at_pointer(Json& config, const std::string& pointer, const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) value = text;
  try {
    config[Json::json_pointer(pointer)] = std::move(value);
  } catch (const Json::exception&) {
    throw UsageError(
        fmt::format("--set {}={}: there is no such place in the config; write a JSON pointer to a key, such "
                    "as /measure/processes or /sweeps/0/batch",
                    pointer, text));
  }
}

/// Objects of `sweeps` with the workload each names; the ones that validation will refuse are left out.
struct OpenSweep {
  Json* json;
  const WorkloadDescriptor* workload;
};

std::vector<OpenSweep> sweeps_of(Json& config, const WorkloadCatalog& catalog) {
  std::vector<OpenSweep> sweeps;
  const auto list = config.find("sweeps");
  if (list == config.end() || !list->is_array()) return sweeps;
  for (Json& sweep : *list) {
    if (!sweep.is_object() || !sweep.contains("workload") || !sweep["workload"].is_string()) continue;
    const WorkloadDescriptor* workload = catalog.find(sweep["workload"].get<std::string>());
    if (workload) sweeps.push_back({&sweep, workload});
  }
  return sweeps;
}

const AxisSpec* find_spec(const std::vector<AxisSpec>& specs, const std::string& name) {
  const auto it = std::find_if(specs.begin(), specs.end(), [&name](const AxisSpec& s) { return s.name == name; });
  return it == specs.end() || name == "device" ? nullptr : &*it;
}

/// Whether the sweep has a point where the axis exists; false for a sweep that validation will refuse anyway.
bool can_take(const OpenSweep& open, const std::string& axis) {
  Sweep sweep{.workload = open.workload->name, .axes = {}};
  const std::vector<AxisSpec> specs = axes_of(*open.workload);
  try {
    for (const auto& [key, json] : open.json->items()) {
      const AxisSpec* spec = find_spec(specs, key);
      if (spec && key != axis) sweep.axes.emplace_back(key, parse_axis_values(*spec, json));
    }
    Sweep with_axis{.workload = sweep.workload, .axes = {{axis, {find_spec(specs, axis)->fallback}}}};
    with_axis.axes.insert(with_axis.axes.end(), sweep.axes.begin(), sweep.axes.end());
    refuse_useless_axes(*open.workload, with_axis);
  } catch (const UsageError&) {
    return false;
  }
  return true;
}

Json json_of(const AxisSpec& spec, const std::vector<AxisValue>& values) {
  Json list = Json::array();
  for (const AxisValue& value : values) {
    if (const auto* number = std::get_if<int64_t>(&value)) {
      list.push_back(spec.name == "threads" && *number == kAllThreads ? Json("all") : Json(*number));
    } else {
      list.push_back(std::get<std::string>(value));
    }
  }
  return list;
}

bool is_allowed(const AxisSpec& spec, const AxisValue& value) {
  return (spec.name == "threads" && value == AxisValue{kAllThreads}) || spec.complaint_about(value).empty();
}

/// Every value must mean something to some workload of the catalog. @throws UsageError (without place)
void check_values(const std::string& axis, const Json& json, const WorkloadCatalog& catalog) {
  std::vector<AxisSpec> specs;
  std::vector<std::string> known;
  for (const WorkloadDescriptor* workload : catalog.all()) {
    for (const AxisSpec& spec : axes_of(*workload)) {
      if (spec.name == "device") continue;
      if (spec.name == axis) specs.push_back(spec);
      if (std::find(known.begin(), known.end(), spec.name) == known.end()) known.push_back(spec.name);
    }
  }
  if (specs.empty()) {
    const std::string nearest = nearest_word(axis, known);
    throw UsageError(fmt::format("no workload has an axis \"{}\"{}; known: {}", axis,
                                 nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest),
                                 fmt::join(known, ", ")));
  }
  AxisSpec any = specs.front();  // with the words of all of them, for the error
  for (const AxisSpec& spec : specs) {
    for (const std::string& word : spec.words) {
      if (std::find(any.words.begin(), any.words.end(), word) == any.words.end()) any.words.push_back(word);
    }
    any.low = std::min(any.low, spec.low);
    any.high = std::max(any.high, spec.high);
  }
  for (const AxisValue& value : parse_axis_values(any, json)) {
    if (!is_allowed(any, value)) throw UsageError(any.complaint_about(value));
  }
}

/// Writes the values into every sweep that can take one of them. @return whether any could.
bool apply(Json& config, const std::string& axis, const Json& json, bool replace, const WorkloadCatalog& catalog) {
  bool taken = false;
  for (const OpenSweep& open : sweeps_of(config, catalog)) {
    const std::vector<AxisSpec> specs = axes_of(*open.workload);
    const AxisSpec* spec = find_spec(specs, axis);
    if (!spec || !can_take(open, axis)) continue;
    std::vector<AxisValue> values = parse_axis_values(*spec, json);
    const size_t given = values.size();
    std::erase_if(values, [spec](const AxisValue& value) { return !is_allowed(*spec, value); });
    if (values.empty()) continue;
    taken = true;
    if (!replace && open.json->contains(axis)) continue;
    (*open.json)[axis] = values.size() == given ? json : json_of(*spec, values);
  }
  return taken;
}

/// What stands behind --set axis=: words split at commas; numbers and ranges stay one text.
Json json_of_option(const std::string& axis, const std::string& text, const WorkloadCatalog& catalog) {
  bool words = false;
  for (const WorkloadDescriptor* workload : catalog.all()) {
    for (const AxisSpec& spec : axes_of(*workload)) words |= spec.name == axis && spec.kind == AxisKind::word;
  }
  if (!words && !(axis == "threads" && text.find("all") != std::string::npos)) return text;
  Json list = Json::array();
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    if (end > start) list.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return list;
}

void apply_options(Json& config, const Overrides& o) {
  const auto section = [&config](const char* name) -> Json& {
    if (!config.contains(name)) config[name] = Json::object();
    return config[name];
  };
  if (o.profile) {
    // A profile asked for by hand replaces the numbers that a profile consists of.
    Json& measure = section("measure");
    if (measure.is_object()) {
      for (const char* key : {"processes", "point_budget_seconds", "max_timings", "warmup_seconds"}) measure.erase(key);
      measure["profile"] = *o.profile;
    }
  }
  if (o.processes) section("measure")["processes"] = *o.processes;
  if (o.time_budget_seconds) section("measure")["time_budget_seconds"] = *o.time_budget_seconds;
  if (o.threads) config["threads"] = *o.threads;
  if (o.seed) config["seed"] = *o.seed;
  if (!o.devices.empty()) config["devices"] = o.devices;
  if (!o.require.empty()) config["require"] = o.require;
  if (!o.filters.empty()) config["filters"] = o.filters;
  if (!o.points.empty()) config["points"] = o.points;
}

}  // namespace

void merge_into(Json& config, const std::string& origin, const Overrides& overrides, const WorkloadCatalog& catalog) {
  for (const auto& [name, text] : overrides.set) {
    if (name.starts_with('/')) set_at_pointer(config, name, text);
  }
  if (config.contains("measure") && !config["measure"].is_object()) return;  // validation says so
  apply_options(config, overrides);

  if (const auto defaults = config.find("defaults"); defaults != config.end()) {
    if (!defaults->is_object()) return;
    const Json block = *defaults;
    config.erase("defaults");
    for (const auto& [axis, json] : block.items()) {
      try {
        check_values(axis, json, catalog);
        if (!apply(config, axis, json, false, catalog))
          throw UsageError("no sweep can take these values; leave it out");
      } catch (const UsageError& e) {
        throw UsageError(fmt::format("{}: /defaults/{}: {}", origin, axis, e.what()));
      }
    }
  }
  for (const auto& [name, text] : overrides.set) {
    if (name.starts_with('/')) continue;
    try {
      const Json json = json_of_option(name, text, catalog);
      check_values(name, json, catalog);
      if (!apply(config, name, json, true, catalog)) {
        throw UsageError(fmt::format("no sweep of {} can take \"{}\"", origin, text));
      }
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("{}: {}", option_name(name), e.what()));
    }
  }
}

}  // namespace dlbench
