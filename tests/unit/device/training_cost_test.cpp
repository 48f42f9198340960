// What the ops of training declare, against numbers computed by hand.
#include <gtest/gtest.h>

#include <stdexcept>

#include "core/device/cost.h"
#include "core/device/ops.h"

namespace dlbench {
namespace {

void expect_cost(const Cost& cost, double flops, double read, double written) {
  EXPECT_EQ(cost.flops, flops);
  EXPECT_EQ(cost.bytes_read, read);
  EXPECT_EQ(cost.bytes_written, written);
}

TEST(TrainingCost, Conv2d) {
  // The first layer of ResNet-50: 118,013,952 multiply-adds per image (He et al. 2016 count these), as 2 FLOPs each.
  Conv2dSpec s{.n = 1, .c = 3, .h = 224, .w = 224, .k = 64, .r = 7, .s = 7, .stride = 2, .pad = 3};
  expect_cost(cost_of(s, ConvPass::forward), 2 * 118013952.0, 4.0 * (3 * 224 * 224 + 64 * 3 * 49),
              4.0 * 64 * 112 * 112);
  expect_cost(cost_of(s, ConvPass::backward_data), 2 * 118013952.0, 4.0 * (64 * 112 * 112 + 64 * 3 * 49),
              4.0 * 3 * 224 * 224);
  expect_cost(cost_of(s, ConvPass::backward_weights), 2 * 118013952.0, 4.0 * (3 * 224 * 224 + 64 * 112 * 112),
              4.0 * 64 * 3 * 49);
  s = {.precision = Precision::bf16,
       .n = 2,
       .c = 3,
       .h = 4,
       .w = 5,
       .k = 6,
       .bias = true,
       .activation = Activation::relu};
  expect_cost(cost_of(s, ConvPass::forward), 2 * 2 * 6 * 20 * 3 + 2 * 240, 2 * (120 + 18 + 6), 2 * 240);
  expect_cost(cost_of(s, ConvPass::backward_weights), 2 * 2 * 6 * 20 * 3 + 240, 2 * (120 + 240), 2 * (18 + 6));
  s.n = 0;
  expect_cost(cost_of(s, ConvPass::backward_data), 0, 2 * 18, 0);
}

TEST(TrainingCost, Pool) {
  PoolSpec s{.precision = Precision::fp16, .n = 2, .c = 3, .h = 4, .w = 4, .r = 2, .s = 2, .stride = 2};
  expect_cost(cost_of(s, false), 24 * 3, 2 * 96, 2 * 24 + 24);
  expect_cost(cost_of(s, true), 24, 2 * 24 + 24, 2 * 96);
  s.pooling = Pooling::average;
  expect_cost(cost_of(s, false), 24 * 4, 2 * 96, 2 * 24);
  expect_cost(cost_of(s, true), 24 * 5, 2 * 24, 2 * 96);
}

TEST(TrainingCost, Normalizations) {
  BatchNormSpec b{.precision = Precision::bf16, .n = 2, .c = 3, .h = 4, .w = 5};
  expect_cost(cost_of(b, false), 6 * 120, 2 * (120 + 6) + 4 * 6, 2 * 120 + 4 * 12);
  expect_cost(cost_of(b, true), 9 * 120, 2 * (240 + 3) + 4 * 6, 2 * (120 + 6));
  b.residual = true;
  b.activation = Activation::relu;
  expect_cost(cost_of(b, false), 8 * 120, 2 * (240 + 6) + 4 * 6, 2 * 120 + 4 * 12);
  expect_cost(cost_of(b, true), 10 * 120, 2 * (360 + 3) + 4 * 6, 2 * (240 + 6));
  LayerNormSpec l{.precision = Precision::bf16, .rows = 10, .columns = 7};
  expect_cost(cost_of(l, false), 8 * 70, 2 * (70 + 14), 2 * 70 + 4 * 20);
  expect_cost(cost_of(l, true), 13 * 70, 2 * (140 + 7) + 4 * 20, 2 * (70 + 14));
  l.residual = true;
  expect_cost(cost_of(l, false), 9 * 70, 2 * (140 + 14), 2 * 140 + 4 * 20);
  expect_cost(cost_of(l, true), 14 * 70, 2 * (210 + 7) + 4 * 20, 2 * (70 + 14));
}

TEST(TrainingCost, SoftmaxAndCrossEntropy) {
  RowsSpec s{.precision = Precision::bf16, .rows = 3, .columns = 10};
  expect_cost(cost_of(Op::softmax_forward, s), 150, 60, 60);
  expect_cost(cost_of(Op::softmax_backward, s), 120, 120, 60);
  s.row_stride = 16;
  expect_cost(cost_of(Op::cross_entropy, s), 6 * 30 + 4 * 3, 60 + 12, 2 * 48 + 12);
  EXPECT_THROW(cost_of(Op::gemm, s), std::invalid_argument);
}

TEST(TrainingCost, Sequences) {
  EmbeddingSpec e{.tokens = 8, .length = 4, .vocabulary = 100, .channels = 5};
  expect_cost(cost_of(e, false), 40, 4 * (40 + 20) + 4 * 8, 4 * 40);
  expect_cost(cost_of(e, true), 80, 4 * 40 + 4 * 8, 4 * (500 + 20));
  e.positions = false;
  e.accumulate = true;
  e.vocabulary = 6;  // fewer rows than tokens
  expect_cost(cost_of(e, false), 0, 4 * 30 + 4 * 8, 4 * 40);
  expect_cost(cost_of(e, true), 40, 4 * (40 + 30) + 4 * 8, 4 * 30);
  AttentionSpec a{.precision = Precision::bf16, .batch = 2, .length = 4, .heads = 3, .head_dim = 5};
  expect_cost(cost_of(a, false), 4 * 6 * 10 * 5, 2 * 3 * 120, 2 * 120 + 4 * 24);
  expect_cost(cost_of(a, true), 10 * 6 * 10 * 5, 2 * 5 * 120 + 4 * 24, 2 * 3 * 120);
  a.causal = false;
  expect_cost(cost_of(a, false), 4 * 6 * 16 * 5, 2 * 3 * 120, 2 * 120 + 4 * 24);
}

TEST(TrainingCost, Updates) {
  expect_cost(cost_of(GradientSpec{.n = 10, .check = true}), 20, 40 + 64, 64);
  expect_cost(cost_of(GradientSpec{.n = 10}), 0, 64, 64);
  // fp32: gradient, weight and momentum are read, weight and momentum written.
  expect_cost(cost_of(SgdSpec{.n = 10, .decayed = 4}), 58, 120, 80);
  // bf16: gradient and parameter in 2 bytes, the rest in 4.
  expect_cost(cost_of(SgdSpec{.precision = Precision::bf16, .n = 10}), 50, 100, 100);
  expect_cost(cost_of(AdamWSpec{.n = 10, .decayed = 4}), 148, 160, 120);
  expect_cost(cost_of(AdamWSpec{.precision = Precision::bf16, .n = 10}), 140, 140, 140);
}

}  // namespace
}  // namespace dlbench
