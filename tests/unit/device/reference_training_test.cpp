// The training ops of the oracle against numbers computed by hand, in fp64 where exactness helps; and their sampling.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/device/ops.h"
#include "core/device/reference_device.h"
#include "core/math/optimizer.h"
#include "core/math/rounding.h"

namespace dlbench {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using Values = std::vector<double>;
constexpr Precision kDouble = Precision::fp64;

MATCHER(IsNear, "") {
  return std::fabs(std::get<0>(arg) - std::get<1>(arg)) <= 1e-12 * std::max(1.0, std::fabs(std::get<1>(arg)));
}

class ReferenceTraining : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = make_reference_device({});
  Ops& ops_ = device_->ops();
};

TEST_F(ReferenceTraining, Conv2dByHand) {
  // A 3x3 image, a 2x2 filter that takes the difference along the diagonal: cross-correlation, nothing is flipped.
  const Values x{1, 2, 4, 7, 11, 16, 22, 29, 37}, w{1, 0, 0, -1}, bias{10};
  Values y(4);
  Conv2dSpec s{.precision = kDouble, .n = 1, .c = 1, .h = 3, .w = 3, .k = 1, .r = 2, .s = 2, .bias = true};
  ops_.conv2d_forward(s, x.data(), w.data(), bias.data(), y.data(), nullptr);
  EXPECT_THAT(y, ElementsAre(10 + 1 - 11, 10 + 2 - 16, 10 + 7 - 29, 10 + 11 - 37));
  s.activation = Activation::relu;
  ops_.conv2d_forward(s, x.data(), w.data(), bias.data(), y.data(), nullptr);
  EXPECT_THAT(y, Each(0));
  // Stride 2 and a border of 1: windows begin at -1 and 1.
  s = {.precision = kDouble, .n = 1, .c = 1, .h = 3, .w = 3, .k = 1, .r = 2, .s = 2, .stride = 2, .pad = 1};
  ops_.conv2d_forward(s, x.data(), w.data(), nullptr, y.data(), nullptr);
  EXPECT_THAT(y, ElementsAre(-1, -4, -22, 11 - 37));
}

TEST_F(ReferenceTraining, Conv2dLayouts) {
  // Two channels that differ by a factor of ten, 1x2 pixels; filters 1x1: k0 = c0 + c1, k1 = c0 - c1.
  Values y(4);
  Conv2dSpec s{.precision = kDouble, .n = 1, .c = 2, .h = 1, .w = 2, .k = 2};
  const Values filters{1, 1, 1, -1};
  ops_.conv2d_forward(s, Values{1, 2, 10, 20}.data(), filters.data(), nullptr, y.data(), nullptr);
  EXPECT_THAT(y, ElementsAre(11, 22, -9, -18));
  s.layout = ImageLayout::nhwc;
  ops_.conv2d_forward(s, Values{1, 10, 2, 20}.data(), filters.data(), nullptr, y.data(), nullptr);
  EXPECT_THAT(y, ElementsAre(11, -9, 22, -18));
  // Filters [K,R,S,C]: one filter 1x2 over two channels.
  s = {.precision = kDouble, .layout = ImageLayout::nhwc, .n = 1, .c = 2, .h = 1, .w = 2, .k = 1, .r = 1, .s = 2};
  ops_.conv2d_forward(s, Values{1, 10, 2, 20}.data(), Values{1, 2, 3, 4}.data(), nullptr, y.data(), nullptr);
  EXPECT_EQ(y[0], 1 + 20 + 6 + 80);
}

TEST_F(ReferenceTraining, PoolByHand) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Values y(4), dx(9);
  std::vector<uint8_t> index(4, 99);
  const Values x{1, 5, 5, 2, 5, 0, -1, -2, -3};
  PoolSpec s{.precision = kDouble, .n = 1, .c = 1, .h = 3, .w = 3, .r = 2, .s = 2};
  ops_.pool_forward(s, x.data(), y.data(), index.data());
  EXPECT_THAT(y, ElementsAre(5, 5, 5, 5));
  EXPECT_THAT(index, ElementsAre(1, 0, 1, 0));  // the first of equals in row order
  ops_.pool_backward(s, Values{1, 10, 100, 1000}.data(), index.data(), dx.data());
  EXPECT_THAT(dx, ElementsAre(0, 11, 0, 0, 1100, 0, 0, 0, 0));
  // Padding never wins, not even over negative values.
  s = {.precision = kDouble, .n = 1, .c = 1, .h = 3, .w = 3, .r = 2, .s = 2, .stride = 3, .pad = 1};
  ops_.pool_forward(s, Values(9, -7.0).data(), y.data(), index.data());
  EXPECT_EQ(y[0], -7);
  EXPECT_EQ(index[0], 3);
  // NaN wins wherever it is; the first one's place counts.
  s = {.precision = kDouble, .n = 1, .c = 1, .h = 1, .w = 3, .r = 1, .s = 3};
  ops_.pool_forward(s, Values{9, nan, nan}.data(), y.data(), index.data());
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(index[0], 1);
  // An average counts the border as zeros.
  s = {.precision = kDouble, .pooling = Pooling::average, .n = 1, .c = 1, .h = 2, .w = 2, .r = 2, .s = 2, .pad = 1};
  Values nine(9);
  ops_.pool_forward(s, Values{4, 8, 12, 16}.data(), nine.data(), nullptr);
  EXPECT_THAT(nine, ElementsAre(1, 3, 2, 4, 10, 6, 3, 7, 4));
}

TEST_F(ReferenceTraining, BatchNormByHand) {
  // Channel values 1, 3: mean 2, variance 1 (biased), 2 (unbiased).
  BatchNormSpec s{.precision = kDouble, .n = 2, .c = 1, .h = 1, .w = 1, .epsilon = 0, .momentum = 0.25f};
  Values y(2), running_mean{4}, running_variance{8}, mean(1), rstd(1);
  ops_.batch_norm_forward(s, Values{1, 3}.data(), Values{10}.data(), Values{-1}.data(), nullptr, y.data(),
                          running_mean.data(), running_variance.data(), mean.data(), rstd.data());
  EXPECT_THAT(y, ElementsAre(-11, 9));
  EXPECT_THAT(running_mean, ElementsAre(0.75 * 4 + 0.25 * 2));
  EXPECT_THAT(running_variance, ElementsAre(0.75 * 8 + 0.25 * 2));
  EXPECT_THAT(mean, ElementsAre(2));
  EXPECT_THAT(rstd, ElementsAre(1));
  s.residual = true;
  s.activation = Activation::relu;
  ops_.batch_norm_forward(s, Values{1, 3}.data(), Values{10}.data(), Values{-1}.data(), Values{12, -20}.data(),
                          y.data(), running_mean.data(), running_variance.data(), mean.data(), rstd.data());
  EXPECT_THAT(y, ElementsAre(1, 0));
}

TEST_F(ReferenceTraining, LayerNormByHand) {
  const LayerNormSpec s{.precision = kDouble, .rows = 2, .columns = 2, .epsilon = 0, .residual = true};
  Values sum(4), y(4), mean(2), rstd(2);
  ops_.layer_norm_forward(s, Values{1, 2, 0, 0}.data(), Values{0, 1, 8, 4}.data(), Values{1, 2}.data(),
                          Values{0, 5}.data(), sum.data(), y.data(), mean.data(), rstd.data());
  EXPECT_THAT(sum, ElementsAre(1, 3, 8, 4));
  EXPECT_THAT(y, ElementsAre(-1, 7, 1, 3));
  EXPECT_THAT(mean, ElementsAre(2, 6));
  EXPECT_THAT(rstd, ElementsAre(1, 0.5));
}

TEST_F(ReferenceTraining, SoftmaxAndCrossEntropyByHand) {
  const Values logits{std::log(1.0), std::log(3.0), 1000, 1000};
  const RowsSpec s{.precision = kDouble, .rows = 2, .columns = 2};
  Values y(4), losses(2), dlogits(4);
  ops_.softmax_forward(s, logits.data(), y.data());
  EXPECT_THAT(y, Pointwise(IsNear(), Values{0.25, 0.75, 0.5, 0.5}));
  const std::vector<int32_t> targets{1, 2};  // 2 is no class
  ops_.cross_entropy(s, logits.data(), targets.data(), nullptr, losses.data(), dlogits.data());
  EXPECT_THAT(losses, Pointwise(IsNear(), Values{std::log(4.0 / 3.0), 0}));
  EXPECT_THAT(dlogits, Pointwise(IsNear(), Values{0.125, -0.125, 0, 0}));
  // Loss in the statistics type, logits in bf16, a padded row: the padding's gradient is 0.
  std::vector<uint16_t> narrow{0x3F80, 0x3F80, 0x7FC0}, gradient(3, 0xFFFF);  // 1, 1, NaN
  float loss = 0;
  const int32_t zero = 0;
  ops_.cross_entropy({.precision = Precision::bf16, .rows = 1, .columns = 2, .row_stride = 3}, narrow.data(), &zero,
                     nullptr, &loss, gradient.data());
  EXPECT_EQ(loss, static_cast<float>(std::log(2.0)));
  EXPECT_THAT(gradient, ElementsAre(0xBF00, 0x3F00, 0));
}

TEST_F(ReferenceTraining, AttentionByHand) {
  // Two positions, one head of one value. Causal: the first sees itself only; scores are q*k.
  const Values qkv{1, std::log(2.0), 10, /**/ 1, std::log(6.0), 20};
  Values y(2), log_sum_exp(2);
  AttentionSpec s{.precision = kDouble, .batch = 1, .length = 2, .heads = 1, .head_dim = 1};
  ops_.attention_forward(s, qkv.data(), y.data(), log_sum_exp.data(), nullptr);
  EXPECT_THAT(y, Pointwise(IsNear(), Values{10, (2 * 10 + 6 * 20) / 8.0}));
  EXPECT_THAT(log_sum_exp, Pointwise(IsNear(), Values{std::log(2.0), std::log(8.0)}));
  s.causal = false;
  ops_.attention_forward(s, qkv.data(), y.data(), log_sum_exp.data(), nullptr);
  EXPECT_THAT(y, Pointwise(IsNear(), Values{17.5, 17.5}));
  // Packing: [B, T, 3, NH, HD]. With q = 0 each head averages its own v. Scale: 1/sqrt(4) of a score of 4 is 2.
  s = {.precision = kDouble, .batch = 1, .length = 2, .heads = 2, .head_dim = 1, .causal = false};
  ops_.attention_forward(s, Values{0, 0, 5, 6, 1, 10, 0, 0, 7, 8, 3, 30}.data(), (y = Values(4)).data(),
                         (log_sum_exp = Values(4)).data(), nullptr);
  EXPECT_THAT(y, Pointwise(IsNear(), Values{2, 20, 2, 20}));
  s = {.precision = kDouble, .batch = 1, .length = 1, .heads = 1, .head_dim = 4};
  ops_.attention_forward(s, Values(12, 1.0).data(), y.data(), log_sum_exp.data(), nullptr);
  EXPECT_NEAR(log_sum_exp[0], 2, 1e-15);
}

TEST_F(ReferenceTraining, EmbeddingByHand) {
  const EmbeddingSpec s{.precision = kDouble, .tokens = 4, .length = 2, .vocabulary = 3, .channels = 1};
  const std::vector<int32_t> tokens{2, 0, 2, 2}, unknown{0, 3, 0, 0};
  Values y(4), dtoken(3), dposition(3, -1);
  ops_.embedding_forward(s, tokens.data(), Values{1, 2, 3}.data(), Values{10, 20, 30}.data(), y.data());
  EXPECT_THAT(y, ElementsAre(13, 21, 13, 23));
  ops_.embedding_backward(s, tokens.data(), Values{1, 10, 100, 1000}.data(), dtoken.data(), dposition.data(), nullptr);
  EXPECT_THAT(dtoken, ElementsAre(10, 0, 1101));
  EXPECT_THAT(dposition, ElementsAre(101, 1010, -1));  // rows beyond T aren't touched
  EXPECT_THROW(ops_.embedding_forward(s, unknown.data(), Values{1, 2, 3}.data(), Values{10, 20}.data(), y.data()),
               std::invalid_argument);
}

TEST_F(ReferenceTraining, NormClippingAndLossScale) {
  const std::vector<float> gradient{3, 4};
  TrainingState state;
  state.loss_scale = 2;
  // Scaled norm 5, unscaled 2.5; clipped to 1: factor 1/2 * 1/(2.5 + 1e-6).
  ops_.prepare_update({.n = 2, .check = true, .max_norm = 1}, gradient.data(), &state, nullptr);
  EXPECT_EQ(state.gradient_norm, 2.5f);
  EXPECT_FLOAT_EQ(state.gradient_factor, 0.5f / (2.5f + 1e-6f));
  EXPECT_EQ(state.step, 1);
  ops_.prepare_update({.n = 2, .check = true, .max_norm = 3}, gradient.data(), &state, nullptr);
  EXPECT_EQ(state.gradient_factor, 0.5f);  // short enough
  ops_.prepare_update({.n = 2}, gradient.data(), &state, nullptr);
  EXPECT_EQ(state.gradient_factor, 0.5f);
  EXPECT_EQ(state.step, 3);
  // Overflow: skipped, halved; then doubled after two good steps.
  const GradientSpec dynamic{.n = 2, .check = true, .dynamic_scaling = true, .growth_interval = 2};
  const std::vector<float> overflow{1, INFINITY};
  ops_.prepare_update(dynamic, overflow.data(), &state, nullptr);
  EXPECT_EQ(state.skip, 1);
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.loss_scale, 1);
  EXPECT_EQ(state.skipped, 1);
  ops_.prepare_update(dynamic, gradient.data(), &state, nullptr);
  EXPECT_EQ(state.skip, 0);
  EXPECT_EQ(state.loss_scale, 1);
  ops_.prepare_update(dynamic, gradient.data(), &state, nullptr);
  EXPECT_EQ(state.loss_scale, 2);
  EXPECT_EQ(state.gradient_factor, 1);  // of the scale that this gradient was made with
}

/// torch.optim.SGD(momentum=0.5, weight_decay=0.25, lr=0.5), two steps, worked out from its documented algorithm:
///   g = gradient + wd*w; v = g (first) or momentum*v + g; w = w - lr*v.
TEST_F(ReferenceTraining, SgdAsPyTorch) {
  const SgdSpec s{.precision = kDouble, .n = 2, .decayed = 1, .lr = 0.5f, .momentum = 0.5f, .weight_decay = 0.25f};
  Values w{4, 4}, v{77, 77};  // the first step doesn't read the momentum
  TrainingState state;
  state.step = 1;
  state.gradient_factor = 0.5f;
  ops_.sgd_step(s, &state, Values{2, 2}.data(), w.data(), v.data(), nullptr);
  EXPECT_THAT(v, ElementsAre(1 + 0.25 * 4, 1));
  EXPECT_THAT(w, ElementsAre(4 - 0.5 * 2, 4 - 0.5 * 1));
  state.step = 2;
  ops_.sgd_step(s, &state, Values{2, 2}.data(), w.data(), v.data(), nullptr);
  EXPECT_THAT(v, ElementsAre(0.5 * 2 + 1 + 0.25 * 3, 0.5 * 1 + 1));
  EXPECT_THAT(w, ElementsAre(3 - 0.5 * 2.75, 3.5 - 0.5 * 1.5));
  const Values kept = w;
  state.skip = 1;
  ops_.sgd_step(s, &state, Values{2, 2}.data(), w.data(), v.data(), nullptr);
  EXPECT_EQ(w, kept);
}

/// torch.optim.AdamW(lr=0.5, betas=(0.5, 0.75), eps=1, weight_decay=0.5), two steps, from its documented algorithm:
///   w *= 1 - lr*wd; m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g^2;
///   w -= lr * (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps).
TEST_F(ReferenceTraining, AdamWAsPyTorch) {
  const AdamWSpec s{.precision = kDouble,
                    .n = 2,
                    .decayed = 1,
                    .lr = 0.5f,
                    .beta1 = 0.5f,
                    .beta2 = 0.75f,
                    .epsilon = 1.0f,
                    .weight_decay = 0.5f};
  Values w{8, 8}, m{0, 0}, v{0, 0};
  TrainingState state;
  state.step = 1;
  // t = 1: m = 1, v = 1; corrected 2 and 4; update 0.5 * 2 / (2 + 1) = 1/3.
  ops_.adamw_step(s, &state, Values{2, 2}.data(), w.data(), m.data(), v.data(), nullptr);
  EXPECT_THAT(m, ElementsAre(1, 1));
  EXPECT_THAT(v, ElementsAre(1, 1));
  EXPECT_THAT(w, Pointwise(IsNear(), Values{6 - 1 / 3.0, 8 - 1 / 3.0}));
  // t = 2, g = -1: m = 0.5 - 0.5 = 0; v = 0.75 + 0.25 = 1: only decay is left.
  state.step = 2;
  ops_.adamw_step(s, &state, Values{-1, -1}.data(), w.data(), m.data(), v.data(), nullptr);
  EXPECT_THAT(w, Pointwise(IsNear(), Values{(6 - 1 / 3.0) * 0.75, 8 - 1 / 3.0}));
  // t = 3, g = 3: m = 1.5, /(1 - 1/8) = 12/7; v = 0.75 + 2.25 = 3, /(1 - 27/64) = 192/37.
  state.step = 3;
  ops_.adamw_step(s, &state, Values{3, 3}.data(), w.data(), m.data(), v.data(), nullptr);
  const double update = 0.5 * (12 / 7.0) / (std::sqrt(192 / 37.0) + 1);
  EXPECT_THAT(w, Pointwise(IsNear(), Values{(6 - 1 / 3.0) * 0.75 * 0.75 - update, 8 - 1 / 3.0 - update}));
}

TEST_F(ReferenceTraining, MasterWeightsAreRoundedIntoTheParameters) {
  const std::vector<uint16_t> gradient{0x3F80};  // 1 in bf16
  std::vector<float> master{256}, momentum{0};
  std::vector<uint16_t> parameter{0};
  TrainingState state;
  state.step = 1;
  ops_.sgd_step({.precision = Precision::bf16, .n = 1, .lr = 0.25f, .momentum = 0}, &state, gradient.data(),
                master.data(), momentum.data(), parameter.data());
  EXPECT_EQ(master[0], 255.75f);    // which bf16 can't hold
  EXPECT_EQ(parameter[0], 0x4380);  // 256
}

/// Elements of `y`, all NaN before, that were written.
size_t written(const Values& y) {
  return static_cast<size_t>(std::count_if(y.begin(), y.end(), [](double value) { return !std::isnan(value); }));
}

TEST_F(ReferenceTraining, ExpensiveConvolutionsAreSampled) {
  const Conv2dSpec s{.precision = kDouble, .n = 4, .c = 8, .h = 16, .w = 16, .k = 8, .r = 3, .s = 3, .pad = 1};
  const Values x(4 * 8 * 256, 1.0), w(8 * 8 * 9, 1.0), dy(4 * 8 * 256, 1.0);
  const double flops = cost_of(s, ConvPass::forward).flops;
  const auto sampled = make_reference_device({.max_flops_per_op = flops / 8});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Values y(x.size(), nan), dx(x.size(), nan), dw(w.size(), nan);
  sampled->ops().conv2d_forward(s, x.data(), w.data(), nullptr, y.data(), nullptr);
  sampled->ops().conv2d_backward_data(s, dy.data(), w.data(), dx.data(), nullptr);
  sampled->ops().conv2d_backward_weights(s, x.data(), dy.data(), dw.data(), nullptr, nullptr);
  for (const Values* values : {&y, &dx, &dw}) {
    const size_t unit = values == &dw ? 9 : 16;
    EXPECT_EQ(written(*values) % unit, 0u);
    EXPECT_GT(written(*values), values->size() / 32);
    EXPECT_LT(written(*values), values->size() / 4);
    EXPECT_FALSE(std::isnan(values->front()));
    EXPECT_FALSE(std::isnan(values->back()));
  }
  // What is computed is what the whole computation gives.
  Values whole(x.size());
  ops_.conv2d_forward(s, x.data(), w.data(), nullptr, whole.data(), nullptr);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_TRUE(std::isnan(y[i]) || y[i] == whole[i]);
}

TEST_F(ReferenceTraining, ExpensiveAttentionIsSampledByHeads) {
  const AttentionSpec s{.precision = kDouble, .batch = 8, .length = 16, .heads = 8, .head_dim = 4};
  const int64_t values = 8 * 16 * 8 * 4;
  const Values qkv(static_cast<size_t>(3 * values), 0.5);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Values y(static_cast<size_t>(values), nan), log_sum_exp(8 * 8 * 16, nan);
  const auto sampled = make_reference_device({.max_flops_per_op = cost_of(s, false).flops / 4});
  sampled->ops().attention_forward(s, qkv.data(), y.data(), log_sum_exp.data(), nullptr);
  EXPECT_EQ(written(log_sum_exp) % 16, 0u);
  EXPECT_EQ(written(y), written(log_sum_exp) * 4);
  EXPECT_GT(written(y), y.size() / 10);
  EXPECT_LT(written(y), y.size() / 2);
}

}  // namespace
}  // namespace dlbench
