// Exports to the formats of other tools. Only points with a result are exported: none of these formats has a status.
//
// Names are point keys. Where a consumer wants one direction per file, times are exported (smaller is better).
#pragma once

#include "core/analysis/analysis.h"
#include "core/base/json.h"

namespace dlbench {

/// Google Benchmark's JSON (docs/user_guide.md, "Output formats"; read by its tools/compare.py): one entry per process
/// as a repetition, real_time in ns per step. cpu_time, which the format demands, is the same wall time: none was
/// measured.
Json export_gbench(const Analysis& analysis);
/// github-action-benchmark, tool `customSmallerIsBetter`: an array of {name, unit, value, range, extra}; seconds per
/// step.
Json export_github_action_benchmark(const Analysis& analysis);
/// Bencher Metric Format: {name: {latency: {value, lower_value, upper_value}, throughput: {…}}}; latency in ns per
/// step, throughput in steps per second.
Json export_bencher(const Analysis& analysis);
/// pyperf's JSON, version 1.0: a run is a process, its values are the timings in seconds per step.
Json export_pyperf(const Analysis& analysis);

}  // namespace dlbench
