#include "core/plan/axis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/base/error.h"
#include "core/base/json.h"

namespace dlbench {

std::string to_string(const AxisValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  return std::get<std::string>(value);
}

std::string AxisSpec::complaint_about(const AxisValue& value) const {
  if (kind == AxisKind::integer) {
    const auto* number = std::get_if<int64_t>(&value);
    if (number && *number >= low && *number <= high) return "";
    const std::string shown = number ? std::to_string(*number) : fmt::format("\"{}\"", std::get<std::string>(value));
    return fmt::format("{} is not allowed; must be a whole number from {} to {}", shown, low, high);
  }
  const auto* word = std::get_if<std::string>(&value);
  if (!word) return fmt::format("{} is not allowed; must be one of: {}", to_string(value), fmt::join(words, ", "));
  if (words.empty() || std::find(words.begin(), words.end(), *word) != words.end()) return "";
  const std::string nearest = nearest_word(*word, words);
  return fmt::format("\"{}\" is not known{}; known: {}", *word,
                     nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest), fmt::join(words, ", "));
}

const std::vector<AxisSpec>& common_axes() {
  static const std::vector<AxisSpec> axes = [] {
    std::vector<std::string> precisions;
    for (const Precision p : all_precisions()) precisions.emplace_back(to_string(p));
    return std::vector<AxisSpec>{
        {.name = "precision",
         .kind = AxisKind::word,
         .fallback = "fp32",
         .words = precisions,
         .summary = "storage, compute and accumulate type"},
        {.name = "launch",
         .kind = AxisKind::word,
         .fallback = "stream",
         .words = {"stream", "graph"},
         .summary = "how the step reaches the GPU: op by op, or replayed as one graph",
         .pair_role = PairRole::one_side,
         .only_on = Side::gpu},
        {.name = "data",
         .kind = AxisKind::word,
         .fallback = "resident",
         .words = {"resident", "streamed", "streamed_pageable"},
         .summary = "inputs already on the GPU, or copied from pinned (pageable) host memory inside the step",
         .pair_role = PairRole::one_side,
         .only_on = Side::gpu},
        {.name = "cache",
         .kind = AxisKind::word,
         .fallback = "warm",
         .words = {"warm", "rotate"},
         .summary = "the same inputs every step, or input sets in turn that exceed twice the last-level cache"},
        {.name = "threads",
         .kind = AxisKind::integer,
         .fallback = kAllThreads,
         .low = 1,
         .high = 65536,
         .summary = "CPU threads; \"all\" in a config is every usable CPU",
         .pair_role = PairRole::one_side,
         .only_on = Side::cpu},
        {.name = "device", .kind = AxisKind::word, .fallback = "cpu", .summary = "device id: cpu, gpu:0"},
    };
  }();
  return axes;
}

namespace {

constexpr size_t kMaxRangeValues = 10000;

[[noreturn]] void refuse(const std::string& text, const std::string& what) {
  throw UsageError(
      fmt::format("\"{}\" is not a range: {}; write first:last:xFACTOR (\"1:1024:x2\"), first:last:+STEP "
                  "(\"8:64:+8\"), a list (\"4,8,32\") or one number",
                  text, what));
}

/// A whole number without sign, optionally with a binary unit behind it.
int64_t parse_number(std::string_view number, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc::result_out_of_range) refuse(text, fmt::format("{} doesn't fit 63 bits", number));
  if (error != std::errc() || number.front() == '-') refuse(text, fmt::format("\"{}\" is no whole number", number));
  const std::string_view unit(end, static_cast<size_t>(number.data() + number.size() - end));
  int64_t factor = 1;
  if (unit == "KiB") factor = int64_t{1} << 10;
  if (unit == "MiB") factor = int64_t{1} << 20;
  if (unit == "GiB") factor = int64_t{1} << 30;
  if (!unit.empty() && factor == 1) refuse(text, fmt::format("\"{}\" is no unit (KiB, MiB, GiB)", unit));
  if (__builtin_mul_overflow(value, factor, &value)) refuse(text, fmt::format("{} doesn't fit 63 bits", number));
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t start = 0;;) {
    const size_t end = text.find(separator, start);
    parts.push_back(text.substr(start, end == std::string_view::npos ? end : end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::vector<int64_t> parse_steps(const std::vector<std::string_view>& parts, const std::string& text) {
  if (parts.size() != 3) refuse(text, fmt::format("it has {} parts between colons, not 3", parts.size()));
  const int64_t first = parse_number(parts[0], text), last = parse_number(parts[1], text);
  if (last < first) refuse(text, fmt::format("it ends at {} before it starts at {}", last, first));
  if (parts[2].size() < 2 || (parts[2][0] != 'x' && parts[2][0] != '+'))
    refuse(text, "the third part is no xFACTOR or +STEP");
  const bool geometric = parts[2][0] == 'x';
  const int64_t step = parse_number(parts[2].substr(1), text);
  if (geometric && (step < 2 || first < 1))
    refuse(text, "a geometric range starts at 1 or more and has a factor of 2 or more");
  if (!geometric && step < 1) refuse(text, "a step must be 1 or more");
  std::vector<int64_t> values;
  for (int64_t value = first; value <= last;) {
    values.push_back(value);
    if (values.size() > kMaxRangeValues) refuse(text, fmt::format("it has more than {} values", kMaxRangeValues));
    if (geometric ? __builtin_mul_overflow(value, step, &value) : __builtin_add_overflow(value, step, &value)) break;
  }
  return values;
}

}  // namespace

std::vector<int64_t> parse_range(const std::string& text) {
  std::vector<int64_t> values;
  for (const std::string_view item : split(text, ',')) {
    if (item.empty()) refuse(text, "a number is missing");
    const std::vector<std::string_view> parts = split(item, ':');
    for (const std::string_view part : parts) {
      if (part.empty()) refuse(text, "a number is missing");
    }
    if (parts.size() == 1) {
      values.push_back(parse_number(item, text));
    } else {
      const std::vector<int64_t> steps = parse_steps(parts, text);
      values.insert(values.end(), steps.begin(), steps.end());
    }
  }
  return values;
}

}  // namespace dlbench
