// Activations and their gradients, element by element: ReLU and the tanh form of GELU.
//
// Why: `reference`, cpu and gpu apply the same formulas; only their loops differ.
// Promises: T is float or double. In float there is no branch and no call into libm, so that g++ vectorises loops over
// them; errors stay below 4 ulp for exp_float and sigmoid and 8 ulp of max(1, |value|) for GELU and its gradient
// (measured by tests/unit/math). In double they call exp of the C library: the oracle doesn't share the approximation
// it judges. NaN gives NaN, except where relu_backward only asks for y > 0. Infinite arguments give the limit.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"
#include "core/math/float_types.h"

namespace dlbench {

/// e^x in float for x <= 104 (NaN stays NaN): x = n*ln2 + r with |r| <= ln2/2, and e^x = 2^n * e^r.
/// Subtracting n*ln2 in two parts (Cody & Waite 1980, "Software Manual for the Elementary Functions"): the first has 10
/// significant bits, so n times it is exact. e^r is its Taylor polynomial of degree 7; the rest, |r|^8/8!, is below
/// 2^-27.
DLB_HD float exp_float(float x) {
  constexpr float kLog2E = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440054690583e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest whole number in the low bits
  constexpr uint32_t kRoundBits = 0x4B400000u;

  const float clamped = x < -104.0f ? -104.0f : x;  // e^-104 rounds to 0 in float
  const float shifted = clamped * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  // 2^n in two factors, each of them a normal number for every n from -150 to 150.
  const uint32_t whole = detail::float_bits(shifted) - kRoundBits + 256u;  // n + 256, positive
  const uint32_t half = whole >> 1;                                        // about n/2 + 128
  const float scale_1 = detail::bits_float((half - 1u) << 23);             // 2^(half - 128)
  const float scale_2 = detail::bits_float((whole - half - 1u) << 23);
  return p * scale_1 * scale_2;
}

DLB_HD float exp_of(float x) {
  return exp_float(x);
}
DLB_HD double exp_of(double x) {
  return ::exp(x);
}

/// The values of which sigmoid and its derivative are made: q = e^-|v|, p = 1/(1+q). Neither overflows.
template <typename T>
struct SigmoidParts {
  T q, p;
};

template <typename T>
DLB_HD SigmoidParts<T> sigmoid_parts(T v) {
  const T q = exp_of(v < T(0) ? v : -v);
  return {q, T(1) / (T(1) + q)};
}

/// 1 / (1 + e^-v)
template <typename T>
DLB_HD T sigmoid(T v) {
  const SigmoidParts<T> s = sigmoid_parts(v);
  return (v < T(0) ? s.q : T(1)) * s.p;
}

// GELU, tanh form (Hendrycks & Gimpel 2016, "Gaussian Error Linear Units", eq. 2):
//   gelu(x) = 0.5 x (1 + tanh(z)),  z = sqrt(2/pi) (x + 0.044715 x^3).
// Computed as x * sigmoid(2z), which is the same function (0.5 (1 + tanh z) = sigmoid(2z)) without the cancellation of
// 1 + tanh(z) for negative x.
inline constexpr double kGeluTwoSqrt2OverPi = 1.5957691216057308;  // 2*sqrt(2/pi)
inline constexpr double kGeluCubic = 0.044715;

namespace detail {
/// Beyond 32 sigmoid(2z) is 0 or 1 in double already; x^3 of a larger x could overflow and make 0 * infinity.
template <typename T>
DLB_HD T gelu_clamp(T x) {
  const T low = x < T(-32) ? T(-32) : x;
  return low > T(32) ? T(32) : low;
}
}  // namespace detail

template <typename T>
DLB_HD T gelu(T x) {
  const T c = detail::gelu_clamp(x);
  const T v = T(kGeluTwoSqrt2OverPi) * (c + T(kGeluCubic) * c * c * c);
  return (x < T(-32) ? T(-32) : x) * sigmoid(v);
}

/// d gelu / dx = s + x s (1-s) dv/dx with s = sigmoid(v), v = 2z; s (1-s) = q p^2.
template <typename T>
DLB_HD T gelu_derivative(T x) {
  const T c = detail::gelu_clamp(x);
  const T square = c * c;
  const T v = T(kGeluTwoSqrt2OverPi) * (c + T(kGeluCubic) * square * c);
  const T dv = T(kGeluTwoSqrt2OverPi) * (T(1) + T(3 * kGeluCubic) * square);
  const SigmoidParts<T> s = sigmoid_parts(v);
  const T value = (v < T(0) ? s.q : T(1)) * s.p;
  return value + c * dv * (s.q * s.p * s.p);
}

// The functors of the ops, named like them. Inputs and results are T; callers convert from and to the storage type.

/// y = max(x, 0), NaN stays NaN.
struct ReluForward {
  template <typename T>
  DLB_HD T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};

/// dx = y > 0 ? dy : 0
struct ReluBackward {
  template <typename T>
  DLB_HD T operator()(T dy, T y) const {
    return y > T(0) ? dy : T(0);
  }
};

struct GeluForward {
  template <typename T>
  DLB_HD T operator()(T x) const {
    return gelu(x);
  }
};

struct GeluBackward {
  template <typename T>
  DLB_HD T operator()(T dy, T x) const {
    return dy * gelu_derivative(x);
  }
};

}  // namespace dlbench
