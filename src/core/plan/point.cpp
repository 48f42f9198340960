#include "core/plan/point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/plan/sweep.h"
#include "core/train/workload.h"

namespace dlbench {

const AxisValue* Point::find(const std::string& axis) const {
  const auto it = std::find_if(axes.begin(), axes.end(), [&axis](const auto& entry) { return entry.first == axis; });
  return it == axes.end() ? nullptr : &it->second;
}

int64_t Point::integer(const std::string& axis) const {
  const AxisValue* value = find(axis);
  if (!value) throw Error(fmt::format("point {} has no axis {}", key(), axis));
  const auto* number = std::get_if<int64_t>(value);
  if (!number) throw Error(fmt::format("point {}: axis {} is a word, not a number", key(), axis));
  return *number;
}

const std::string& Point::word(const std::string& axis) const {
  const AxisValue* value = find(axis);
  if (!value) throw Error(fmt::format("point {} has no axis {}", key(), axis));
  const auto* text = std::get_if<std::string>(value);
  if (!text) throw Error(fmt::format("point {}: axis {} is a number, not a word", key(), axis));
  return *text;
}

Precision Point::precision() const {
  return parse_precision(word("precision"));
}
const std::string& Point::device() const {
  return word("device");
}

namespace {

/// The key with only the axes that `keep` accepts.
template <typename Keep>
std::string key_of(const Point& point, Keep keep) {
  std::string key = point.workload;
  for (const auto& [axis, value] : point.axes) {
    const bool all_threads = axis == "threads" && value == AxisValue{kAllThreads};
    if (keep(axis)) key += "/" + axis + "=" + (all_threads ? "all" : to_string(value));
  }
  return key;
}

bool is_shared(const std::string& axis) {
  if (axis == "device") return false;
  for (const AxisSpec& common : common_axes()) {
    if (common.name == axis) return common.pair_role == PairRole::shared;
  }
  return true;
}

}  // namespace

std::string Point::key() const {
  return key_of(*this, [](const std::string&) { return true; });
}
std::string Point::pair_key() const {
  return key_of(*this, is_shared);
}
std::string Point::sweep_key(const std::string& sweep_axis) const {
  return key_of(*this, [&sweep_axis](const std::string& axis) { return axis != sweep_axis && is_shared(axis); });
}

Side side_of_device(const std::string& device_id) {
  return device_id == "gpu" || device_id.starts_with("gpu:") || device_id == "meta:gpu" ? Side::gpu : Side::cpu;
}

namespace {

/// "" when the axis exists on this side beside these axes, else why not.
std::string absence_of(const AxisSpec& axis, const AxisValues& before, Side side) {
  if (axis.only_on && *axis.only_on != side) return fmt::format("exists on {} devices only", to_string(*axis.only_on));
  if (axis.only_when.axis.empty()) return "";
  for (const auto& [name, value] : before) {
    if (name != axis.only_when.axis) continue;
    const auto& words = axis.only_when.words;
    if (std::find(words.begin(), words.end(), to_string(value)) != words.end()) return "";
  }
  return fmt::format("exists only where {} is {}", axis.only_when.axis, fmt::join(axis.only_when.words, " or "));
}

const AxisValue* find_value(const AxisValues& values, const std::string& axis) {
  const auto it =
      std::find_if(values.begin(), values.end(), [&axis](const auto& entry) { return entry.first == axis; });
  return it == values.end() ? nullptr : &it->second;
}

[[noreturn]] void refuse_axis(const WorkloadDescriptor& workload, const std::string& axis) {
  std::vector<std::string> known;
  for (const AxisSpec& spec : axes_of(workload)) known.push_back(spec.name);
  const std::string nearest = nearest_word(axis, known);
  throw UsageError(fmt::format("{} has no axis \"{}\"{}; its axes: {}", workload.name, axis,
                               nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest),
                               fmt::join(known, ", ")));
}

/// @param strict an axis that is given but doesn't exist there is an error, otherwise left out.
Point build_point(const WorkloadDescriptor& workload, const AxisValues& given, const std::string& device, bool strict) {
  const std::vector<AxisSpec> specs = axes_of(workload);
  for (const auto& [name, value] : given) {
    const bool known = std::any_of(specs.begin(), specs.end(), [&n = name](const AxisSpec& s) { return s.name == n; });
    if (!known) refuse_axis(workload, name);
  }
  const Side side = side_of_device(device);
  Point point{.workload = workload.name, .axes = {}};
  for (const AxisSpec& spec : specs) {
    const AxisValue* value = find_value(given, spec.name);
    const std::string absent = absence_of(spec, point.axes, side);
    if (!absent.empty()) {
      if (strict && value) throw UsageError(fmt::format("{}: {}; leave it out", spec.name, absent));
      continue;
    }
    if (spec.name == "device") {
      point.axes.emplace_back("device", device);
    } else if (value) {
      const bool all_threads = spec.name == "threads" && *value == AxisValue{kAllThreads};
      const std::string complaint = all_threads ? "" : spec.complaint_about(*value);
      if (!complaint.empty()) throw UsageError(fmt::format("{}: {}", spec.name, complaint));
      point.axes.emplace_back(spec.name, *value);
    } else {
      point.axes.emplace_back(spec.name, spec.fallback);
    }
  }
  if (workload.check) {
    const std::string complaint = workload.check(point);
    if (!complaint.empty()) throw UsageError(complaint);
  }
  return point;
}

AxisValue parse_axis_value(const AxisSpec& spec, const std::string& text) {
  if (spec.kind == AxisKind::word) return text;
  if (spec.name == "threads" && text == "all") return kAllThreads;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && std::to_string(number) == text;
  if (!whole || number == kAllThreads) {
    const std::string complaint = spec.complaint_about(whole ? AxisValue{number} : AxisValue{text});
    if (!complaint.empty()) throw UsageError(fmt::format("{}: {}", spec.name, complaint));
  }
  return number;
}

const WorkloadDescriptor& find_workload(const std::string& name, const WorkloadCatalog& catalog) {
  const WorkloadDescriptor* workload = catalog.find(name);
  if (workload) return *workload;
  const std::string nearest = nearest_word(name, catalog.names());
  throw UsageError(fmt::format("no workload \"{}\"{}; known: {}", name,
                               nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest),
                               fmt::join(catalog.names(), ", ")));
}

Point parse_key(const std::string& key, const WorkloadCatalog& catalog) {
  size_t start = key.find('/');
  const WorkloadDescriptor& workload = find_workload(key.substr(0, start), catalog);
  const std::vector<AxisSpec> specs = axes_of(workload);
  AxisValues given;
  std::string device;
  while (start != std::string::npos) {
    const size_t end = key.find('/', start + 1);
    const std::string part = key.substr(start + 1, end == std::string::npos ? end : end - start - 1);
    start = end;
    const size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == part.size()) {
      throw UsageError(fmt::format("\"{}\" is not of the form axis=value", part));
    }
    const std::string name = part.substr(0, equals), text = part.substr(equals + 1);
    const auto spec = std::find_if(specs.begin(), specs.end(), [&name](const AxisSpec& s) { return s.name == name; });
    if (spec == specs.end()) refuse_axis(workload, name);
    if (find_value(given, name)) throw UsageError(fmt::format("{} is given twice", name));
    given.emplace_back(name, parse_axis_value(*spec, text));
    if (name == "device") device = text;
  }
  if (device.empty()) throw UsageError("it names no device; add /device=cpu or /device=gpu:0");
  return build_point(workload, given, device, true);
}

}  // namespace

bool axis_exists(const AxisSpec& axis, const AxisValues& before, Side side) {
  return absence_of(axis, before, side).empty();
}

Point make_point(const WorkloadDescriptor& workload, const AxisValues& given, const std::string& device) {
  return build_point(workload, given, device, false);
}

Point parse_point_key(const std::string& key, const WorkloadCatalog& catalog) {
  try {
    return parse_key(key, catalog);
  } catch (const UsageError& e) {
    throw UsageError(fmt::format("point \"{}\": {}", key, e.what()));
  }
}

}  // namespace dlbench
