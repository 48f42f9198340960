// The meta device: computes nothing, counts the work of every op, and advances a virtual clock.
//
// Why: plan, run, resume, report and compare are tested on it exactly and in milliseconds; the list of ops that a
// workload needs (for projection) comes from it.
// Promises: deterministic for a given MetaOptions. Without noise, exactly:
//     op            launch_seconds + max(flops / flop_per_s, bytes / bytes_per_s)   (cost.h; noop: launch_seconds
//     alone) copy_on_device, set_bytes   launch_seconds + bytes moved / bytes_per_s        (a copy reads and writes: 2
//     * size) copy_to_*     launch_seconds + size / link_bytes_per_s graph replay  launch_seconds + the sum of its ops
//     without their launch_seconds
// on `threads` of the profile's threads both rates are multiplied by threads / profile threads, never above 1. A
// duration is then multiplied by (1 + drift_per_second * now) * process effect * noise * spike. Memory is accounted,
// not allocated: device addresses can't be dereferenced, and reading them back gives zeros. Its results are marked by
// device kind "meta" and never shown as a measurement of hardware.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"

namespace dlbench {

/// One side's virtual hardware.
struct MetaProfile {
  double flop_per_s = 1e11;
  double bytes_per_s = 2e10;
  double launch_seconds = 1e-6;
  int64_t memory_bytes = int64_t{16} << 30;
  double link_bytes_per_s = 2e10;  ///< between host and device
  int threads = 2;                 ///< that reach the rates above (cpu)
  int64_t last_level_cache_bytes = int64_t{32} << 20;
};

/// Distribution of the noise, scaled to unit variance. t3: Student's t with 3 degrees of freedom (heavy tails);
/// bimodal: near +1 or near -1; heteroscedastic: normal, with a standard deviation that differs from op to op, 1/4 to 4
/// times the given one.
enum class NoiseShape : uint8_t { normal, t3, bimodal, heteroscedastic };

struct MetaOptions {
  MetaProfile cpu{.flop_per_s = 1e11, .bytes_per_s = 2e10, .launch_seconds = 1e-6, .memory_bytes = int64_t{16} << 30};
  MetaProfile gpu{.flop_per_s = 1e13,
                  .bytes_per_s = 1e12,
                  .launch_seconds = 8e-6,
                  .memory_bytes = int64_t{24} << 30,
                  .link_bytes_per_s = 2.5e10};
  uint64_t seed = 0;  ///< of the noise; processes use seed + process number
  NoiseShape shape = NoiseShape::normal;
  double noise_sd = 0;           ///< of ln(time), per timing: drawn anew at every synchronize
  double process_sd = 0;         ///< of ln(time), per seed and op with its shapes: shared by all timings of a point
  double drift_per_second = 0;   ///< relative, per virtual second
  double spike_probability = 0;  ///< an op (or graph) takes ten times as long
  int64_t fail_after_ops = -1;   ///< planted faults for tests of the harness: throw DeviceLostError after so many ops
  int64_t crash_after_ops = -1;  ///< abort() the process
  double hang_seconds = 0;       ///< really sleep in synchronize
};

/// What one op call declared.
struct OpRecord {
  Op op;
  Precision precision;
  std::string spec;  ///< readable: "m=8 n=1024 k=784 NN bias_relu"
  Cost cost;
};

class MetaDevice : public Device {
 public:
  /// Ops recorded since the last call; empties the list. Recording is off until `record_ops(true)`.
  virtual void record_ops(bool on) = 0;
  virtual std::vector<OpRecord> take_records() = 0;
  virtual Cost total_cost() const = 0;
};

/// @param threads of the cpu side; 0: those of the profile.
std::unique_ptr<MetaDevice> make_meta_device(Side side, const MetaOptions& options, int threads = 0);

}  // namespace dlbench
