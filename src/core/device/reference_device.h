// The reference device: naive loops, sums in double, one thread. The oracle for both sides.
//
// Why: an optimised implementation can't be its own oracle, and the CPU side isn't one for the GPU side.
// Promises: inputs are read in their storage type, every intermediate is double, the result is rounded once. Nothing is
// vectorised by hand, nothing is blocked; slow on purpose.
#pragma once

#include <memory>

#include "core/device/device.h"

namespace dlbench {

struct ReferenceOptions {
  /// A gemm, gemv, dot, convolution or attention that costs more computes a deterministic sample of its output rows
  /// (convolution: image rows or filter planes; attention: heads; always the first and the last) and leaves the rest of
  /// the output as it was. Verification fills outputs with a marker first and compares what was computed. 0: no limit.
  double max_flops_per_op = 0;
};

std::unique_ptr<Device> make_reference_device(const ReferenceOptions& options);

}  // namespace dlbench
