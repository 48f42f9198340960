// compare: two sides of one or several results each, as verdicts per point (METHODS section 5, offline).
//
// Why: the in-memory form of what `dlbench compare` prints and of comparison.json; renderers only draw it.
// Promises: pure; every point that the base measured stands in `points` exactly once (filtered ones apart), the others
// are counted in `notes`; statistics use timings of equal placement labels and equal steps per timing only and name
// both; nothing is re-centred on the run's median.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/analysis/judge.h"
#include "core/analysis/noise_profile.h"
#include "core/analysis/statistics.h"
#include "core/plan/key_filter.h"
#include "core/result/result.h"

namespace dlbench {

/// A result file of a side: one session.
struct Session {
  const Result* result = nullptr;
  std::string file;
  std::string sha256;  ///< of its bytes, hexadecimal
};

/// What makes the exit code something else than 0, beside drift, wrong results and nothing to conclude from.
struct FailOn {
  bool regression = true, improvement = false, inconclusive = false, missing = true, incomparable = true;
};

struct CompareOptions {
  JudgeOptions judge;
  KeyFilter filter;
  FailOn fail_on;
  std::optional<NoiseProfile> profile;
  std::string profile_file;
};

struct ComparedPoint {
  std::string key, workload, device;
  Change change = Change::inconclusive;
  std::string reason;     ///< why it isn't a verdict about time; "" for regression, improvement and equivalent
  std::string resolve;    ///< command that would make an inconclusive point conclusive; "" otherwise
  std::string placement;  ///< label of the timings on both sides
  int64_t steps_per_timing = 0;
  int processes_left_out = 0;          ///< of other labels or other steps per timing, both sides
  std::optional<Estimate> base, cand;  ///< seconds per step; the interval is between processes, of one session
  std::optional<JudgedPoint> judged;
};

struct ComparedControl {
  std::string name, device, placement;
  double base_seconds = 0, cand_seconds = 0;
  JudgedControl judged;
};

struct ComparedNoise {
  ClassNoise given;
  JudgedNoise used;
  std::string source;  ///< profile | locked_clocks | default | virtual
};

struct Comparison {
  std::vector<Session> base, cand;
  CompareOptions options;
  std::vector<std::string> incomparable;  ///< why the results can't be compared at all; then `points` is empty
  std::vector<ComparedPoint> points;      ///< in the order of the base
  std::vector<ComparedControl> controls;
  std::vector<ComparedNoise> noise;
  bool drifted = false;
  std::vector<std::string> warnings, notes;

  int count(Change change) const;
  /// 1 regression or wrong result, 4 incomparable, 3 drift, missing points or nothing to conclude from, else 0.
  int exit_code() const;
  /// One word: regression, incomparable, inconclusive, improvement, equivalent.
  std::string verdict() const;
};

/// @throws InputError when a side has no point that the filters keep, or the noise profile is of another machine.
/// The results must outlive what is returned.
Comparison compare(std::vector<Session> base, std::vector<Session> cand, CompareOptions options);

}  // namespace dlbench
