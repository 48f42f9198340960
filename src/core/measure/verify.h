// Verification: the oracle decides before the clock does.
//
// A workload's step runs once from its initial state on the device and on `reference`; every verified buffer is compared.
// Tolerance: |got - expected| <= c * u * sqrt(k) * magnitude, u the unit roundoff of the precision, k the reduction
// length, magnitude the root mean square of the expected values; one c per op class, listed in verify.cpp, none tuned by hand.
#pragma once

#include <string>
#include <vector>

#include "core/train/workload.h"

namespace dlbench {

double tolerance_constant(OpClass op_class);
/// Allowed error relative to the magnitude: c * u * sqrt(k).
double relative_tolerance(const OutputTolerance& t);

struct TensorComparison {
  bool ok = true;
  double error = 0;            ///< largest |got - expected| / magnitude
  double tolerance = 0;
  int64_t compared = 0, total = 0;
  int64_t worst_index = -1;
  double got = 0, expected = 0;
  std::string message;         ///< "" when ok: names buffer, index, got, expected, error and tolerance
};

/// `computed[i]` false: the reference left this element out (sampled). NaN matches NaN only; all-zero expectations with
/// all-zero results are flagged as proving little.
TensorComparison compare_tensors(const std::string& name, const HostTensor& got, const HostTensor& expected,
                                 const std::vector<bool>* computed, const OutputTolerance& tolerance);

struct Verification {
  bool ok = true;
  std::string how;             ///< full | sampled | self
  double error = 0, tolerance = 0, fraction = 1;
  std::string message;
};

/// Allocates and initialises the workload's buffers on both devices, runs one step, compares. Guard zones around every
/// buffer of the device must be intact afterwards.
Verification verify(Workload& workload, Device& device, uint64_t seed, double reference_flop_cap);

}  // namespace dlbench
