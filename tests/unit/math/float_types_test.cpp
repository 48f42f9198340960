// The 16-bit types against the compiler's own _Float16 and against double arithmetic: every value, every rounding tie.
#include "core/math/float_types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace dlbench {
namespace {

/// An independent bf16 rounding: chooses the nearer of the two neighbours in double arithmetic, ties to the even one.
uint16_t bfloat16_by_search(float x) {
  const auto value = [](uint32_t bits16) { return static_cast<double>(detail::bits_float(bits16 << 16)); };
  const uint32_t sign = detail::float_bits(x) >> 31 << 15;
  const double magnitude = std::fabs(static_cast<double>(x));
  uint32_t low = 0, high = 0x7F80;  // the largest value <= magnitude lies in [low, high)
  if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | 0x7F80u);
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (value(middle) <= magnitude ? low : high) = middle;
  }
  // Infinity stands where the next finite number would be, 2^128, when deciding which is nearer (IEEE 754, 4.3.1).
  const double above = high == 0x7F80 ? std::ldexp(1.0, 128) : value(high);
  const double to_low = magnitude - value(low), to_high = above - magnitude;
  const uint32_t nearest = to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(sign | nearest);
}

TEST(Float16, EveryValueWidensAsTheCompilerSays) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    _Float16 expected;
    std::memcpy(&expected, &half, sizeof expected);
    const float got = to_float(float16{half});
    if (std::isnan(static_cast<float>(expected))) {
      ASSERT_TRUE(std::isnan(got)) << bits;
    } else {
      ASSERT_EQ(detail::float_bits(got), detail::float_bits(static_cast<float>(expected))) << bits;
    }
  }
}

TEST(Float16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float16 half{static_cast<uint16_t>(bits)};
    const uint16_t back = to_float16(to_float(half)).bits;
    if ((bits & 0x7FFFu) > 0x7C00u) {
      ASSERT_EQ(back, bits | 0x0200u);  // NaN: quiet, payload kept
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

uint16_t float16_by_compiler(float x) {
  const _Float16 half = static_cast<_Float16>(x);
  uint16_t bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

TEST(Float16, RoundsAsTheCompilerAroundEveryValueAndEveryTie) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const float low = to_float(float16{static_cast<uint16_t>(bits)});
    const float high = bits + 1 == 0x7C00 ? 65536.0f : to_float(float16{static_cast<uint16_t>(bits + 1)});
    const float tie = (low + high) / 2;  // exact: one more bit than a half has
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float around : {low, tie, high}) {
      for (const float x : {std::nextafterf(around, -infinity), around, std::nextafterf(around, infinity)}) {
        ASSERT_EQ(to_float16(x).bits, float16_by_compiler(x)) << x;
        ASSERT_EQ(to_float16(-x).bits, float16_by_compiler(-x)) << -x;
      }
    }
  }
}

TEST(Float16, RoundsAsTheCompilerForFloatsOfEveryExponent) {
  for (uint64_t u = 0; u <= 0xFFFFFFFFu; u += 3571) {  // a prime step: every exponent, every pattern of low bits
    const float x = detail::bits_float(static_cast<uint32_t>(u));
    if (std::isnan(x)) continue;
    ASSERT_EQ(to_float16(x).bits, float16_by_compiler(x)) << x;
  }
}

TEST(Float16, NamedValues) {
  EXPECT_EQ(to_float16(1.0f).bits, 0x3C00);
  EXPECT_EQ(to_float16(65504.0f).bits, 0x7BFF);
  EXPECT_EQ(to_float16(65519.996f).bits, 0x7BFF);
  EXPECT_EQ(to_float16(65520.0f).bits, 0x7C00);  // half way to 2^16: to even is to infinity
  EXPECT_EQ(to_float16(std::ldexp(1.0f, -24)).bits, 0x0001);
  EXPECT_EQ(to_float16(std::ldexp(1.0f, -25)).bits, 0x0000);  // half of the smallest: to even is to zero
  EXPECT_EQ(to_float16(std::ldexp(1.5f, -25)).bits, 0x0001);
  EXPECT_EQ(to_float16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_float16(std::numeric_limits<float>::denorm_min()).bits, 0x0000);
  EXPECT_TRUE(
      std::isnan(to_float(to_float16(detail::bits_float(0x7F800001u)))));  // signalling, no payload bit survives
}

TEST(Bfloat16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const uint16_t back = to_bfloat16(to_float(bfloat16{static_cast<uint16_t>(bits)})).bits;
    if ((bits & 0x7FFFu) > 0x7F80u) {
      ASSERT_EQ(back, bits | 0x0040u);
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

TEST(Bfloat16, RoundsToNearestAroundEveryValueAndEveryTie) {
  for (uint32_t bits = 0; bits < 0x7F80; ++bits) {
    for (const uint32_t low_bits : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const float x = detail::bits_float(bits << 16 | low_bits);
      ASSERT_EQ(to_bfloat16(x).bits, bfloat16_by_search(x)) << x;
      ASSERT_EQ(to_bfloat16(-x).bits, bfloat16_by_search(-x)) << -x;
    }
  }
}

TEST(Bfloat16, NamedValues) {
  EXPECT_EQ(to_bfloat16(1.0f).bits, 0x3F80);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7F80);  // nearer to 2^128 than to the largest finite
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::infinity()).bits, 0x7F80);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(detail::bits_float(0x7F800001u)))));  // payload in the low half only
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(detail::bits_float(0xFFFFFFFFu)))));
}

TEST(FromFloat, ByType) {
  EXPECT_EQ(from_float<float>(1.25f), 1.25f);
  EXPECT_EQ(from_float<double>(1.25f), 1.25);
  EXPECT_EQ(from_float<bfloat16>(1.25f).bits, 0x3FA0);
  EXPECT_EQ(from_float<float16>(1.25f).bits, 0x3D00);
  EXPECT_EQ(to_float(1.25), 1.25f);
}

}  // namespace
}  // namespace dlbench
