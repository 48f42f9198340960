// The noise of the meta device: known variance components, from counter-based random numbers.
//
// Why: statistics are tested by whether they recover what was put in here.
// Promises: equal seeds and equal calls give equal values; the process effect of an op depends on (seed, op) only, not
// on what ran before it.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/device/meta_device.h"

namespace dlbench {

/// A value with mean 0 and variance 1 of the given shape; `stream` and `index` name it.
double noise_value(NoiseShape shape, uint64_t seed, uint64_t stream, uint64_t index);

class MetaNoise {
 public:
  explicit MetaNoise(const MetaOptions& options) : options_(options) {}

  /// A new timing begins.
  void next_timing() { ++timing_; }
  /// Whether `factor` looks at the name of the op.
  bool needs_names() const { return options_.process_sd > 0 || options_.shape == NoiseShape::heteroscedastic; }
  /// What the duration of `op` (its name with shapes) is multiplied by at virtual time `now_seconds`.
  double factor(std::string_view op, double now_seconds);

 private:
  MetaOptions options_;
  uint64_t timing_ = 0, calls_ = 0;
};

}  // namespace dlbench
