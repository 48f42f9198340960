// cpu_sequence: layer norm, softmax, relu and AdamW of the CPU backend against plain loops that move the same bytes,
// and the time of attention beside the arithmetic it does.
//
// Goal: at least 0.9 of the memory bandwidth measured in the same run. The measure is a loop like STREAM's (McCalpin)
// with as many arrays read and written as the op has, on the same threads, in turns with the op. Results are compared
// with loops in double first. Exit code 1 when an op is below its goal or wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <functional>

#include "core/math/optimizer.h"
#include "cpu/device.h"
#include "micro/interleaved.h"

namespace dlbench::micro {
namespace {

/// A handful of matrices of one size and what goes with their rows.
struct Data {
  int64_t rows, columns;
  std::vector<DeviceBuffer> matrix;
  DeviceBuffer gamma, beta, mean, rstd;
  std::vector<int32_t> targets;
  TrainingState state;

  Data(Device& device, int64_t rows_, int64_t columns_)
      : rows(rows_),
        columns(columns_),
        gamma(device, static_cast<size_t>(columns_) * 4),
        beta(device, static_cast<size_t>(columns_) * 4),
        mean(device, static_cast<size_t>(rows_) * 4),
        rstd(device, static_cast<size_t>(rows_) * 4),
        targets(static_cast<size_t>(rows_)) {
    for (uint64_t i = 0; i < 4; ++i) {
      matrix.emplace_back(device, static_cast<size_t>(rows * columns) * 4);
      device.ops().fill_normal({.n = rows * columns, .seed = i + 1, .scale = 0.1}, matrix.back().data());
    }
    device.ops().fill_normal({.n = columns, .seed = 9}, gamma.data());
    device.ops().fill_normal({.n = columns, .seed = 10}, beta.data());
    for (size_t r = 0; r < targets.size(); ++r)
      targets[r] = static_cast<int32_t>(r * 31 % static_cast<size_t>(columns));
    state.step = 1;
  }
  float* of(size_t i) { return static_cast<float*>(matrix[i].data()); }
  int64_t n() const { return rows * columns; }
};

/// The element an op should have written, from inputs saved before the call.
using Expected = std::function<double(const std::vector<std::vector<float>>& before, int64_t row, int64_t column)>;

struct Case {
  std::string name;
  double arrays;  ///< moved per element, of 4 bytes each: what is read and what is written
  size_t result;  ///< matrix that is checked
  std::function<void(Ops&, Data&)> ours;
  std::function<void(Data&, int64_t begin, int64_t end)> plain;
  Expected expected;
};

struct Moments {
  double mean = 0, rstd = 0;
  Moments(const float* row, int64_t n) {
    double square = 0;
    for (int64_t i = 0; i < n; ++i) mean += static_cast<double>(row[i]) / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i)
      square += (static_cast<double>(row[i]) - mean) * (static_cast<double>(row[i]) - mean) / static_cast<double>(n);
    rstd = 1 / std::sqrt(square + 1e-5);
  }
};

// The plain loops, for whatever this program is compiled for.
void scale_loop(const float* __restrict x, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = 1.0000001f * x[i];
}
void triad_loop(const float* __restrict x, const float* __restrict y, float* __restrict z, int64_t n) {
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] + 1e-9f * y[i];
}
void two_results_loop(const float* __restrict x, const float* __restrict y, float* __restrict s, float* __restrict z,
                      int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    s[i] = x[i] + 1e-9f * y[i];
    z[i] = x[i] - 1e-9f * y[i];
  }
}
void update_loop(const float* __restrict g, float* __restrict w, float* __restrict m, float* __restrict v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    w[i] += 1e-9f * g[i];
    m[i] += 1e-9f * g[i];
    v[i] += 1e-9f * g[i];
  }
}

std::vector<Case> cases(int64_t columns) {
  const auto plain_scale = [](Data& d, int64_t b, int64_t e) { scale_loop(d.of(0) + b, d.of(2) + b, e - b); };
  const auto plain_triad = [](Data& d, int64_t b, int64_t e) {
    triad_loop(d.of(0) + b, d.of(1) + b, d.of(2) + b, e - b);
  };
  const auto wide = [columns](const std::vector<std::vector<float>>& before, size_t which, int64_t r, int64_t c) {
    return static_cast<double>(before[which][static_cast<size_t>(r * columns + c)]);
  };
  const auto row = [columns](const std::vector<std::vector<float>>& before, size_t which, int64_t r) {
    return before[which].data() + r * columns;
  };
  std::vector<Case> list;
  list.push_back({"relu", 2, 2, [](Ops& o, Data& d) { o.relu_forward({.n = d.n()}, d.of(0), d.of(2)); }, plain_scale,
                  [=](const auto& before, int64_t r, int64_t c) { return std::max(0.0, wide(before, 0, r, c)); }});
  list.push_back({"layer_norm_forward", 2, 2,
                  [](Ops& o, Data& d) {
                    o.layer_norm_forward({.rows = d.rows, .columns = d.columns}, d.of(0), nullptr, d.gamma.data(),
                                         d.beta.data(), nullptr, d.of(2), d.mean.data(), d.rstd.data());
                  },
                  plain_scale,
                  [=](const auto& before, int64_t r, int64_t c) {
                    const Moments m(row(before, 0, r), columns);
                    return (wide(before, 0, r, c) - m.mean) * m.rstd *
                               static_cast<double>(before[4][static_cast<size_t>(c)]) +
                           static_cast<double>(before[5][static_cast<size_t>(c)]);
                  }});
  list.push_back({"layer_norm_forward + residual", 4, 2,
                  [](Ops& o, Data& d) {
                    o.layer_norm_forward({.rows = d.rows, .columns = d.columns, .residual = true}, d.of(0), d.of(1),
                                         d.gamma.data(), d.beta.data(), d.of(3), d.of(2), d.mean.data(), d.rstd.data());
                  },
                  [](Data& d, int64_t b, int64_t e) {
                    two_results_loop(d.of(0) + b, d.of(1) + b, d.of(3) + b, d.of(2) + b, e - b);
                  },
                  [=](const auto& before, int64_t r, int64_t c) {
                    std::vector<float> sum(static_cast<size_t>(columns));
                    for (int64_t i = 0; i < columns; ++i)
                      sum[static_cast<size_t>(i)] = row(before, 0, r)[i] + row(before, 1, r)[i];
                    const Moments m(sum.data(), columns);
                    return (static_cast<double>(sum[static_cast<size_t>(c)]) - m.mean) * m.rstd *
                               static_cast<double>(before[4][static_cast<size_t>(c)]) +
                           static_cast<double>(before[5][static_cast<size_t>(c)]);
                  }});
  // mean and rstd are what the forward cases left, those of matrix 0; here they serve matrix 1 as any numbers would.
  list.push_back({"layer_norm_backward", 3, 2,
                  [](Ops& o, Data& d) {
                    o.layer_norm_backward({.rows = d.rows, .columns = d.columns}, d.of(0), d.of(1), d.gamma.data(),
                                          d.mean.data(), d.rstd.data(), nullptr, d.of(2), d.beta.data(), d.beta.data());
                  },
                  plain_triad,
                  [=](const auto& before, int64_t r, int64_t c) {
                    const double mean = static_cast<double>(before[6][static_cast<size_t>(r)]),
                                 rstd = static_cast<double>(before[7][static_cast<size_t>(r)]);
                    double g = 0, gx = 0;
                    const auto normal = [&](int64_t i) { return (wide(before, 1, r, i) - mean) * rstd; };
                    const auto scaled = [&](int64_t i) {
                      return wide(before, 0, r, i) * static_cast<double>(before[4][static_cast<size_t>(i)]);
                    };
                    for (int64_t i = 0; i < columns; ++i) g += scaled(i), gx += scaled(i) * normal(i);
                    const double n = static_cast<double>(columns);
                    return rstd * (scaled(c) - g / n - normal(c) * gx / n);
                  }});
  list.push_back({"softmax_forward", 2, 2,
                  [](Ops& o, Data& d) { o.softmax_forward({.rows = d.rows, .columns = d.columns}, d.of(0), d.of(2)); },
                  plain_scale,
                  [=](const auto& before, int64_t r, int64_t c) {
                    double sum = 0;
                    for (int64_t i = 0; i < columns; ++i) sum += std::exp(wide(before, 0, r, i));
                    return std::exp(wide(before, 0, r, c)) / sum;
                  }});
  list.push_back(
      {"softmax_backward", 3, 2,
       [](Ops& o, Data& d) { o.softmax_backward({.rows = d.rows, .columns = d.columns}, d.of(0), d.of(1), d.of(2)); },
       plain_triad,
       [=](const auto& before, int64_t r, int64_t c) {
         double dot = 0;
         for (int64_t i = 0; i < columns; ++i) dot += wide(before, 0, r, i) * wide(before, 1, r, i);
         return wide(before, 1, r, c) * (wide(before, 0, r, c) - dot);
       }});
  list.push_back({"cross_entropy", 2, 2,
                  [](Ops& o, Data& d) {
                    o.cross_entropy({.rows = d.rows, .columns = d.columns}, d.of(0), d.targets.data(), nullptr,
                                    d.mean.data(), d.of(2));
                  },
                  plain_scale,
                  [=](const auto& before, int64_t r, int64_t c) {
                    double sum = 0;
                    for (int64_t i = 0; i < columns; ++i) sum += std::exp(wide(before, 0, r, i));
                    const double rows = static_cast<double>(before[0].size()) / static_cast<double>(columns);
                    return (std::exp(wide(before, 0, r, c)) / sum - (c == r * 31 % columns ? 1 : 0)) / rows;
                  }});
  list.push_back(
      {"adamw", 7, 1,
       [](Ops& o, Data& d) {
         o.adamw_step({.n = d.n(), .decayed = d.n()}, &d.state, d.of(0), d.of(1), d.of(2), d.of(3), nullptr);
       },
       [](Data& d, int64_t b, int64_t e) { update_loop(d.of(0) + b, d.of(1) + b, d.of(2) + b, d.of(3) + b, e - b); },
       [=](const auto& before, int64_t r, int64_t c) {
         double w = wide(before, 1, r, c), m = wide(before, 2, r, c), v = wide(before, 3, r, c);
         const AdamWSpec s{};
         adamw_update<double>(w, m, v, wide(before, 0, r, c), s.lr, s.beta1, s.beta2, s.epsilon, s.weight_decay,
                              1 / (1 - static_cast<double>(s.beta1)), 1 / std::sqrt(1 - static_cast<double>(s.beta2)));
         return w;
       }});
  return list;
}

/// The largest error of the case's result beside what it should be, over a few elements of many rows.
double error_of(Device& device, Data& d, const Case& c) {
  if (c.name == "adamw") device.ops().copy({.n = d.n()}, d.of(0), d.of(3));
  if (c.name == "adamw") device.ops().relu_forward({.n = d.n()}, d.of(3), d.of(3));  // v is never negative
  std::vector<std::vector<float>> before;
  for (size_t i = 0; i < 4; ++i) before.emplace_back(d.of(i), d.of(i) + d.n());
  for (const auto& [buffer, count] : {std::pair<void*, int64_t>{d.gamma.data(), d.columns},
                                      {d.beta.data(), d.columns},
                                      {d.mean.data(), d.rows},
                                      {d.rstd.data(), d.rows}}) {
    before.emplace_back(static_cast<float*>(buffer), static_cast<float*>(buffer) + count);
  }
  c.ours(device.ops(), d);
  double largest = 0;
  for (int64_t r = 0; r < d.rows; r += std::max<int64_t>(1, d.rows / 97)) {
    for (int64_t column = r % 7; column < d.columns; column += std::max<int64_t>(1, d.columns / 5)) {
      const double got = static_cast<double>(d.of(c.result)[r * d.columns + column]);
      largest = std::max(largest, std::fabs(got - c.expected(before, r, column)));
    }
  }
  return largest;
}

int bandwidth(cpu::CpuDevice& device, int64_t rows, int64_t columns, int turns, double turn_seconds, double goal,
              const std::string& filter) {
  int bad = 0;
  // In the caches nothing waits for memory, and the plain loop, which computes next to nothing, is no measure.
  const bool in_caches = 4 * 4 * rows * columns <= device.info().last_level_cache_bytes;
  for (const Case& c : cases(columns)) {
    if (c.name.find(filter) == std::string::npos) continue;
    Data d(device, rows, columns);
    device.ops().layer_norm_forward({.rows = rows, .columns = columns}, d.of(0), nullptr, d.gamma.data(), d.beta.data(),
                                    nullptr, d.of(2), d.mean.data(), d.rstd.data());
    const double error = error_of(device, d, c);
    const bool right = error < 1e-4;
    const std::vector<Side> sides = {
        {[&] { c.ours(device.ops(), d); }, {}},
        {[&] { device.team().parallel_for(d.n(), 4096, 64, [&](int64_t b, int64_t e) { c.plain(d, b, e); }); }, {}}};
    const auto seconds = time_in_turns(sides, turns, turn_seconds);
    std::vector<double> ratios;
    for (size_t t = 0; t < seconds[0].size(); ++t) ratios.push_back(seconds[1][t] / seconds[0][t]);
    const double ratio = median(ratios), gb = 4e-9 * c.arrays * static_cast<double>(d.n());
    const bool low = !in_caches && ratio < goal;
    bad += low || !right;
    fmt::print("{:30} {:>8} x {:<6} {:8.2f} {:10.1f} {:10.1f}{}\n", c.name, rows, columns, ratio,
               gb / median(seconds[0]), gb / median(seconds[1]),
               !right      ? fmt::format("  WRONG RESULT, off by {}", error)
               : low       ? "  BELOW GOAL"
               : in_caches ? "  in the caches: no goal"
                           : "");
  }
  return bad;
}

void attention(cpu::CpuDevice& device, const AttentionSpec& s, int turns, double turn_seconds) {
  const int64_t n = s.batch * s.length * s.heads * s.head_dim;
  Ops& ops = device.ops();
  const auto buffer = [&](int64_t elements) { return DeviceBuffer(device, static_cast<size_t>(elements) * 4); };
  DeviceBuffer qkv = buffer(3 * n), y = buffer(n), dy = buffer(n), dqkv = buffer(3 * n),
               level = buffer(s.batch * s.heads * s.length);
  DeviceBuffer forward(device, static_cast<size_t>(ops.attention_workspace_bytes(s, false))),
      backward(device, static_cast<size_t>(ops.attention_workspace_bytes(s, true)));
  ops.fill_normal({.n = 3 * n, .seed = 1}, qkv.data());
  ops.fill_normal({.n = n, .seed = 2}, dy.data());
  const auto seconds = time_in_turns(
      {{[&] { ops.attention_forward(s, qkv.data(), y.data(), level.data(), forward.data()); }, {}},
       {[&] { ops.attention_backward(s, qkv.data(), y.data(), dy.data(), level.data(), dqkv.data(), backward.data()); },
        {}}},
      turns, turn_seconds);
  // Two products forward, five backward (scores again), over the pairs that the mask leaves.
  const double pairs = static_cast<double>(s.length) * static_cast<double>(s.length + (s.causal ? 1 : s.length)) / 2;
  const double product = 2e-9 * static_cast<double>(s.batch * s.heads) * pairs * static_cast<double>(s.head_dim);
  fmt::print(
      "attention B {:2} T {:4} NH {:2} HD {:2}   forward {:8.3f} ms {:6.1f} GFLOP/s   backward {:8.3f} ms {:6.1f} "
      "GFLOP/s\n",
      s.batch, s.length, s.heads, s.head_dim, 1e3 * median(seconds[0]), 2 * product / median(seconds[0]),
      1e3 * median(seconds[1]), 5 * product / median(seconds[1]));
}

}  // namespace
}  // namespace dlbench::micro

int main(int argc, char** argv) {
  using namespace dlbench;
  CLI::App app{"Row-wise ops and updates of the CPU backend against plain loops that move the same bytes"};
  int threads = 0;
  bool quick = false;
  double goal = 0.9;
  std::string filter;
  app.add_option("--threads", threads, "Threads of either side; 0: every usable CPU");
  app.add_option("--goal", goal, "Lowest accepted ratio");
  app.add_option("--filter", filter, "Only ops whose name contains this");
  app.add_flag("--quick", quick, "Fewer and shorter turns");
  CLI11_PARSE(app, argc, argv);
  cpu::CpuDevice device({.threads = threads});
  const int turns = quick ? 5 : 15;
  const double turn_seconds = quick ? 0.01 : 0.03;
  fmt::print("{:30} {:>8}   {:<6} {:>8} {:>10} {:>10}\n", "op", "rows", "length", "ratio", "GB/s", "plain GB/s");
  int bad = 0;
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{21845, 768}, {256, 768}, {333, 50257}})
    bad += micro::bandwidth(device, rows, columns, turns, turn_seconds, goal, filter);
  if (std::string("attention").find(filter) != std::string::npos) {
    for (const AttentionSpec& s : {AttentionSpec{.batch = 4, .length = 64, .heads = 12, .head_dim = 64},
                                   {.batch = 8, .length = 128, .heads = 8, .head_dim = 32},
                                   {.batch = 1, .length = 128, .heads = 8, .head_dim = 32},
                                   {.batch = 1, .length = 1024, .heads = 12, .head_dim = 64}}) {
      micro::attention(device, s, turns, turn_seconds);
    }
  }
  fmt::print("{} below {} or wrong\n", bad, goal);
  return bad > 0 ? 1 : 0;
}
