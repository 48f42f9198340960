// Verification: the oracle decides before the clock does.
//
// A workload's step runs once from its initial state on the device and on `reference`; every verified buffer is
// compared. Tolerance: |got - expected| <= t * max(magnitude, |expected|), magnitude the root mean square of the
// expected values,
//   t = c * u                          for element-wise ops, and
//   t = c * (u + u_accumulate*sqrt(k)) for reductions of length k: inputs and the result are rounded to the precision
//   (u),
//                                      the running sum to its accumulate type, and only the latter grows with k.
// A training step is verified op by op with the same tolerances: verify_program.h.
// c is one constant per op class, derived in verify.cpp, none tuned by hand.
#pragma once

#include <string>
#include <vector>

#include "core/train/workload.h"

namespace dlbench {

double tolerance_constant(OpClass op_class);
/// t above: the allowed error relative to the magnitude.
double relative_tolerance(const OutputTolerance& t);

struct TensorComparison {
  bool ok = true;
  double error = 0;  ///< largest |got - expected| / max(magnitude, |expected|)
  double tolerance = 0;
  int64_t compared = 0, total = 0;
  int64_t worst_index = -1;
  double got = 0, expected = 0;
  bool proves_little = false;  ///< every expected value is zero
  std::string message;         ///< "" when ok: names buffer, index, got, expected, error and tolerance
};

/// `computed[i]` false: the reference left this element out (sampled). NaN matches NaN only, infinity its equal.
TensorComparison compare_tensors(const std::string& name, const HostTensor& got, const HostTensor& expected,
                                 const std::vector<bool>* computed, const OutputTolerance& tolerance);

struct Verification {
  bool ok = true;
  std::string how;                                ///< full | sampled | self | none (a device that computes nothing)
  double error = 0, tolerance = 0, fraction = 1;  ///< of the buffer with the largest error / tolerance
  bool proves_little = false;
  std::string message;
};

/// Allocates and initialises the workload's buffers on the device, runs one step and keeps the verified buffers (a
/// sample of each that is larger than 32 MiB); then does the same on `reference` and compares. Guard zones around every
/// buffer of the device must be intact and its inputs unchanged. Both sets of buffers never exist at the same time.
/// @throws what the device throws (OutOfMemoryError, UnsupportedError, DeviceLostError).
Verification verify(Workload& workload, Device& device, uint64_t seed, double reference_flop_cap);

}  // namespace dlbench
