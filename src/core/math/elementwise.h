// Functors of the arithmetic element-wise ops; activations have their own header.
//
// Why: one source for `reference` (T = double), cpu and gpu (T = float, and double for fp64).
// Promises: the scalar factor is the float of ops.h, widened to T.
#pragma once

#include "core/base/host_device.h"

namespace dlbench {

/// z = x + a*y
template <typename T>
struct Triad {
  T a;
  DLB_HD T operator()(T x, T y) const { return x + a * y; }
};

/// y = a*x + y
template <typename T>
struct Axpy {
  T a;
  DLB_HD T operator()(T x, T y) const { return a * x + y; }
};

/// y = x + bias
struct AddBias {
  template <typename T>
  DLB_HD T operator()(T x, T bias) const {
    return x + bias;
  }
};

/// max that gives NaN when either argument is NaN.
struct MaxOfTwo {
  template <typename T>
  DLB_HD T operator()(T a, T b) const {
    return a != a ? a : (a > b ? a : b);
  }
};

}  // namespace dlbench
