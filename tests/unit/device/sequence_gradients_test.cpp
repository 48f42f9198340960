// Gradients of layer norm, softmax, cross-entropy, attention, embedding and the element-wise activations on
// `reference`.
#include <fmt/format.h>

#include "core/device/ops.h"
#include "core/math/optimizer.h"
#include "finite_differences.h"

namespace dlbench {
namespace {

using namespace test;

void check_layer_norm(bool residual, bool with_dx_add) {
  SCOPED_TRACE(fmt::format("{}{}", residual ? "residual " : "", with_dx_add ? "dx_add" : ""));
  const LayerNormSpec s{.precision = Precision::fp64, .rows = 5, .columns = 7, .residual = residual};
  Ops& ops = reference_ops();
  const int64_t count = s.rows * s.columns;
  Values x = random_values(count, 1), added = random_values(count, 2);
  Values gamma = random_values(s.columns, 3), beta = random_values(s.columns, 4);
  Values sum(x.size()), mean(5), rstd(5);
  const Values dy = random_values(count, 5), dsum = random_values(count, 6);
  // The sum goes on into the next block: its own gradient, dsum, comes back as dx_add.
  const auto loss = [&] {
    Values y(x.size());
    ops.layer_norm_forward(s, x.data(), residual ? added.data() : nullptr, gamma.data(), beta.data(),
                           residual ? sum.data() : nullptr, y.data(), mean.data(), rstd.data());
    return weighted_sum(dy, y) + (with_dx_add ? weighted_sum(dsum, residual ? sum : x) : 0);
  };
  loss();
  Values dx(x.size(), NAN), dgamma(gamma.size(), NAN), dbeta(beta.size(), NAN);
  ops.layer_norm_backward(s, dy.data(), residual ? sum.data() : x.data(), gamma.data(), mean.data(), rstd.data(),
                          with_dx_add ? dsum.data() : nullptr, dx.data(), dgamma.data(), dbeta.data());
  expect_gradient("dx", dx, x, loss);
  if (residual) {
    expect_gradient("dresidual", dx, added, loss);
  }
  expect_gradient("dgamma", dgamma, gamma, loss);
  expect_gradient("dbeta", dbeta, beta, loss);
}

TEST(Gradients, LayerNorm) {
  for (const bool residual : {false, true}) {
    for (const bool with_dx_add : {false, true}) check_layer_norm(residual, with_dx_add);
  }
}

TEST(Gradients, Softmax) {
  const RowsSpec s{.precision = Precision::fp64, .rows = 4, .columns = 9};
  Values x = random_values(36, 1), y(36);
  const Values dy = random_values(36, 2);
  const auto loss = [&] {
    reference_ops().softmax_forward(s, x.data(), y.data());
    return weighted_sum(dy, y);
  };
  loss();
  Values dx(36, NAN);
  reference_ops().softmax_backward(s, dy.data(), y.data(), dx.data());
  expect_gradient("dx", dx, x, loss);
}

TEST(Gradients, CrossEntropy) {
  const RowsSpec s{.precision = Precision::fp64, .rows = 4, .columns = 6, .row_stride = 8};
  Values logits = random_values(32, 1), losses(4), dlogits(32, NAN);
  const std::vector<int32_t> targets{5, 0, -100, 3};  // one row is ignored
  TrainingState state;
  state.loss_scale = 8;
  reference_ops().cross_entropy(s, logits.data(), targets.data(), &state, losses.data(), dlogits.data());
  const auto loss = [&] {
    reference_ops().cross_entropy(s, logits.data(), targets.data(), nullptr, losses.data(), nullptr);
    return 8 * (losses[0] + losses[1] + losses[2] + losses[3]) / 4;
  };
  expect_gradient("dlogits", dlogits, logits, loss);
  EXPECT_EQ(losses[2], 0);
}

void check_attention(bool causal, int64_t length) {
  SCOPED_TRACE(fmt::format("T={}{}", length, causal ? " causal" : ""));
  const AttentionSpec s{
      .precision = Precision::fp64, .batch = 2, .length = length, .heads = 3, .head_dim = 4, .causal = causal};
  Ops& ops = reference_ops();
  const int64_t values = s.batch * s.length * s.heads * s.head_dim;
  Values qkv = random_values(3 * values, 1), y(static_cast<size_t>(values));
  Values log_sum_exp(static_cast<size_t>(s.batch * s.heads * s.length));
  const Values dy = random_values(values, 2);
  const auto loss = [&] {
    ops.attention_forward(s, qkv.data(), y.data(), log_sum_exp.data(), nullptr);
    return weighted_sum(dy, y);
  };
  loss();
  Values dqkv(qkv.size(), NAN);
  ops.attention_backward(s, qkv.data(), y.data(), dy.data(), log_sum_exp.data(), dqkv.data(), nullptr);
  expect_gradient("dqkv", dqkv, qkv, loss);
}

TEST(Gradients, Attention) {
  for (const bool causal : {true, false}) {
    check_attention(causal, 1);
    check_attention(causal, 5);
  }
}

void check_embedding(bool positions, bool accumulate) {
  SCOPED_TRACE(fmt::format("{}{}", positions ? "positions " : "", accumulate ? "accumulate" : ""));
  const EmbeddingSpec s{.precision = Precision::fp64,
                        .tokens = 6,
                        .length = 3,
                        .vocabulary = 5,
                        .channels = 4,
                        .positions = positions,
                        .accumulate = accumulate};
  const std::vector<int32_t> tokens{1, 4, 1, 1, 0, 4};  // some more than once, some never
  Values table = random_values(20, 1), position = random_values(12, 2);
  const Values dy = random_values(24, 3), tied = random_values(20, 4);
  const auto loss = [&] {
    Values y(24);
    reference_ops().embedding_forward(s, tokens.data(), table.data(), positions ? position.data() : nullptr, y.data());
    return weighted_sum(dy, y) + (accumulate ? weighted_sum(tied, table) : 0);
  };
  Values dtable = accumulate ? tied : Values(20, NAN), dposition(12, NAN);
  reference_ops().embedding_backward(s, tokens.data(), dy.data(), dtable.data(), positions ? dposition.data() : nullptr,
                                     nullptr);
  expect_gradient("dtoken", dtable, table, loss);
  if (positions) {
    expect_gradient("dposition", dposition, position, loss);
  }
}

TEST(Gradients, Embedding) {
  for (const bool positions : {false, true}) {
    for (const bool accumulate : {false, true}) check_embedding(positions, accumulate);
  }
}

TEST(Gradients, Activations) {
  const VectorSpec s{.precision = Precision::fp64, .n = 40};
  Values x = random_values(40, 1), y(40), dx(40, NAN);
  const Values dy = random_values(40, 2);
  const auto gelu = [&] {
    reference_ops().gelu_forward(s, x.data(), y.data());
    return weighted_sum(dy, y);
  };
  reference_ops().gelu_backward(s, dy.data(), x.data(), dx.data());
  expect_gradient("gelu", dx, x, gelu);
  const auto relu = [&] {
    reference_ops().relu_forward(s, x.data(), y.data());
    return weighted_sum(dy, y);
  };
  relu();
  reference_ops().relu_backward(s, dy.data(), y.data(), dx.data());
  expect_gradient("relu", dx, x, relu);
}

}  // namespace
}  // namespace dlbench
