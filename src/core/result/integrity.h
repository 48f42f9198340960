// Integrity of a result in memory: what every file that dlbench wrote fulfils, and an edited one may not.
//
// Why: a comparison must not conclude anything from a time of 0 s or from a process that stands in the file twice; the
// schema says the same, but takes seconds for a large file.
// Promises: linear in the size of the result.
#pragma once

#include <string>

#include "core/result/result.h"

namespace dlbench {

/// Times are finite and above 0; keys are unique and spelt by their axes; timings belong to a point, once per process;
/// parallel columns are of equal length; an `ok` point of a whole result has timings.
/// @throws InputError "FILE: /timings/3/wall_seconds/2: -0.001 is no time; …" for the first violation.
void require_integrity(const Result& result, const std::string& origin);

}  // namespace dlbench
