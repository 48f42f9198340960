// Reading and writing result.json.
//
// Promises: what is written validates against results/schema/result.schema.json; what is read is checked field by field,
// with one sentence naming file and JSON pointer; a later minor version is read (unknown fields are kept out), another major
// version is refused.
#pragma once

#include <string>
#include <vector>

#include "core/result/result.h"

namespace dlbench {

Json to_json(const Result& result);
Json to_json(const PointRow& row);
Json to_json(const TimingRow& row);
/// @throws InputError
Result result_from_json(const Json& json, const std::string& origin);
PointRow point_row_from_json(const Json& json, const std::string& origin, const std::string& pointer);
TimingRow timing_row_from_json(const Json& json, const std::string& origin, const std::string& pointer);
Result read_result(const std::string& path);
/// Atomic. "-" writes to standard output.
void write_result(const Result& result, const std::string& path);

/// One result out of several, for a report over machines. Keys keep their names; a row remembers its source.
/// @throws InputError when the same key was measured in two files whose environments have the same fingerprint and
/// whose measurements differ (measured twice: say which one to use).
Result merge_results(const std::vector<Result>& results, const std::vector<std::string>& origins);

}  // namespace dlbench
