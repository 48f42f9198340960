#include "core/result/result_io.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <limits>

#include "core/base/error.h"
#include "core/result/result_fields.h"

namespace dlbench {

namespace {

constexpr std::string_view kAxisPrefix = "axis_";

/// Visitor that appends every field to a JSON object.
class Writer {
 public:
  explicit Writer(Json& object) : object_(object) {}
  void operator()(const char* name, Status value) { object_[name] = std::string(to_string(value)); }
  void operator()(const char* name, const std::optional<double>& value) {
    object_[name] = value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
  }
  void operator()(const char* name, const std::optional<int64_t>& value) {
    object_[name] = value ? Json(*value) : Json(nullptr);
  }
  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = value;
  }

 private:
  Json& object_;
};

/// Visitor that fills every field from a JSON object, or says which one is wrong.
class Reader {
 public:
  Reader(const Json& object, const std::string& origin, const std::string& pointer)
      : object_(object), origin_(origin), pointer_(pointer) {
    if (!object.is_object()) fail("", "an object {…}", object);
  }

  void operator()(const char* name, std::string& value) { value = text(required(name), name); }
  void operator()(const char* name, double& value) { value = number(required(name), name); }
  void operator()(const char* name, int& value) {
    value = static_cast<int>(integer(required(name), name, std::numeric_limits<int>::max()));
  }
  void operator()(const char* name, int64_t& value) {
    value = integer(required(name), name, std::numeric_limits<int64_t>::max());
  }
  void operator()(const char* name, bool& value) {
    const Json& json = required(name);
    if (!json.is_boolean()) fail(name, "true or false", json);
    value = json.get<bool>();
  }
  void operator()(const char* name, Status& value) {
    const std::string word = text(required(name), name);
    try {
      value = parse_status(word);
    } catch (const InputError& e) {
      throw InputError(fmt::format("{}: {}/{}: {}", origin_, pointer_, name, e.what()));
    }
  }
  void operator()(const char* name, std::optional<double>& value) {
    const Json* json = find(name);
    if (json && !json->is_null()) value = number(*json, name);
  }
  void operator()(const char* name, std::optional<int64_t>& value) {
    const Json* json = find(name);
    if (json && !json->is_null()) value = integer(*json, name, std::numeric_limits<int64_t>::max());
  }
  void operator()(const char* name, Json& value) {
    value = required(name);
    if (!value.is_object()) fail(name, "an object {…}", value);
  }
  template <class T>
  void operator()(const char* name, std::vector<T>& value) {
    const Json& json = array(name);
    value.reserve(json.size());
    for (size_t i = 0; i < json.size(); ++i) value.push_back(element<T>(json[i], name, i));
  }

  const Json& array(const char* name) const {
    const Json& json = required(name);
    if (!json.is_array()) fail(name, "an array […]", json);
    return json;
  }

 private:
  const Json* find(const char* name) const {
    const auto it = object_.find(name);
    return it == object_.end() ? nullptr : &*it;
  }
  const Json& required(const char* name) const {
    const Json* json = find(name);
    if (!json) {
      throw InputError(fmt::format("{}: {}: the field \"{}\" is missing; was the file edited or cut?", origin_,
                                   pointer_.empty() ? "/" : pointer_, name));
    }
    return *json;
  }
  [[noreturn]] void fail(const std::string& place, const char* expected, const Json& found) const {
    std::string shown = found.dump();
    if (shown.size() > 40) shown = shown.substr(0, 40) + "…";
    throw InputError(fmt::format("{}: {}: {} is not allowed; must be {}", origin_,
                                 place.empty() ? (pointer_.empty() ? "/" : pointer_) : pointer_ + "/" + place, shown,
                                 expected));
  }
  std::string text(const Json& json, const std::string& place) const {
    if (!json.is_string()) fail(place, "a string", json);
    return json.get<std::string>();
  }
  double number(const Json& json, const std::string& place) const {
    if (!json.is_number()) fail(place, "a number", json);
    return json.get<double>();
  }
  int64_t integer(const Json& json, const std::string& place, int64_t high) const {
    const bool fits = json.is_number_integer() &&
                      !(json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(high)) &&
                      json.get<int64_t>() <= high && json.get<int64_t>() >= -high;
    if (!fits) fail(place, "a whole number that fits", json);
    return json.get<int64_t>();
  }
  template <class T>
  T element(const Json& json, const char* name, size_t index) const {
    const auto place = [&] { return fmt::format("{}/{}", name, index); };
    if constexpr (std::is_same_v<T, double>) {
      if (json.is_number()) return json.get<double>();
      fail(place(), "a number", json);
    } else if constexpr (std::is_same_v<T, int>) {
      return static_cast<int>(integer(json, place(), std::numeric_limits<int>::max()));
    } else {
      return text(json, place());
    }
  }

  const Json& object_;
  const std::string& origin_;
  std::string pointer_;
};

void read_axes(const Json& json, const std::string& origin, const std::string& pointer, Point& point) {
  for (const auto& [name, value] : json.items()) {
    if (!name.starts_with(kAxisPrefix)) continue;
    const std::string axis = name.substr(kAxisPrefix.size());
    if (value.is_string()) {
      point.axes.emplace_back(axis, value.get<std::string>());
    } else if (value.is_number_integer()) {
      point.axes.emplace_back(axis, value.get<int64_t>());
    } else if (!value.is_null()) {  // null: a row of a table that lacks this axis
      throw InputError(fmt::format("{}: {}/{}: {} is not allowed; must be a whole number or a string", origin, pointer,
                                   name, value.dump()));
    }
  }
}

template <class Row, class Visit>
std::vector<Row> read_rows(const Json& rows, const std::string& origin, const std::string& pointer, Visit visit) {
  std::vector<Row> result(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    Reader reader(rows[i], origin, fmt::format("{}/{}", pointer, i));
    visit(result[i], reader);
  }
  return result;
}

Json row_json(const ControlRow& row) {
  Json json = Json::object();
  Writer writer(json);
  visit_control(row, writer);
  return json;
}

Json row_json(const ProcessRow& row) {
  Json json = Json::object();
  Writer writer(json);
  visit_process(row, writer);
  return json;
}

/// The first "1" of "1.0.0"; -1 when the text isn't a version.
int major_version(const std::string& version) {
  int value = 0;
  size_t i = 0;
  for (; i < version.size() && version[i] >= '0' && version[i] <= '9' && i < 6; ++i)
    value = value * 10 + (version[i] - '0');
  return i > 0 && i < version.size() && version[i] == '.' ? value : -1;
}

void check_kind_and_version(const Json& json, const std::string& origin) {
  if (!json.is_object())
    throw InputError(fmt::format("{}: /: not a result of dlbench; expected an object {{…}}", origin));
  const auto kind = json.find("kind");
  if (kind == json.end() || !kind->is_string()) {
    throw InputError(fmt::format("{}: /kind: missing; a result of dlbench says \"kind\": \"result\"", origin));
  }
  if (*kind != "result") {
    throw InputError(fmt::format("{}: /kind: is \"{}\"; name the result file that it was made from", origin,
                                 kind->get<std::string>()));
  }
  const auto version = json.find("schema_version");
  if (version == json.end() || !version->is_string() || major_version(version->get<std::string>()) < 0) {
    throw InputError(
        fmt::format("{}: /schema_version: missing or no version like \"{}\"", origin, kResultSchemaVersion));
  }
  const int known = major_version(kResultSchemaVersion);
  if (major_version(version->get<std::string>()) != known) {
    throw InputError(
        fmt::format("{}: /schema_version: {} is another major version; this program reads {}.x: use the dlbench "
                    "that wrote the file, or measure again",
                    origin, version->get<std::string>(), known));
  }
}

}  // namespace

Json to_json(const PointRow& row) {
  Json json = Json::object();
  Writer writer(json);
  visit_point_identity(row, writer);
  for (const auto& [axis, value] : row.point.axes) {
    std::visit([&json, &name = axis](const auto& v) { json[std::string(kAxisPrefix) + name] = v; }, value);
  }
  visit_point_observations(row, writer);
  return json;
}

Json to_json(const TimingRow& row) {
  Json json = Json::object();
  Writer writer(json);
  visit_timing(row, writer);
  return json;
}

namespace {
/// Everything before the rows.
Json head_json(const Result& result) {
  return {{"schema_version", result.schema_version},
          {"kind", "result"},
          {"partial", result.partial},
          {"tool", result.tool},
          {"run", result.run},
          {"environment", result.environment},
          {"config", result.config}};
}

template <class Rows, class Convert>
Json rows_json(const Rows& rows, Convert convert) {
  Json json = Json::array();
  for (const auto& row : rows) json.push_back(convert(row));
  return json;
}

template <class Rows, class Convert>
void append_rows(std::string& text, const char* name, const Rows& rows, Convert convert) {
  text += fmt::format(",\n \"{}\": [", name);
  const char* separator = "\n  ";
  for (const auto& row : rows) {
    text += separator + dump_json(convert(row), -1);
    separator = ",\n  ";
  }
  text += rows.empty() ? "]" : "\n ]";
}
}  // namespace

Json to_json(const Result& result) {
  Json json = head_json(result);
  json["points"] = rows_json(result.points, [](const PointRow& r) { return to_json(r); });
  json["timings"] = rows_json(result.timings, [](const TimingRow& r) { return to_json(r); });
  json["controls"] = rows_json(result.controls, [](const ControlRow& r) { return row_json(r); });
  json["processes"] = rows_json(result.processes, [](const ProcessRow& r) { return row_json(r); });
  json["warnings"] = result.warnings;
  return json;
}

std::string result_text(const Result& result) {
  std::string text = dump_json(head_json(result));
  text.resize(text.rfind("\n}"));
  append_rows(text, "points", result.points, [](const PointRow& r) { return to_json(r); });
  append_rows(text, "timings", result.timings, [](const TimingRow& r) { return to_json(r); });
  append_rows(text, "controls", result.controls, [](const ControlRow& r) { return row_json(r); });
  append_rows(text, "processes", result.processes, [](const ProcessRow& r) { return row_json(r); });
  append_rows(text, "warnings", result.warnings, [](const std::string& w) { return Json(w); });
  return text + "\n}\n";
}

PointRow point_row_from_json(const Json& json, const std::string& origin, const std::string& pointer) {
  PointRow row;
  Reader reader(json, origin, pointer);
  visit_point_identity(row, reader);
  visit_point_observations(row, reader);
  row.point.workload = row.workload;
  read_axes(json, origin, pointer, row.point);
  return row;
}

TimingRow timing_row_from_json(const Json& json, const std::string& origin, const std::string& pointer) {
  TimingRow row;
  Reader reader(json, origin, pointer);
  visit_timing(row, reader);
  return row;
}

Result result_from_json(const Json& json, const std::string& origin) {
  check_kind_and_version(json, origin);
  Result result;
  Reader reader(json, origin, "");
  reader("schema_version", result.schema_version);
  reader("partial", result.partial);
  reader("tool", result.tool);
  reader("run", result.run);
  reader("environment", result.environment);
  reader("config", result.config);
  const Json& points = reader.array("points");
  for (size_t i = 0; i < points.size(); ++i) {
    result.points.push_back(point_row_from_json(points[i], origin, fmt::format("/points/{}", i)));
  }
  result.timings = read_rows<TimingRow>(reader.array("timings"), origin, "/timings",
                                        [](TimingRow& row, Reader& r) { visit_timing(row, r); });
  result.controls = read_rows<ControlRow>(reader.array("controls"), origin, "/controls",
                                          [](ControlRow& row, Reader& r) { visit_control(row, r); });
  result.processes = read_rows<ProcessRow>(reader.array("processes"), origin, "/processes",
                                           [](ProcessRow& row, Reader& r) { visit_process(row, r); });
  reader("warnings", result.warnings);
  return result;
}

Result read_result(const std::string& path) {
  return result_from_json(read_json_file(path), path == "-" ? "standard input" : path);
}

void write_result(const Result& result, const std::string& path) {
  const std::string text = result_text(result);
  if (path != "-") return write_file_atomic(path, text);
  std::cout << text << std::flush;
  if (!std::cout) throw Error("standard output: the result cannot be written; was the pipe closed?");
}

}  // namespace dlbench
