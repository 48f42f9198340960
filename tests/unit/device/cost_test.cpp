// Declared work against numbers computed by hand.
#include "core/device/cost.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "core/device/ops.h"

namespace dlbench {
namespace {

void expect_cost(const Cost& cost, double flops, double read, double written) {
  EXPECT_EQ(cost.flops, flops);
  EXPECT_EQ(cost.bytes_read, read);
  EXPECT_EQ(cost.bytes_written, written);
  EXPECT_EQ(cost.bytes(), read + written);
}

TEST(Cost, Gemm) {
  // 2*2*3*4 FLOPs; A 2x4, B 4x3, C 2x3 in fp32.
  expect_cost(cost_of(GemmSpec{.m = 2, .n = 3, .k = 4}), 48, 4 * (8 + 12), 4 * 6);
  expect_cost(cost_of(GemmSpec{.precision = Precision::bf16, .m = 2, .n = 3, .k = 4}), 48, 2 * (8 + 12), 2 * 6);
  expect_cost(cost_of(GemmSpec{.precision = Precision::tf32, .m = 2, .n = 3, .k = 4}), 48, 4 * (8 + 12), 4 * 6);
  expect_cost(cost_of(GemmSpec{.precision = Precision::fp64, .m = 2, .n = 3, .k = 4}), 48, 8 * (8 + 12), 8 * 6);
  // beta reads C too.
  expect_cost(cost_of(GemmSpec{.m = 2, .n = 3, .k = 4, .beta = 1.0f}), 48, 4 * (8 + 12 + 6), 4 * 6);
  // Five matrices; then with one A for all of them.
  expect_cost(cost_of(GemmSpec{.m = 2, .n = 3, .k = 4, .batch = 5}), 240, 5 * 80, 5 * 24);
  expect_cost(cost_of(GemmSpec{.m = 2, .n = 3, .k = 4, .batch = 5, .stride_a = 0}), 240, 4 * 8 + 5 * 4 * 12, 5 * 24);
  // Leading dimensions don't change the compulsory bytes.
  expect_cost(cost_of(GemmSpec{.m = 2, .n = 3, .k = 4, .lda = 100, .ldb = 100, .ldc = 100}), 48, 80, 24);
  // Epilogues: + bias (6), + relu (6), + gelu (9 per element); the bias vector is read.
  expect_cost(cost_of(GemmSpec{.m = 2, .n = 3, .k = 4, .epilogue = Epilogue::bias}), 54, 80 + 12, 24);
  expect_cost(cost_of(GemmSpec{.m = 2, .n = 3, .k = 4, .epilogue = Epilogue::bias_relu}), 60, 80 + 12, 24);
  expect_cost(cost_of(GemmSpec{.m = 2, .n = 3, .k = 4, .epilogue = Epilogue::bias_gelu}), 54 + 54, 80 + 12, 24);
  expect_cost(cost_of(GemmSpec{.m = 0, .n = 3, .k = 4}), 0, 48, 0);
}

TEST(Cost, Gemv) {
  expect_cost(cost_of(GemvSpec{.m = 3, .n = 5}), 30, 4 * (15 + 5), 4 * 3);
  expect_cost(cost_of(GemvSpec{.trans = Transpose::yes, .m = 3, .n = 5}), 30, 4 * (15 + 3), 4 * 5);
  expect_cost(cost_of(GemvSpec{.m = 3, .n = 5, .batch = 4}), 120, 4 * 4 * 20, 4 * 4 * 3);
  expect_cost(cost_of(GemvSpec{.m = 3, .n = 5, .batch = 4, .shared_matrix = true}), 120, 4 * (15 + 4 * 5), 4 * 4 * 3);
}

TEST(Cost, VectorOps) {
  const VectorSpec s{.precision = Precision::fp16, .n = 10, .batch = 3};
  expect_cost(cost_of(Op::copy, s), 0, 60, 60);
  expect_cost(cost_of(Op::triad, s), 60, 120, 60);
  expect_cost(cost_of(Op::axpy, s), 60, 120, 60);
  expect_cost(cost_of(Op::relu_forward, s), 30, 60, 60);
  expect_cost(cost_of(Op::relu_backward, s), 30, 120, 60);
  expect_cost(cost_of(Op::gelu_forward, s), 270, 60, 60);
  expect_cost(cost_of(Op::gelu_backward, s), 540, 120, 60);
  expect_cost(cost_of(Op::dot, s), 60, 120, 3 * 4);  // results are fp32
  EXPECT_THROW(cost_of(Op::gemm, s), std::invalid_argument);
  EXPECT_THROW(cost_of(Op::bias, s), std::invalid_argument);
}

TEST(Cost, TheRest) {
  expect_cost(cost_of(Op::bias, MatrixSpec{.rows = 4, .columns = 5}), 20, 4 * (20 + 5), 80);
  EXPECT_THROW(cost_of(Op::copy, MatrixSpec{}), std::invalid_argument);
  expect_cost(cost_of(ReduceSpec{.outer = 2, .extent = 7, .inner = 3}), 2 * 3 * 6, 4 * 42, 4 * 6);
  expect_cost(cost_of(ReduceSpec{.outer = 2, .extent = 0, .inner = 3}), 0, 0, 4 * 6);
  expect_cost(cost_of(ConvertSpec{.from = DType::f32, .to = DType::bf16, .n = 9}), 0, 36, 18);
  expect_cost(cost_of(FillSpec{.type = DType::f64, .n = 9}), 0, 0, 72);
}

TEST(Cost, Adds) {
  Cost total{.flops = 1, .bytes_read = 2, .bytes_written = 3};
  total += {.flops = 10, .bytes_read = 20, .bytes_written = 30};
  expect_cost(total, 11, 22, 33);
}

}  // namespace
}  // namespace dlbench
