// Precisions: names, parts, and a unit roundoff that is that of the narrowest part.
#include "core/tensor/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"

namespace dlbench {
namespace {

TEST(Precision, NamesReadBack) {
  for (const Precision p : all_precisions()) EXPECT_EQ(parse_precision(to_string(p)), p);
  EXPECT_EQ(all_precisions().size(), 5u);
  try {
    parse_precision("fp23");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(),
                ::testing::AllOf(::testing::HasSubstr("fp23"), ::testing::HasSubstr("fp64, fp32, tf32, bf16, fp16")));
  }
  EXPECT_THROW(parse_precision(""), UsageError);
  EXPECT_THROW(parse_precision("FP32"), UsageError);
}

TEST(Precision, Parts) {
  EXPECT_EQ(storage_of(Precision::tf32), DType::f32);
  EXPECT_EQ(info(Precision::tf32).compute, ComputeType::tf32);
  EXPECT_TRUE(info(Precision::tf32).matrix_only);
  EXPECT_EQ(storage_of(Precision::bf16), DType::bf16);
  EXPECT_EQ(accumulate_of(Precision::bf16), DType::f32);
  EXPECT_EQ(accumulate_of(Precision::fp64), DType::f64);
}

/// Bits of the significand, the hidden one included.
int significand_bits(ComputeType type) {
  switch (type) {
    case ComputeType::f64:
      return 53;
    case ComputeType::f32:
      return 24;
    case ComputeType::tf32:
      return 11;
    case ComputeType::bf16:
      return 8;
    case ComputeType::f16:
      return 11;
  }
  return 0;
}

TEST(Precision, UnitRoundoffIsHalfTheDistanceFromOneToTheNext) {
  for (const Precision p : all_precisions()) {
    EXPECT_EQ(info(p).unit_roundoff, std::ldexp(1.0, -significand_bits(info(p).compute))) << to_string(p);
  }
}

TEST(DType, Sizes) {
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::f16), 2u);
  EXPECT_EQ(size_of(DType::i32), 4u);
  EXPECT_EQ(size_of(DType::u8), 1u);
  EXPECT_EQ(to_string(DType::bf16), "bf16");
}

}  // namespace
}  // namespace dlbench
