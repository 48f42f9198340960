// Runs of elements, widened to double and rounded back, for the reference's loops over rows and images.
//
// Why: the loops of the training ops are written once in double; the element type matters only where memory is read or
// written, and one switch per run of elements keeps the layouts (a step between elements) out of the arithmetic.
// Promises: a value is rounded once, when it is stored; arrays of integers throw UnsupportedError.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/precision.h"

namespace dlbench {

/// A run of `count` elements of an array, `step` elements apart, beginning at element `first`.
struct Run {
  int64_t first = 0, count = 0, step = 1;
};

std::vector<double> load_run(DType type, const void* array, const Run& run);
/// Into `out`, whose size is run.count.
void load_run(DType type, const void* array, const Run& run, double* out);
void store_run(DType type, void* array, const Run& run, const double* values);
inline void store_run(DType type, void* array, const Run& run, const std::vector<double>& values) {
  store_run(type, array, run, values.data());
}

}  // namespace dlbench
