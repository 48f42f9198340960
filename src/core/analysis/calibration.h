// Calibration: the noise profile of a machine from several sessions of the same program (A/A), for `dlbench calibrate`.
//
// Why: how far two sessions of one binary are apart can't be known from either of them.
// Model, per point, of y = ln(median seconds of a process): y = level + session + process, the one-way random-effects
// analysis of variance (Searle, Casella & McCulloch 1992, ch. 3): s^2 within sessions; tau^2 = variance of session
// means minus s^2 / processes, averaged over the points of a device class without setting negative ones to 0, which
// would make quiet machines look noisy. Promises: pure; only timings of equal placement are compared; what can't be
// told is a warning, not a number.
#pragma once

#include <span>

#include "core/analysis/noise_profile.h"
#include "core/result/result.h"

namespace dlbench {

/// Process counts for which a profile says what can be detected.
inline constexpr int kDetectableProcesses[] = {3, 5, 10, 20};

/// @param sessions results of one config on one machine, at least two, each of at least two processes.
/// @throws InputError when there are fewer, when they come from different machines, or when no point was measured in
/// two.
NoiseProfile calibrate(std::span<const Result> sessions);

/// "cpu: this machine can see 4 % at 5 processes …": one sentence per device class.
std::vector<std::string> calibration_sentences(const NoiseProfile& profile);

}  // namespace dlbench
