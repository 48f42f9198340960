// Sanity gates (METHODS section 4): a point faster than physics is a bug, not a result.
//
// Why here and not only in the harness: an archived file is judged again with every ceiling that was measured beside
// it. Promises: a gate judges by ceilings that don't come from the judged point itself and takes the fastest single
// timing of a ceiling in any placement, so that it errs towards silence; a ceiling that wasn't measured is said in
// `notes`, not guessed.
#pragma once

#include <string>
#include <vector>

#include "core/analysis/roofline.h"

namespace dlbench {

/// Faster than a measured ceiling by more than this is impossible.
inline constexpr double kPhysicsMargin = 1.05;

/// Sets status `invalid` and the reason of impossible points and empties their numbers.
void apply_gates(std::vector<AnalyzedPoint>& points, const TimingIndex& timings, std::vector<std::string>& notes);

}  // namespace dlbench
