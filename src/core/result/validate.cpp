#include "core/result/validate.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "core/base/error.h"

namespace dlbench {

std::string_view to_string(FileKind kind) {
  switch (kind) {
    case FileKind::result:
      return "result";
    case FileKind::report:
      return "report";
    case FileKind::noise_profile:
      return "noise_profile";
    case FileKind::comparison:
      return "comparison";
    case FileKind::config:
      return "config";
  }
  throw Error("to_string: not a kind of file");
}

std::optional<FileKind> kind_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto kind = json.find("kind");
  if (kind != json.end()) {
    for (const FileKind known : {FileKind::result, FileKind::report, FileKind::noise_profile, FileKind::comparison}) {
      if (*kind == std::string(to_string(known))) return known;
    }
    return std::nullopt;
  }
  return json.contains("sweeps") ? std::optional(FileKind::config) : std::nullopt;
}

namespace {

/// valijson's context ("<root>", "[points]", "[3]", quotes or not) as a JSON pointer.
std::string pointer_of(const std::vector<std::string>& context) {
  std::string pointer;
  for (const std::string& step : context) {
    if (step.empty() || step.front() != '[') continue;
    const size_t first = step.find_first_not_of("[\"");
    const size_t last = step.find_last_not_of("]\"");
    if (first != std::string::npos && last != std::string::npos) pointer += "/" + step.substr(first, last - first + 1);
  }
  return pointer.empty() ? "/" : pointer;
}

/// The value at a pointer, short enough to print.
std::string shown(const Json& json, const std::string& pointer) {
  const Json::json_pointer place(pointer == "/" ? "" : pointer);
  if (!json.contains(place)) return "";
  const Json& value = json[place];
  if (value.is_structured()) return "";
  const std::string text = value.dump();
  return text.size() > 60 ? text.substr(0, 60) + "…: " : text + ": ";
}

}  // namespace

std::vector<Violation> schema_violations(const Json& json, FileKind kind) {
  if (kind == FileKind::config) throw Error("schema_violations: configs are checked by parse_config");
  const nlohmann::json schema_json = nlohmann::json::parse(schema_text(kind));
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_json), schema);
  const nlohmann::json document(json);
  valijson::ValidationResults errors;
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  std::vector<Violation> found;
  if (validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), &errors)) return found;
  valijson::ValidationResults::Error error;
  std::vector<Violation> outer;
  while (errors.popError(error)) {
    const std::string pointer = pointer_of(error.context);
    Violation violation{pointer, shown(json, pointer) + error.description};
    // Every level above a violation is reported as well; only the innermost says what is wrong.
    const bool is_outer = error.description.starts_with("Failed to validate");
    (is_outer ? outer : found).push_back(std::move(violation));
  }
  return found.empty() ? outer : found;
}

namespace {

class Rules {
 public:
  explicit Rules(const Json& json) : json_(json) {}
  std::vector<Violation> result();
  std::vector<Violation> report();
  std::vector<Violation> noise_profile();
  std::vector<Violation> comparison();

 private:
  void add(const std::string& pointer, const std::string& what) { found_.push_back({pointer, what}); }
  void point(size_t index);
  void timing(size_t index);
  void equal_lengths(const Json& row, const std::string& pointer, const char* reference,
                     std::initializer_list<const char*> columns);
  void interval(const Json& row, const std::string& pointer, const char* value, const char* low, const char* high);

  const Json& json_;
  std::vector<Violation> found_;
  std::map<std::string, size_t> keys_;
  std::set<std::pair<std::string, int64_t>> timed_;
  std::set<std::string> with_timings_;
};

std::string text(const Json& row, const char* name) {
  return row.at(name).get<std::string>();
}

/// The key that the axis_ columns spell; "all" threads can't be spelt back and isn't compared.
std::string spelt_key(const Json& row) {
  std::string key = text(row, "workload");
  for (const auto& [name, value] : row.items()) {
    if (!name.starts_with("axis_") || value.is_null()) continue;
    key += "/" + name.substr(5) + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return key;
}

void Rules::point(size_t index) {
  const Json& row = json_["points"][index];
  const std::string pointer = fmt::format("/points/{}", index), key = text(row, "key");
  const auto [first, fresh] = keys_.try_emplace(key, index);
  if (!fresh)
    add(pointer + "/key", fmt::format("{} is the key of /points/{} as well; keys are unique", key, first->second));
  if (spelt_key(row) != key)
    add(pointer + "/key", fmt::format("{} does not agree with the axis_ columns, which spell {}", key, spelt_key(row)));
  const auto agree = [&](const char* axis, const char* column) {
    const std::string name = std::string("axis_") + axis;
    if (row.contains(name) && row[name] != row.at(column))
      add(pointer + "/" + column, fmt::format("{} and {} differ", column, name));
  };
  agree("device", "device");
  agree("precision", "precision");
  const std::string axis = text(row, "sweep_axis");
  const std::string column = "axis_" + axis;
  if (!axis.empty() && !row.at("sweep_value").is_null() && row.contains(column) &&
      (!row[column].is_number() || row[column].get<double>() != row["sweep_value"].get<double>())) {
    add(pointer + "/sweep_value", fmt::format("sweep_value and axis_{} differ", axis));
  }
}

void Rules::equal_lengths(const Json& row, const std::string& pointer, const char* reference,
                          std::initializer_list<const char*> columns) {
  for (const char* column : columns) {
    if (row.at(column).size() == row.at(reference).size() || row.at(column).empty()) continue;
    add(pointer + "/" + column,
        fmt::format("has {} entries where {} has {}", row.at(column).size(), reference, row.at(reference).size()));
  }
}

void Rules::timing(size_t index) {
  const Json& row = json_["timings"][index];
  const std::string pointer = fmt::format("/timings/{}", index), key = text(row, "key");
  if (!keys_.contains(key)) add(pointer + "/key", fmt::format("{} is no point of this file", key));
  if (!timed_.insert({key, row.at("process").get<int64_t>()}).second) {
    add(pointer, fmt::format("process {} has timings of {} already", row.at("process").dump(), key));
  }
  if (!row.at("wall_seconds").empty()) with_timings_.insert(key);
  equal_lengths(row, pointer, "wall_seconds", {"device_seconds", "block"});
  equal_lengths(
      row, pointer, "placement",
      {"ping_pong_before_seconds", "ping_pong_after_seconds", "fma_before_flop_per_s", "fma_after_flop_per_s"});
  const size_t blocks = row.at("placement").size();
  for (size_t i = 0; i < row.at("block").size(); ++i) {
    if (row["block"][i].get<size_t>() < std::max<size_t>(blocks, 1)) continue;
    add(fmt::format("{}/block/{}", pointer, i),
        fmt::format("{} is no block of placement, which has {}", row["block"][i].dump(), blocks));
  }
}

std::vector<Violation> Rules::result() {
  for (size_t i = 0; i < json_.at("points").size(); ++i) point(i);
  for (size_t i = 0; i < json_.at("timings").size(); ++i) timing(i);
  if (!json_.at("partial").get<bool>()) {
    for (const auto& [key, index] : keys_) {
      if (json_["points"][index].at("status") != "ok" || with_timings_.contains(key)) continue;
      add(fmt::format("/points/{}", index), "is ok and has no timings, in a result that is not partial");
    }
  }
  return std::move(found_);
}

void Rules::interval(const Json& row, const std::string& pointer, const char* value, const char* low,
                     const char* high) {
  if (row.at(value).is_null() || row.at(low).is_null() || row.at(high).is_null()) return;
  const double v = row[value].get<double>(), slack = 1e-9 * v;
  if (row[low].get<double>() > v + slack || row[high].get<double>() < v - slack) {
    add(pointer, fmt::format("{} {} lies outside of its interval", value, row[value].dump()));
  }
}

std::vector<Violation> Rules::report() {
  for (size_t i = 0; i < json_.at("points").size(); ++i) {
    const Json& row = json_["points"][i];
    keys_.try_emplace(text(row, "key"), i);
    const std::string pointer = fmt::format("/points/{}", i);
    interval(row, pointer, "seconds", "seconds_low", "seconds_high");
    interval(row, pointer, "samples_per_s", "samples_per_s_low", "samples_per_s_high");
    if (row.at("status") != "ok" && !row.at("seconds").is_null())
      add(pointer + "/seconds", "a point that is not ok has no numbers");
  }
  const auto refers = [this](const char* list, const char* column) {
    for (size_t i = 0; i < json_.at(list).size(); ++i) {
      const std::string key = text(json_[list][i], column);
      if (!keys_.contains(key))
        add(fmt::format("/{}/{}/{}", list, i, column), fmt::format("{} is no point of this file", key));
    }
  };
  refers("peaks", "source");
  refers("pairs", "cpu_key");
  refers("pairs", "gpu_key");
  for (size_t i = 0; i < json_.at("pairs").size(); ++i) {
    for (const char* name : {"cpu_seconds", "gpu_seconds", "speedup"}) {
      interval(json_["pairs"][i].at(name), fmt::format("/pairs/{}/{}", i, name), "value", "low", "high");
    }
  }
  return std::move(found_);
}

std::vector<Violation> Rules::noise_profile() {
  for (size_t i = 0; i < json_.at("devices").size(); ++i) {
    const std::string name = text(json_["devices"][i], "device_class");
    const auto [first, fresh] = keys_.try_emplace(name, i);
    if (!fresh) {
      add(fmt::format("/devices/{}/device_class", i),
          fmt::format("{} is the device class of /devices/{} as well", name, first->second));
    }
  }
  return std::move(found_);
}

std::vector<Violation> Rules::comparison() {
  std::map<std::string, int64_t> counts;
  for (size_t i = 0; i < json_.at("points").size(); ++i) {
    const Json& row = json_["points"][i];
    const std::string pointer = fmt::format("/points/{}", i), key = text(row, "key");
    const auto [first, fresh] = keys_.try_emplace(key, i);
    if (!fresh) add(pointer + "/key", fmt::format("{} is the key of /points/{} as well", key, first->second));
    ++counts[text(row, "verdict")];
    for (const char* side : {"base", "candidate"}) {
      if (!row.at(side).is_null()) interval(row[side], pointer + "/" + side, "value", "low", "high");
    }
  }
  for (const auto& [verdict, count] : json_.at("summary").items()) {
    if (count.get<int64_t>() != counts[verdict])
      add("/summary/" + verdict, fmt::format("{} where points[] has {}", count.dump(), counts[verdict]));
  }
  return std::move(found_);
}

}  // namespace

std::vector<Violation> rule_violations(const Json& json, FileKind kind) {
  switch (kind) {
    case FileKind::result:
      return Rules(json).result();
    case FileKind::report:
      return Rules(json).report();
    case FileKind::noise_profile:
      return Rules(json).noise_profile();
    case FileKind::comparison:
      return Rules(json).comparison();
    case FileKind::config:
      break;
  }
  throw Error("rule_violations: configs are checked by parse_config");
}

std::vector<Violation> violations(const Json& json, FileKind kind) {
  std::vector<Violation> found = schema_violations(json, kind);
  return found.empty() ? rule_violations(json, kind) : found;
}

}  // namespace dlbench
