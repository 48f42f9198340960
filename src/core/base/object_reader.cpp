#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "core/base/error.h"
#include "core/base/json.h"

namespace dlbench {

ObjectReader::ObjectReader(const Json& object, std::string origin, std::string pointer)
    : object_(&object), origin_(std::move(origin)), pointer_(std::move(pointer)) {
  if (!object.is_object()) {
    throw UsageError(fmt::format("{}: {}: expected an object {{…}}, found {}", origin_,
                                 pointer_.empty() ? "/" : pointer_, object.type_name()));
  }
}

bool ObjectReader::has(const std::string& key) const {
  return object_->contains(key);
}

const Json* ObjectReader::find(const std::string& key) {
  known_.insert(key);
  const auto it = object_->find(key);
  return it == object_->end() ? nullptr : &*it;
}

std::string ObjectReader::pointer_of(const std::string& key) const {
  return pointer_ + "/" + key;
}

void ObjectReader::fail(const std::string& key, const std::string& what) const {
  throw UsageError(fmt::format("{}: {}: {}", origin_, pointer_of(key), what));
}

std::string ObjectReader::string_or(const std::string& key, const std::string& fallback) {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_string()) fail(key, fmt::format("{} is not allowed; must be a string", value->dump()));
  return value->get<std::string>();
}

int64_t ObjectReader::integer_or(const std::string& key, int64_t fallback, int64_t low, int64_t high) {
  const Json* value = find(key);
  if (!value) return fallback;
  const bool whole = value->is_number_integer() && !(value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX);
  if (!whole || value->get<int64_t>() < low || value->get<int64_t>() > high) {
    fail(key, fmt::format("{} is not allowed; must be a whole number from {} to {}", value->dump(), low, high));
  }
  return value->get<int64_t>();
}

double ObjectReader::number_or(const std::string& key, double fallback, double low, double high) {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() < low ||
      value->get<double>() > high) {
    fail(key, fmt::format("{} is not allowed; must be a number from {} to {}", value->dump(), low, high));
  }
  return value->get<double>();
}

bool ObjectReader::boolean_or(const std::string& key, bool fallback) {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_boolean()) fail(key, fmt::format("{} is not allowed; must be true or false", value->dump()));
  return value->get<bool>();
}

std::string ObjectReader::choice_or(const std::string& key, const std::string& fallback,
                                    const std::vector<std::string>& known) {
  const Json* value = find(key);
  if (!value) return fallback;
  if (value->is_string()) {
    const std::string word = value->get<std::string>();
    for (const std::string& k : known) {
      if (k == word) return word;
    }
    const std::string nearest = nearest_word(word, known);
    fail(key,
         fmt::format("\"{}\" is not known{}; known: {}", word,
                     nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest), fmt::join(known, ", ")));
  }
  fail(key, fmt::format("{} is not allowed; must be one of: {}", value->dump(), fmt::join(known, ", ")));
}

void ObjectReader::finish() const {
  for (const auto& [key, value] : object_->items()) {
    if (known_.contains(key)) continue;
    const std::vector<std::string> known(known_.begin(), known_.end());
    const std::string nearest = nearest_word(key, known);
    fail(key,
         fmt::format("unknown key \"{}\"{}; known: {}", key,
                     nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest), fmt::join(known, ", ")));
  }
}

}  // namespace dlbench
