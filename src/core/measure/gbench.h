// Google Benchmark, as dlbench uses it: it drives the timed loops, and writes its own JSON from a finished result.
//
// Why: its compare.py and the services that read its format get files made by the real library. One repetition is one
// timing of a fixed number of steps; the clock is the device's (manual time), virtual ones included.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result/result.h"

namespace dlbench {

/// Runs `timed(steps)` `count` times as repetitions of one benchmark and returns the seconds per step of each.
/// `timed` returns the seconds that `steps` steps took. What it throws is thrown again from here.
std::vector<double> time_under_google_benchmark(const std::string& name, int64_t steps, int count,
                                                const std::function<double(int64_t)>& timed);

/// Every timing of every ok point as a repetition, processes one after another, and mean, median, stddev and cv as
/// aggregates, in the JSON of Google Benchmark's own reporter. Atomic.
/// @throws Error when the file can't be written.
void write_google_benchmark_json(const Result& result, const std::string& path);

}  // namespace dlbench
