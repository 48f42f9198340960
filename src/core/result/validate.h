// Validation of result.json, report.json, noise profiles and comparisons: against the shipped JSON Schemas, and what a
// schema can't say.
//
// Why: other programs read and write these files; a person who got one by mail wants to know whether it is whole.
// Promises: every violation has a JSON pointer; an empty list means that both the schema and the rules below hold.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace dlbench {

struct Violation {
  std::string pointer;  ///< "/points/3/status", "/" for the whole file
  std::string what;
};

enum class FileKind : uint8_t { result, report, noise_profile, comparison, config };
std::string_view to_string(FileKind kind);
/// By the member `kind`; a file with `sweeps` and without `kind` is a config. Empty: none of ours.
std::optional<FileKind> kind_of(const Json& json);

/// The text of results/schema/KIND.schema.json. @param kind any but config, whose schema stands in configs/schema.
std::string_view schema_text(FileKind kind);

/// @param kind any but config
std::vector<Violation> schema_violations(const Json& json, FileKind kind);
/// Of a result: keys are unique, equal the axes' columns and agree with pair_key and sweep_key; timings refer to
/// points, once per process; parallel columns are of equal length; an `ok` point of a whole result has timings. Of a
/// report: pairs and peaks refer to points; intervals contain their value. Of a noise profile: a device class stands
/// once.
std::vector<Violation> rule_violations(const Json& json, FileKind kind);
/// Both; the rules only where the schema holds.
std::vector<Violation> violations(const Json& json, FileKind kind);

}  // namespace dlbench
