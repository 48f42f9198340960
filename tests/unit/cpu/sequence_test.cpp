// Normalization, softmax, attention, embedding and updates where the parity suite doesn't look: shapes of several
// blocks against plain loops in double, stores past the caches, and equal bits whatever the threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "core/base/usable_cpus.h"
#include "core/math/optimizer.h"
#include "cpu/device.h"

namespace dlbench::cpu {
namespace {

using Floats = std::vector<float>;

Floats normal(Ops& ops, int64_t n, uint64_t seed, double scale = 1) {
  Floats x(static_cast<size_t>(n));
  ops.fill_normal({.n = n, .seed = seed, .scale = scale}, x.data());
  return x;
}

size_t index(int64_t i) {
  return static_cast<size_t>(i);
}

/// Attention of one batch in double: y, log-sum-exp and the gradient of qkv.
struct NaiveAttention {
  std::vector<double> y, level, dqkv;
  NaiveAttention(const AttentionSpec& s, const Floats& qkv, const Floats& dy)
      : y(dy.size()), level(index(s.batch * s.heads * s.length)), dqkv(qkv.size()) {
    const double scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
    for (int64_t b = 0; b < s.batch; ++b) {
      for (int64_t h = 0; h < s.heads; ++h) {
        const auto in = [&](int64_t part, int64_t t, int64_t d) {
          return index((((b * s.length + t) * 3 + part) * s.heads + h) * s.head_dim + d);
        };
        const auto to = [&](int64_t t, int64_t d) {
          return index(((b * s.length + t) * s.heads + h) * s.head_dim + d);
        };
        for (int64_t q = 0; q < s.length; ++q) {
          const int64_t seen = s.causal ? q + 1 : s.length;
          std::vector<double> p(index(seen)), dp(index(seen));
          double largest = -1e300, sum = 0, mean = 0;
          for (int64_t k = 0; k < seen; ++k) {
            for (int64_t d = 0; d < s.head_dim; ++d)
              p[index(k)] += static_cast<double>(qkv[in(0, q, d)]) * static_cast<double>(qkv[in(1, k, d)]) * scale;
            largest = std::max(largest, p[index(k)]);
          }
          for (double& v : p) v = std::exp(v - largest), sum += v;
          level[index((b * s.heads + h) * s.length + q)] = largest + std::log(sum);
          for (int64_t k = 0; k < seen; ++k) {
            p[index(k)] /= sum;
            for (int64_t d = 0; d < s.head_dim; ++d) {
              y[to(q, d)] += p[index(k)] * static_cast<double>(qkv[in(2, k, d)]);
              dp[index(k)] += static_cast<double>(dy[to(q, d)]) * static_cast<double>(qkv[in(2, k, d)]);
            }
            mean += p[index(k)] * dp[index(k)];
          }
          for (int64_t k = 0; k < seen; ++k) {
            const double ds = p[index(k)] * (dp[index(k)] - mean) * scale;
            for (int64_t d = 0; d < s.head_dim; ++d) {
              dqkv[in(0, q, d)] += ds * static_cast<double>(qkv[in(1, k, d)]);
              dqkv[in(1, k, d)] += ds * static_cast<double>(qkv[in(0, q, d)]);
              dqkv[in(2, k, d)] += p[index(k)] * static_cast<double>(dy[to(q, d)]);
            }
          }
        }
      }
    }
  }
};

void expect_near(const Floats& got, const std::vector<double>& expected, double tolerance, const char* what) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), expected[i], tolerance) << what << " at " << i;
}

TEST(CpuSequence, AttentionOfSeveralBlocksMatchesPlainLoops) {
  CpuDevice device{DeviceOptions{}};
  Ops& ops = device.ops();
  for (const auto& [length, head_dim, causal] : std::vector<std::tuple<int64_t, int64_t, bool>>{
           {1, 1, true}, {64, 64, true}, {200, 33, true}, {200, 40, false}, {129, 64, true}, {257, 16, false}}) {
    const AttentionSpec s{.batch = 2, .length = length, .heads = 3, .head_dim = head_dim, .causal = causal};
    const int64_t n = s.batch * s.length * s.heads * s.head_dim;
    const Floats qkv = normal(ops, 3 * n, 1, 1.5), dy = normal(ops, n, 2);
    const float unset = std::nanf("");
    Floats y(index(n), unset), dqkv(index(3 * n), unset), level(index(s.batch * s.heads * s.length), unset);
    std::vector<std::byte> workspace(
        index(std::max(ops.attention_workspace_bytes(s, false), ops.attention_workspace_bytes(s, true))),
        std::byte{0xFF});
    ops.attention_forward(s, qkv.data(), y.data(), level.data(), workspace.data());
    ops.attention_backward(s, qkv.data(), y.data(), dy.data(), level.data(), dqkv.data(), workspace.data());
    const NaiveAttention expected(s, qkv, dy);
    SCOPED_TRACE(testing::Message() << "T " << length << " HD " << head_dim << (causal ? " causal" : ""));
    expect_near(y, expected.y, 1e-5, "y");
    expect_near(level, expected.level, 1e-5, "log-sum-exp");
    expect_near(dqkv, expected.dqkv, 1e-4, "dqkv");
  }
}

TEST(CpuSequence, RowsPastTheCachesAreComplete) {
  CpuDevice device{DeviceOptions{}};
  Ops& ops = device.ops();
  const int64_t columns = 768, rows = (int64_t{24} << 20) / columns + 1;  // 96 MiB a matrix
  const Floats x = normal(ops, rows * columns, 1), gamma = normal(ops, columns, 2), beta = normal(ops, columns, 3);
  DeviceBuffer y(device, x.size() * 4);  // aligned to a cache line
  Floats mean(index(rows)), rstd(index(rows));
  ops.layer_norm_forward({.rows = rows, .columns = columns}, x.data(), nullptr, gamma.data(), beta.data(), nullptr,
                         y.data(), mean.data(), rstd.data());
  const float* got = static_cast<const float*>(y.data());
  for (int64_t i = 0; i < rows * columns; ++i) {
    const size_t r = index(i / columns), c = index(i % columns);
    ASSERT_NEAR(got[i], (x[index(i)] - mean[r]) * rstd[r] * gamma[c] + beta[c], 1e-5) << i;
  }
  ops.softmax_forward({.rows = rows, .columns = columns}, x.data(), y.data());
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += static_cast<double>(got[r * columns + c]);
    ASSERT_NEAR(sum, 1, 1e-5) << r;
  }
}

TEST(CpuSequence, LongRowsKeepTheirSums) {
  CpuDevice device{DeviceOptions{}};
  Ops& ops = device.ops();
  const RowsSpec s{.rows = 3, .columns = 50257, .row_stride = 50304};
  const Floats x = normal(ops, s.rows * s.row_stride, 1, 3);
  const std::vector<int32_t> targets = {0, 50256, -1};
  for (const bool in_place : {false, true}) {
    Floats losses(3), dx = in_place ? x : Floats(x.size(), -7.0f);
    ops.cross_entropy(s, in_place ? dx.data() : x.data(), targets.data(), nullptr, losses.data(), dx.data());
    for (int64_t r = 0; r < s.rows; ++r) {
      const float* row = x.data() + r * s.row_stride;
      const bool counts = r < 2;
      double sum = 0;
      for (int64_t c = 0; c < s.columns; ++c) sum += std::exp(static_cast<double>(row[c]));
      const double loss = counts ? std::log(sum) - static_cast<double>(row[targets[index(r)]]) : 0;
      EXPECT_NEAR(static_cast<double>(losses[index(r)]), loss, 1e-5);
      for (int64_t c = 0; c < s.row_stride; ++c) {
        const double p = std::exp(static_cast<double>(row[c])) / sum;
        const double expected = !counts || c >= s.columns ? 0 : (p - (c == targets[index(r)] ? 1 : 0)) / 3;
        ASSERT_NEAR(static_cast<double>(dx[index(r * s.row_stride + c)]), expected, 1e-6 * p + 1e-7) << r << " " << c;
      }
    }
  }
}

TEST(CpuSequence, AFrequentTokenTakesEveryPlace) {
  CpuDevice device{DeviceOptions{}};
  Ops& ops = device.ops();
  const EmbeddingSpec s{.tokens = 6000, .length = 100, .vocabulary = 5000, .channels = 530, .accumulate = true};
  std::vector<int32_t> tokens(6000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = i % 3 != 0 ? 4321 : static_cast<int32_t>(i * 7 % 5000);
  const Floats dy = normal(ops, s.tokens * s.channels, 1);
  Floats table(index(s.vocabulary * s.channels), 0.5f), positions(index(s.length * s.channels), -1.0f);
  std::vector<double> expected(table.begin(), table.end()), expected_positions(positions.size());
  for (int64_t t = 0; t < s.tokens; ++t) {
    for (int64_t c = 0; c < s.channels; ++c) {
      const double d = static_cast<double>(dy[index(t * s.channels + c)]);
      expected[index(tokens[index(t)] * s.channels + c)] += d;
      expected_positions[index(t % s.length * s.channels + c)] += d;
    }
  }
  std::vector<std::byte> workspace(index(ops.embedding_workspace_bytes(s)));
  ops.embedding_backward(s, tokens.data(), dy.data(), table.data(), positions.data(), workspace.data());
  expect_near(table, expected, 2e-4, "table");
  expect_near(positions, expected_positions, 2e-5, "positions");
}

TEST(CpuSequence, ATokenOutsideTheVocabularyIsRefused) {
  CpuDevice device{DeviceOptions{}};
  const EmbeddingSpec s{.tokens = 2, .vocabulary = 3, .channels = 1, .positions = false};
  for (const int32_t token : {-1, 3}) {
    const int32_t tokens[] = {0, token};
    Floats table(3), y(2);
    EXPECT_THROW(device.ops().embedding_forward(s, tokens, table.data(), nullptr, y.data()), std::invalid_argument);
  }
}

TEST(CpuSequence, ResultsAreEqualForAnyNumberOfThreads) {
  std::vector<Floats> results;
  for (int threads = 1; threads <= usable_cpus().count; ++threads) {
    CpuDevice device{DeviceOptions{.threads = threads}};
    Ops& ops = device.ops();
    Floats all;
    const auto keep = [&](const Floats& x) { all.insert(all.end(), x.begin(), x.end()); };
    const int64_t rows = 1000, columns = 200, n = rows * columns;
    const Floats x = normal(ops, n, 1), dy = normal(ops, n, 2), gamma = normal(ops, columns, 3);
    Floats y(index(n)), mean(index(rows)), rstd(index(rows)), dgamma(index(columns)), dbeta(index(columns));
    const LayerNormSpec norm{.rows = rows, .columns = columns};
    ops.layer_norm_forward(norm, x.data(), nullptr, gamma.data(), gamma.data(), nullptr, y.data(), mean.data(),
                           rstd.data());
    ops.layer_norm_backward(norm, dy.data(), x.data(), gamma.data(), mean.data(), rstd.data(), nullptr, y.data(),
                            dgamma.data(), dbeta.data());
    keep(y), keep(dgamma), keep(dbeta);

    const AttentionSpec attention{.batch = 1, .length = 150, .heads = 4, .head_dim = 24};
    const int64_t outputs = attention.length * attention.heads * attention.head_dim;
    Floats out(index(outputs)), level(index(attention.heads * attention.length)), dqkv(index(3 * outputs));
    std::vector<std::byte> workspace(index(
        std::max(ops.attention_workspace_bytes(attention, false), ops.attention_workspace_bytes(attention, true))));
    ops.attention_forward(attention, x.data(), out.data(), level.data(), workspace.data());
    ops.attention_backward(attention, x.data(), out.data(), dy.data(), level.data(), dqkv.data(), workspace.data());
    keep(out), keep(level), keep(dqkv);

    TrainingState state;
    const GradientSpec gradient{.n = n, .check = true, .max_norm = 1};
    std::vector<std::byte> update(index(ops.update_workspace_bytes(gradient)));
    ops.prepare_update(gradient, dy.data(), &state, update.data());
    Floats w = x, m(index(n)), v(index(n));
    ops.adamw_step({.n = n, .decayed = 12345}, &state, dy.data(), w.data(), m.data(), v.data(), nullptr);
    ops.sgd_step({.n = n, .decayed = 12345, .weight_decay = 0.1f}, &state, dy.data(), w.data(), m.data(), nullptr);
    all.push_back(state.gradient_norm);
    keep(w), keep(m), keep(v);
    results.push_back(all);
  }
  for (const Floats& r : results) EXPECT_EQ(std::memcmp(r.data(), results[0].data(), r.size() * 4), 0);
}

TEST(CpuSequence, AWeightUpdatesAsInPyTorch) {
  // torch 2: one AdamW step of w = 1, g = 0.5 with the defaults gives 0.99899000; SGD(lr 0.1, momentum 0.9,
  // weight_decay 0.1) gives 1 - 0.1 * 0.6 = 0.94, then with v = 0.9 * 0.6 + 0.5 + 0.094 = 1.134: 0.8266.
  CpuDevice device{DeviceOptions{}};
  Ops& ops = device.ops();
  TrainingState state;
  const float g = 0.5f;
  float w = 1, m = 0, v = 0;
  ops.prepare_update({.n = 1}, &g, &state, nullptr);
  EXPECT_EQ(state.step, 1);
  ops.adamw_step({.n = 1, .decayed = 1}, &state, &g, &w, &m, &v, nullptr);
  EXPECT_NEAR(w, 0.99899f, 1e-6f);
  w = 1, m = 0;
  const SgdSpec sgd{.n = 1, .decayed = 1, .weight_decay = 0.1f};
  ops.sgd_step(sgd, &state, &g, &w, &m, nullptr);
  EXPECT_NEAR(w, 0.94f, 1e-6f);
  ops.prepare_update({.n = 1}, &g, &state, nullptr);
  ops.sgd_step(sgd, &state, &g, &w, &m, nullptr);
  EXPECT_NEAR(w, 0.8266f, 1e-6f);
}

}  // namespace
}  // namespace dlbench::cpu
