// The oracle against numbers computed by hand, and its sampling of expensive ops.
#include "core/device/reference_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/error.h"
#include "core/device/reference_ops.h"
#include "core/math/rounding.h"

namespace dlbench {
namespace {

using ::testing::ElementsAre;

TEST(Reference, GemmByHand) {
  const auto device = make_reference_device({});
  const std::vector<float> a{1, 2, 3, 4, 5, 6};  // 2x3
  const std::vector<float> b{1, 0, 2, 1, 0, 3};  // 3x2
  std::vector<float> c(4, -1);
  const auto gemm = [&](const GemmSpec& spec) {
    device->ops().gemm(spec, a.data(), b.data(), nullptr, c.data(), nullptr);
  };
  gemm({.m = 2, .n = 2, .k = 3});
  EXPECT_THAT(c, ElementsAre(5, 11, 14, 23));
  // A read as [k,m]: op(A) = [[1,3,5],[2,4,6]], op(A) B = [[7,18],[10,22]]; twice that + 10 C.
  gemm({.trans_a = Transpose::yes, .m = 2, .n = 2, .k = 3, .alpha = 2, .beta = 10});
  EXPECT_THAT(c, ElementsAre(14 + 50, 36 + 110, 20 + 140, 44 + 230));
  // B read as [n,k]: op(B) = [[1,1],[0,0],[2,3]].
  gemm({.trans_b = Transpose::yes, .m = 2, .n = 2, .k = 3});
  EXPECT_THAT(c, ElementsAre(7, 10, 16, 22));
}

TEST(Reference, GemmEpiloguesLeadingDimensionsAndBatches) {
  const auto device = make_reference_device({});
  const std::vector<float> a{1, 2, 99, 3, 4, 99}, b{1, -1, 99, -2, 1, 99}, bias{0.5f, -10};
  std::vector<float> c(10, -7), pre(10, -7);
  const GemmSpec spec{.m = 2, .n = 2, .k = 2, .lda = 3, .ldb = 3, .ldc = 5, .epilogue = Epilogue::bias_relu};
  device->ops().gemm(spec, a.data(), b.data(), bias.data(), c.data(), pre.data());
  // AB = [[-3, 1], [-5, 1]]; with the bias [[-2.5, -9], [-4.5, -9]].
  EXPECT_THAT(pre, ElementsAre(-2.5f, -9, -7, -7, -7, -4.5f, -9, -7, -7, -7));
  EXPECT_THAT(c, ElementsAre(0, 0, -7, -7, -7, 0, 0, -7, -7, -7));
  EXPECT_THROW(device->ops().gemm(spec, a.data(), b.data(), nullptr, c.data(), nullptr), std::invalid_argument);

  const std::vector<float> vectors{1, 2, 3, 4}, shared{10, 1};
  std::vector<float> out(2);
  device->ops().gemm({.m = 1, .n = 1, .k = 2, .batch = 2, .stride_b = 0}, vectors.data(), shared.data(), nullptr,
                     out.data(), nullptr);
  EXPECT_THAT(out, ElementsAre(12, 34));
}

TEST(Reference, SumsInDouble) {
  const auto device = make_reference_device({});
  // In fp32 1e8 + 1 - 1e8 is 0; in double it is 1.
  const std::vector<float> x{1e8f, 1, -1e8f}, one{1, 1, 1};
  float sum = 0, dot = 0;
  device->ops().reduce({.extent = 3}, x.data(), &sum);
  device->ops().dot({.n = 3}, x.data(), one.data(), &dot);
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(dot, 1);
}

TEST(Rounding, OfDoublesIsDoneOnce) {
  // 1 + 2^-11 + 2^-40 lies above a tie of fp16; through float it would fall on the tie and go to the even 1.
  EXPECT_EQ(round_to<float16>(1 + 0x1p-11 + 0x1p-40).bits, 0x3C01);
  EXPECT_EQ(round_to<float16>(1 + 0x1p-11).bits, 0x3C00);
  EXPECT_EQ(round_to<float16>(1 + 0x1p-11 - 0x1p-40).bits, 0x3C00);
  EXPECT_EQ(round_to<bfloat16>(1 + 0x1p-8 + 0x1p-40).bits, 0x3F81);
  EXPECT_EQ(round_to<bfloat16>(-1e300).bits, 0xFF80);
  EXPECT_EQ(round_to<bfloat16>(-1e-300).bits, 0x8000);
  EXPECT_EQ(round_to<float16>(65519.999999).bits, 0x7BFF);
  EXPECT_TRUE(std::isnan(to_float(round_to<float16>(std::numeric_limits<double>::quiet_NaN()))));
}

TEST(Rounding, OfDoublesAgreesWithTheCompiler) {
  for (uint64_t i = 0; i < 300000; ++i) {
    const uint64_t mantissa = (i * 0x9E3779B97F4A7C15ull) >> 12, exponent = 1023 - 30 + i % 50;
    const uint64_t bits = exponent << 52 | mantissa;
    double value;
    std::memcpy(&value, &bits, sizeof value);
    const _Float16 expected = static_cast<_Float16>(value);  // rounds once
    uint16_t expected_bits;
    std::memcpy(&expected_bits, &expected, sizeof expected_bits);
    ASSERT_EQ(round_to<float16>(value).bits, expected_bits) << value;
  }
}

TEST(Reference, GemvReduceAndFriendsByHand) {
  const auto device = make_reference_device({});
  Ops& ops = device->ops();
  const std::vector<float> a{1, 2, 3, 4, 5, 6}, x{1, 10, 100};
  std::vector<float> y(3, 0);
  ops.gemv({.m = 2, .n = 3}, a.data(), x.data(), y.data());
  EXPECT_THAT(y, ElementsAre(321, 654, 0));
  ops.gemv({.trans = Transpose::yes, .m = 2, .n = 3}, a.data(), x.data(), y.data());
  EXPECT_THAT(y, ElementsAre(41, 52, 63));
  ops.reduce({.reduction = Reduction::max, .outer = 1, .extent = 2, .inner = 3}, a.data(), y.data());
  EXPECT_THAT(y, ElementsAre(4, 5, 6));
  ops.reduce({.outer = 2, .extent = 3, .inner = 1}, a.data(), y.data());
  EXPECT_THAT(y, ElementsAre(6, 15, 6));
  ops.reduce({.reduction = Reduction::max, .extent = 0}, a.data(), y.data());
  EXPECT_EQ(y[0], -std::numeric_limits<float>::infinity());
  ops.bias({.rows = 1, .columns = 3}, a.data(), x.data(), y.data());
  EXPECT_THAT(y, ElementsAre(2, 12, 103));
  ops.triad({.n = 3}, 2, a.data(), x.data(), y.data());
  EXPECT_THAT(y, ElementsAre(3, 22, 203));
  ops.axpy({.n = 3}, -1, x.data(), y.data());
  EXPECT_THAT(y, ElementsAre(2, 12, 103));
  double wide[3];
  ops.convert({.from = DType::f32, .to = DType::f64, .n = 3}, y.data(), wide);
  EXPECT_EQ(wide[2], 103);
  EXPECT_THROW(ops.convert({.from = DType::i32, .to = DType::f32, .n = 1}, y.data(), wide), UnsupportedError);
}

/// Which of 1000 rows a gemm computes under a limit.
std::set<int64_t> computed_rows(double max_flops) {
  constexpr int64_t kRows = 1000;
  const std::vector<float> a(kRows * 4, 1), b(4 * 4, 1);
  std::vector<float> c(kRows * 4, -1);
  const auto device = make_reference_device({.max_flops_per_op = max_flops});
  device->ops().gemm({.m = kRows, .n = 4, .k = 4}, a.data(), b.data(), nullptr, c.data(), nullptr);
  std::set<int64_t> rows;
  for (int64_t i = 0; i < kRows; ++i) {
    const bool computed = c[static_cast<size_t>(i * 4)] == 4;
    for (int64_t j = 0; j < 4; ++j) EXPECT_EQ(c[static_cast<size_t>(i * 4 + j)], computed ? 4 : -1);  // whole rows
    if (computed) rows.insert(i);
  }
  return rows;
}

TEST(Reference, SamplesRowsOfExpensiveOps) {
  const double per_row = 2 * 4 * 4;
  EXPECT_EQ(computed_rows(0).size(), 1000u);
  EXPECT_EQ(computed_rows(1000 * per_row).size(), 1000u);
  const std::set<int64_t> tenth = computed_rows(100 * per_row);
  EXPECT_NEAR(static_cast<double>(tenth.size()), 100, 4 * std::sqrt(90.0));
  EXPECT_EQ(tenth, computed_rows(100 * per_row));
  EXPECT_TRUE(tenth.contains(0) && tenth.contains(999));
  EXPECT_EQ(computed_rows(1e-9), (std::set<int64_t>{0, 999}));
  EXPECT_TRUE(RowSample(1, 1e9, 1).contains(0));
}

TEST(Reference, SamplesDotAndGemvToo) {
  const std::vector<float> a(400 * 3, 1), x(400 * 3, 1);
  const auto device = make_reference_device({.max_flops_per_op = 40 * 6});
  std::vector<float> y(400, -1), out(400, -1);
  device->ops().gemv({.m = 400, .n = 3}, a.data(), x.data(), y.data());
  device->ops().dot({.n = 3, .batch = 400}, a.data(), x.data(), out.data());
  for (const std::vector<float>* result : {&y, &out}) {
    const auto done = std::count(result->begin(), result->end(), 3.0f);
    EXPECT_NEAR(static_cast<double>(done), 40, 25);
    EXPECT_EQ(done + std::count(result->begin(), result->end(), -1.0f), 400);
    EXPECT_EQ(result->front(), 3);
    EXPECT_EQ(result->back(), 3);
  }
}

TEST(Reference, MemoryLimitIsTheMachines) {
  const auto device = make_reference_device({});
  EXPECT_GT(device->info().memory_bytes, 0);
  EXPECT_THROW(device->allocate(static_cast<size_t>(device->info().memory_bytes) + 1), OutOfMemoryError);
  void* p = device->allocate(1000);
  EXPECT_EQ(device->free_memory(), device->info().memory_bytes - 1000);
  device->deallocate(p);
  EXPECT_EQ(device->free_memory(), device->info().memory_bytes);
}

}  // namespace
}  // namespace dlbench
