// Reading and writing result.json.
//
// Promises: what is written validates against results/schema/result.schema.json; what is read is checked field by
// field, with one sentence naming file and JSON pointer; a later minor version is read (unknown fields are kept out),
// another major version is refused.
#pragma once

#include <string>
#include <vector>

#include "core/result/result.h"

namespace dlbench {

Json to_json(const Result& result);
Json to_json(const PointRow& row);
Json to_json(const TimingRow& row);
/// The text of a result file: one row of points[] and timings[] per line.
std::string result_text(const Result& result);
/// @throws InputError
Result result_from_json(const Json& json, const std::string& origin);
PointRow point_row_from_json(const Json& json, const std::string& origin, const std::string& pointer);
TimingRow timing_row_from_json(const Json& json, const std::string& origin, const std::string& pointer);
Result read_result(const std::string& path);
/// Atomic. "-" writes to standard output.
void write_result(const Result& result, const std::string& path);

/// One result out of several, for a report over machines. Keys keep their names; a row remembers its source; processes
/// are numbered on, so that (key, process) stays unique; `environment` becomes {fingerprint, machines: [{source, tool,
/// run, environment, config}]}. Of a key that only one file measured (`ok`), that row is taken; of equal rows, the
/// first.
/// @param preferred origin whose rows win where several files measured a key; "" when none does.
/// @throws InputError when two files measured the same key and neither is preferred (which one is meant?).
Result merge_results(const std::vector<Result>& results, const std::vector<std::string>& origins,
                     const std::string& preferred = "");

}  // namespace dlbench
