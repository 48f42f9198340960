// 16-bit float types, bit for bit the same on host and device.
//
// Why: nvcc's __half and __nv_bfloat16 exist only with the CUDA toolkit; src/core builds without it. These hold the
// bits and convert; the layouts are equal, so device code may reinterpret a pointer to the vendor's type. Promises:
// conversion from float rounds to nearest, ties to even; overflow gives infinity; NaN stays NaN (quiet).
#pragma once

#include <cstdint>
#include <cstring>

#include "core/base/host_device.h"

namespace dlbench {

namespace detail {
DLB_HD uint32_t float_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}
DLB_HD float bits_float(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}
}  // namespace detail

/// 8 exponent bits, 7 fraction bits.
struct bfloat16 {
  uint16_t bits;
};

/// IEEE 754 binary16: 5 exponent bits, 10 fraction bits.
struct float16 {
  uint16_t bits;
};

DLB_HD float to_float(bfloat16 x) {
  return detail::bits_float(static_cast<uint32_t>(x.bits) << 16);
}

DLB_HD bfloat16 to_bfloat16(float x) {
  uint32_t u = detail::float_bits(x);
  if ((u & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((u >> 16) | 0x0040u)};
  u += 0x7FFFu + ((u >> 16) & 1u);
  return {static_cast<uint16_t>(u >> 16)};
}

DLB_HD float to_float(float16 h) {
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000u) << 16;
  const uint32_t magnitude = h.bits & 0x7FFFu;
  if (magnitude >= 0x7C00u) return detail::bits_float(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  if (magnitude >= 0x0400u) return detail::bits_float(sign | ((magnitude << 13) + 0x38000000u));
  // Subnormal: the fraction times 2^-24, exact in float.
  const float value = static_cast<float>(magnitude) * 5.9604644775390625e-08f;
  return sign ? -value : value;
}

DLB_HD float16 to_float16(float x) {
  const uint32_t u = detail::float_bits(x);
  const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  const uint32_t magnitude = u & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x1FFu))};
  if (magnitude >= 0x477FF000u) return {static_cast<uint16_t>(sign | 0x7C00u)};  // rounds to 2^16 or more
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal; adding 2^-1 aligns the ulp of the sum with 2^-24
    const float aligned = detail::bits_float(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (detail::float_bits(aligned) - 0x3F000000u))};
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

/// Conversions by type, for code that is generic in the element type.
DLB_HD float to_float(float x) {
  return x;
}
DLB_HD float to_float(double x) {
  return static_cast<float>(x);
}

template <typename T>
DLB_HD T from_float(float x);
template <>
DLB_HD float from_float<float>(float x) {
  return x;
}
template <>
DLB_HD double from_float<double>(float x) {
  return static_cast<double>(x);
}
template <>
DLB_HD bfloat16 from_float<bfloat16>(float x) {
  return to_bfloat16(x);
}
template <>
DLB_HD float16 from_float<float16>(float x) {
  return to_float16(x);
}

}  // namespace dlbench
