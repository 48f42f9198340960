// JSON as dlbench uses it: strict when it comes in, finite when it goes out, atomic on disk.
//
// Why: configs are written by hand, so a typing error must be named with its place; result files are read by other
// programs, so NaN and duplicate keys must never appear in them.
// Promises: parse errors name file, line and column; `dump_json` throws on NaN and infinity; `write_file_atomic` leaves
// either the old or the new content on disk, never a part of it.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dlbench {

/// Keeps insertion order, so that files read in the order in which they were designed.
using Json = nlohmann::ordered_json;

enum class JsonComments { kAllow, kReject };

/// Parses text. Rejects duplicate keys, trailing text, NaN, and comments unless allowed.
/// @param origin what to call the text in errors: a file name or "standard input".
/// @throws InputError (or UsageError for configs, see parse_config) with line and column.
Json parse_json(std::string_view text, const std::string& origin, JsonComments comments = JsonComments::kReject);

/// Reads and parses a file; "-" is standard input.
/// @throws InputError when the file can't be read, is empty, is cut short or is malformed.
Json read_json_file(const std::string& path, JsonComments comments = JsonComments::kReject);

/// Serialises. Doubles keep the shortest text that reads back to the same value.
/// @throws Error when a number is NaN or infinite, naming the JSON pointer of it.
std::string dump_json(const Json& value, int indent = 1);

/// Writes to a temporary file beside `path`, fsyncs it and renames it over `path`.
/// @throws Error naming the path and the reason of the operating system (no space left, permission denied, …).
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

/// Reads one JSON object strictly: every key must be asked for, and `finish` refuses the ones nobody asked for.
///
/// Errors are UsageError of the form: "configs/x.json: /sweeps/0/batch: -3 is not allowed; must be a whole number from
/// 1".
class ObjectReader {
 public:
  /// @param pointer JSON pointer of `object` within the file, "" for the root.
  ObjectReader(const Json& object, std::string origin, std::string pointer);

  bool has(const std::string& key) const;
  /// nullptr when absent; marks the key as known either way.
  const Json* find(const std::string& key);
  std::string string_or(const std::string& key, const std::string& fallback);
  int64_t integer_or(const std::string& key, int64_t fallback, int64_t low, int64_t high);
  double number_or(const std::string& key, double fallback, double low, double high);
  bool boolean_or(const std::string& key, bool fallback);
  /// A string out of a closed set.
  std::string choice_or(const std::string& key, const std::string& fallback, const std::vector<std::string>& known);

  /// @throws UsageError for the first key that was never asked for, with the nearest known key as a suggestion.
  void finish() const;
  /// @throws UsageError "<origin>: <pointer>/<key>: <what>".
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

  const Json& object() const { return *object_; }
  const std::string& origin() const { return origin_; }
  std::string pointer_of(const std::string& key) const;

 private:
  const Json* object_;
  std::string origin_, pointer_;
  std::set<std::string> known_;
};

/// The member of `known` nearest to `word` by edit distance, "" when none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace dlbench
