// Reading an element as double, and rounding a double to an element type once.
//
// Why: the oracle computes in double whatever the storage type; going through float would round a 16-bit result twice.
// Promises: round_to rounds to nearest, ties to even, for every element type; addresses need not be aligned.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/math/float_types.h"

namespace dlbench {

namespace detail {
/// The float from which rounding to a shorter type gives the same as rounding `value` itself: truncated, with the last
/// bit set when anything was cut off (round to odd; Boldo & Melquiond 2008, "Emulation of FMA and correctly rounded
/// sums").
inline float round_to_odd_float(double value) {
  float f = static_cast<float>(value);
  if (static_cast<double>(f) == value || std::isnan(f)) return f;
  if (std::isinf(f)) return std::copysign(std::numeric_limits<float>::max(), f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(value)) f = std::nextafterf(f, 0.0f);
  return bits_float(float_bits(f) | 1u);
}
}  // namespace detail

template <typename T>
T round_to(double value);
template <>
inline double round_to<double>(double value) {
  return value;
}
template <>
inline float round_to<float>(double value) {
  return static_cast<float>(value);
}
template <>
inline bfloat16 round_to<bfloat16>(double value) {
  return to_bfloat16(detail::round_to_odd_float(value));
}
template <>
inline float16 round_to<float16>(double value) {
  return to_float16(detail::round_to_odd_float(value));
}

/// Element `i` of an array of T, widened.
template <typename T>
double load_element(const void* array, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(array) + i * static_cast<int64_t>(sizeof(T)), sizeof value);
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <typename T>
void store_element(void* array, int64_t i, double value) {
  const T rounded = round_to<T>(value);
  std::memcpy(static_cast<std::byte*>(array) + i * static_cast<int64_t>(sizeof(T)), &rounded, sizeof rounded);
}

}  // namespace dlbench
