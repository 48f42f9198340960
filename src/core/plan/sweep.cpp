#include "core/plan/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "core/base/error.h"

namespace dlbench {

namespace {

void append_values(const AxisSpec& spec, const Json& json, std::vector<AxisValue>& values) {
  if (json.is_string()) {
    const std::string text = json.get<std::string>();
    if (spec.kind == AxisKind::word) {
      values.emplace_back(text);
    } else if (spec.name == "threads" && text == "all") {
      values.emplace_back(kAllThreads);
    } else {
      for (const int64_t value : parse_range(text)) values.emplace_back(value);
    }
  } else if (spec.kind == AxisKind::integer && json.is_number_integer() &&
             !(json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX)) {
    values.emplace_back(json.get<int64_t>());
  } else if (spec.kind == AxisKind::word) {
    throw UsageError(fmt::format("{} is not allowed; must be a word or a list of words out of: {}", json.dump(),
                                 fmt::join(spec.words, ", ")));
  } else {
    throw UsageError(
        fmt::format("{} is not allowed; must be a whole number from {} to {}, a range (\"1:1024:x2\") or a "
                    "list of them",
                    json.dump(), spec.low, spec.high));
  }
}

}  // namespace

std::vector<AxisValue> parse_axis_values(const AxisSpec& spec, const Json& json) {
  std::vector<AxisValue> values;
  if (json.is_array()) {
    for (const Json& item : json) append_values(spec, item, values);
  } else {
    append_values(spec, json, values);
  }
  if (values.empty()) throw UsageError("the list is empty; give at least one value or leave the key out");
  std::set<AxisValue> seen;
  for (const AxisValue& value : values) {
    if (!seen.insert(value).second) throw UsageError(fmt::format("{} is listed twice; keep one", to_string(value)));
  }
  return values;
}

namespace {

const AxisSpec* find_spec(const std::vector<AxisSpec>& specs, const std::string& name) {
  const auto it = std::find_if(specs.begin(), specs.end(), [&name](const AxisSpec& s) { return s.name == name; });
  return it == specs.end() ? nullptr : &*it;
}

const std::vector<AxisValue>* find_values(const Sweep& sweep, const std::string& axis) {
  for (const auto& [name, values] : sweep.axes) {
    if (name == axis) return &values;
  }
  return nullptr;
}

bool can_exist(const AxisSpec& spec, const std::vector<AxisSpec>& specs, const Sweep& sweep) {
  if (spec.only_when.axis.empty()) return true;
  const AxisSpec* controlling = find_spec(specs, spec.only_when.axis);
  if (!controlling || !can_exist(*controlling, specs, sweep)) return false;
  const std::vector<AxisValue>* given = find_values(sweep, controlling->name);
  const std::vector<AxisValue> values = given ? *given : std::vector<AxisValue>{controlling->fallback};
  return std::any_of(values.begin(), values.end(), [&spec](const AxisValue& value) {
    const auto& words = spec.only_when.words;
    return std::find(words.begin(), words.end(), to_string(value)) != words.end();
  });
}

}  // namespace

void refuse_useless_axes(const WorkloadDescriptor& workload, const Sweep& sweep) {
  const std::vector<AxisSpec> specs = axes_of(workload);
  for (const auto& [name, values] : sweep.axes) {
    const AxisSpec* spec = find_spec(specs, name);
    if (spec && !can_exist(*spec, specs, sweep)) {
      throw UsageError(fmt::format("{}: exists only where {} is {}, which this sweep never has; leave it out", name,
                                   spec->only_when.axis, fmt::join(spec->only_when.words, " or ")));
    }
  }
}

int64_t combination_count(const Sweep& sweep) {
  int64_t count = 1;
  for (const auto& [name, values] : sweep.axes) {
    if (__builtin_mul_overflow(count, static_cast<int64_t>(values.size()), &count)) return int64_t{1} << 62;
  }
  return count;
}

namespace {

/// Walks the axes in key order, so that the plan lists points as their keys sort into sweeps, whatever the order in the
/// config; an axis that doesn't exist beside the values chosen so far isn't walked.
class Expansion {
 public:
  Expansion(const WorkloadDescriptor& workload, const Sweep& sweep, const std::string& device)
      : workload_(workload), sweep_(sweep), device_(device), side_(side_of_device(device)), specs_(axes_of(workload)) {}

  std::vector<Point> run() {
    walk(0);
    return std::move(points_);
  }

 private:
  void walk(size_t axis) {
    if (axis == specs_.size()) return points_.push_back(make_point(workload_, chosen_, device_));
    const AxisSpec& spec = specs_[axis];
    if (spec.name == "device" || !axis_exists(spec, chosen_, side_)) return walk(axis + 1);
    const std::vector<AxisValue>* values = find_values(sweep_, spec.name);
    for (const AxisValue& value : values ? *values : std::vector<AxisValue>{spec.fallback}) {
      chosen_.emplace_back(spec.name, value);
      walk(axis + 1);
      chosen_.pop_back();
    }
  }

  const WorkloadDescriptor& workload_;
  const Sweep& sweep_;
  const std::string& device_;
  const Side side_;
  const std::vector<AxisSpec> specs_;
  AxisValues chosen_;
  std::vector<Point> points_;
};

}  // namespace

std::vector<Point> expand_sweep(const WorkloadDescriptor& workload, const Sweep& sweep, const std::string& device) {
  const auto& sides = workload.sides;
  if (std::find(sides.begin(), sides.end(), side_of_device(device)) == sides.end()) return {};
  return Expansion(workload, sweep, device).run();
}

int64_t tensor_bytes_of(const Workload& workload) {
  int64_t total = 0;
  for (const BufferSpec& buffer : workload.buffers()) {
    if (__builtin_add_overflow(total, byte_count(buffer.shape, buffer.dtype), &total)) {
      throw UsageError("its tensors have more than 2^63 bytes; make the shape smaller");
    }
  }
  return total;
}

std::unique_ptr<Workload> create_workload(const WorkloadDescriptor& descriptor, const Point& point) {
  try {
    std::unique_ptr<Workload> workload = descriptor.create(point);
    tensor_bytes_of(*workload);
    return workload;
  } catch (const UsageError& e) {
    throw UsageError(fmt::format("{}: {}", point.key(), e.what()));
  } catch (const Error& e) {
    throw UsageError(fmt::format("{}: {}; make it smaller", point.key(), e.what()));
  } catch (const std::invalid_argument& e) {
    throw UsageError(fmt::format("{}: {}", point.key(), e.what()));
  }
}

}  // namespace dlbench
