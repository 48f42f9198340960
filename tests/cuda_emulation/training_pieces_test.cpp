// Ops of training on the emulated GPU at shapes that src/gpu cuts into pieces: column matrices larger than the cache,
// more channels than a call takes, sequences of several blocks of queries, gradients of many blocks. The parity suite
// has every op at small odd shapes; a device's own limits are nothing that it knows.
#include <cmath>
#include <cstring>

#include "core/math/optimizer.h"
#include "parity/parity.h"

namespace dlbench::test {
namespace {

/// Memory beside the buffers that are compared, as many bytes as the device asks for, between guard zones.
class Workspace {
 public:
  explicit Workspace(int64_t bytes) : bytes_(bytes), memory_(device_under_test(), static_cast<size_t>(bytes) + kGuard) {
    device_under_test().set_bytes(memory_.data(), 0xFF, static_cast<size_t>(bytes) + kGuard);
    device_under_test().synchronize();
  }
  void* data() const { return bytes_ == 0 ? nullptr : memory_.data(); }
  int64_t bytes() const { return bytes_; }
  void expect_intact() const {
    std::vector<uint8_t> guard(kGuard);
    device_under_test().copy_to_host(guard.data(), static_cast<std::byte*>(memory_.data()) + bytes_, kGuard);
    device_under_test().synchronize();
    for (const uint8_t byte : guard) ASSERT_EQ(byte, 0xFF) << "something was written behind the workspace";
  }

 private:
  static constexpr size_t kGuard = 256;
  int64_t bytes_;
  DeviceBuffer memory_;
};

class TrainingPieces : public Parity {
 protected:
  static DType statistics() { return accumulate_of(precision()); }
  static CaseBuffer result(Op op, std::string what, DType dtype, int64_t elements, int64_t length) {
    return output(std::move(what), dtype, elements, tolerance_of(op, precision(), length));
  }
};
DLB_EVERY_PRECISION(TrainingPieces);

std::vector<double> tokens_of(int64_t count, int64_t bound, uint64_t seed) {
  std::vector<double> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(
        static_cast<double>((static_cast<uint64_t>(i) * 2654435761u + seed) / 7 % static_cast<uint64_t>(bound)));
  }
  return tokens;
}

std::vector<Conv2dSpec> convolutions(Precision precision) {
  std::vector<Conv2dSpec> all;
  for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
    const auto add = [&](int64_t n, int64_t c, int64_t h, int64_t w, int64_t k, int64_t r, int64_t s, int64_t stride,
                         int64_t pad, bool bias, Activation activation) {
      all.push_back({precision, layout, n, c, h, w, k, r, s, stride, pad, bias, activation});
    };
    add(3, 3, 13, 11, 5, 3, 3, 1, 1, true, Activation::relu);   // channels that fill no pack
    add(3, 16, 16, 9, 8, 3, 3, 1, 1, false, Activation::relu);  // packs, several pieces
    add(2, 8, 15, 14, 16, 3, 3, 2, 1, true, Activation::none);  // four phases
    add(5, 8, 14, 14, 7, 1, 1, 2, 0, false, Activation::none);  // three phases that no window reads
    add(2, 5, 16, 17, 6, 2, 3, 4, 0, true, Activation::none);   // a stride larger than the window
    add(2, 24, 9, 10, 16, 1, 1, 1, 0, true, Activation::relu);  // the plain product
    add(2, 4, 7, 6, 3, 1, 1, 1, 2, false, Activation::none);    // 1x1 with padding
    add(1, 3, 20, 20, 9, 7, 7, 2, 3, false, Activation::none);  // a first layer
    add(4, 2, 3, 3, 2, 3, 3, 1, 2, true, Activation::none);     // padding of the window less one
    add(2, 1, 1, 6, 1, 1, 6, 1, 0, false, Activation::none);    // the whole image is one window
  }
  return all;
}

std::string name_of(const Conv2dSpec& s) {
  return fmt::format("{} n={} c={} h={} w={} k={} r={} s={} stride={} pad={}",
                     s.layout == ImageLayout::nhwc ? "nhwc" : "nchw", s.n, s.c, s.h, s.w, s.k, s.r, s.s, s.stride,
                     s.pad);
}

TEST_P(TrainingPieces, Convolution) {
  if (!supported(Op::conv2d_forward)) return;
  for (const Conv2dSpec& s : convolutions(precision())) {
    for (const int64_t offset : {0, 1}) {
      const int64_t x = s.n * s.c * s.h * s.w, y = s.n * s.k * s.p() * s.q(), w = s.k * s.c * s.r * s.s;
      const auto moved = [offset](CaseBuffer buffer) {
        buffer.offset = offset;
        return buffer;
      };
      {
        const Workspace ws(device_under_test().ops().conv2d_workspace_bytes(s, ConvPass::forward));
        check(Op::conv2d_forward,
              {name(Op::conv2d_forward, name_of(s)),
               {moved(input("x", type(), x)), moved(input("w", type(), w)), input("bias", type(), s.k),
                moved(result(Op::conv2d_forward, "y", type(), y, s.c * s.r * s.s))},
               [&](Ops& ops, const std::vector<void*>& p) {
                 ops.conv2d_forward(s, p[0], p[1], s.bias ? p[2] : nullptr, p[3], ws.data());
               }});
        ws.expect_intact();
      }
      {
        const Workspace ws(device_under_test().ops().conv2d_workspace_bytes(s, ConvPass::backward_data));
        check(Op::conv2d_backward_data, {name(Op::conv2d_backward_data, name_of(s)),
                                         {moved(input("dy", type(), y)), moved(input("w", type(), w)),
                                          moved(result(Op::conv2d_backward_data, "dx", type(), x, s.k * s.r * s.s))},
                                         [&](Ops& ops, const std::vector<void*>& p) {
                                           ops.conv2d_backward_data(s, p[0], p[1], p[2], ws.data());
                                         }});
        ws.expect_intact();
      }
      {
        const Workspace ws(device_under_test().ops().conv2d_workspace_bytes(s, ConvPass::backward_weights));
        const int64_t length = s.n * s.p() * s.q();
        check(Op::conv2d_backward_weights,
              {name(Op::conv2d_backward_weights, name_of(s)),
               {moved(input("x", type(), x)), moved(input("dy", type(), y)),
                moved(result(Op::conv2d_backward_weights, "dw", type(), w, length)),
                result(Op::conv2d_backward_weights, "dbias", type(), s.bias ? s.k : 0, length)},
               [&](Ops& ops, const std::vector<void*>& p) {
                 ops.conv2d_backward_weights(s, p[0], p[1], p[2], s.bias ? p[3] : nullptr, ws.data());
               }});
        ws.expect_intact();
      }
    }
  }
}

TEST_P(TrainingPieces, Attention) {
  if (!supported(Op::attention_forward)) return;
  struct Shape {
    int64_t batch, length, heads, head_dim;
    bool causal;
  };
  for (const Shape& shape : {Shape{2, 33, 3, 8, true}, Shape{2, 33, 3, 5, false}, Shape{5, 1, 2, 1, true},
                             Shape{1, 530, 2, 4, true}, Shape{1, 530, 1, 3, false}}) {
    const AttentionSpec s{precision(), shape.batch, shape.length, shape.heads, shape.head_dim, shape.causal};
    const int64_t y = s.batch * s.length * s.heads * s.head_dim, lse = s.batch * s.heads * s.length;
    const std::string what =
        fmt::format("b={} t={} nh={} hd={} causal={}", s.batch, s.length, s.heads, s.head_dim, s.causal);
    // A query of few keys gives values as large as v's, one of many keys far smaller: the former set the scale.
    Ops& device_ops = device_under_test().ops();
    const Workspace forward(device_ops.attention_workspace_bytes(s, false));
    check(Op::attention_forward,
          {name(Op::attention_forward, what),
           {input("qkv", type(), 3 * y, 0.5),
            output("y", type(), y, tolerance_of(Op::attention_forward, precision(), s.length, 0.5)),
            result(Op::attention_forward, "lse", statistics(), lse, s.length)},
           [&](Ops& ops, const std::vector<void*>& p) { ops.attention_forward(s, p[0], p[1], p[2], forward.data()); }});
    forward.expect_intact();
    const Workspace backward(device_ops.attention_workspace_bytes(s, true));
    check(Op::attention_backward,
          {name(Op::attention_backward, what),
           {input("qkv", type(), 3 * y, 0.5), input("y", type(), y), input("dy", type(), y),
            input_values("lse", statistics(),
                         std::vector<double>(static_cast<size_t>(lse), std::log(static_cast<double>(s.length)) + 0.5)),
            output("dqkv", type(), 3 * y, tolerance_of(Op::attention_backward, precision(), s.length, 0.5))},
           [&](Ops& ops, const std::vector<void*>& p) {
             ops.attention_backward(s, p[0], p[1], p[2], p[3], p[4], backward.data());
           }});
    backward.expect_intact();
  }
}

TEST_P(TrainingPieces, BatchNorm) {
  struct Shape {
    int64_t n, c, h, w;
  };
  for (const Shape& shape : {Shape{3, 8, 9, 7}, Shape{2, 5, 3, 3}, Shape{2, 8200, 2, 2}, Shape{40, 3, 9, 20}}) {
    for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
      for (const bool residual : {false, true}) {
        if (shape.c > 8192 && (residual || storage_of(precision()) != DType::f32)) continue;  // many threads to emulate
        BatchNormSpec s{
            .precision = precision(), .layout = layout, .n = shape.n, .c = shape.c, .h = shape.h, .w = shape.w};
        s.residual = residual;
        s.activation = residual ? Activation::relu : Activation::none;
        const int64_t size = s.n * s.c * s.h * s.w, length = s.n * s.h * s.w;
        const std::string what =
            fmt::format("{} n={} c={} h={} w={} residual={}", layout == ImageLayout::nhwc ? "nhwc" : "nchw", s.n, s.c,
                        s.h, s.w, residual);
        const auto tolerance = tolerance_of(Op::batch_norm_forward, precision(), length);
        check(Op::batch_norm_forward,
              {name(Op::batch_norm_forward, what),
               {input("x", type(), size), input("gamma", type(), s.c), input("beta", type(), s.c),
                input("residual", type(), residual ? size : 0), output("y", type(), size, tolerance),
                in_place("running_mean", statistics(), s.c, tolerance),
                in_place("running_variance", statistics(), s.c, tolerance),
                output("mean", statistics(), s.c, tolerance), output("rstd", statistics(), s.c, tolerance)},
               [&](Ops& ops, const std::vector<void*>& p) {
                 ops.batch_norm_forward(s, p[0], p[1], p[2], residual ? p[3] : nullptr, p[4], p[5], p[6], p[7], p[8]);
               }});
        const auto backward_tolerance = tolerance_of(Op::batch_norm_backward, precision(), 3 * length);  // three terms
        std::vector<double> rstd(static_cast<size_t>(s.c), 1.25);
        check(Op::batch_norm_backward,
              {name(Op::batch_norm_backward, what),
               {input("dy", type(), size), input("x", type(), size), input("y", type(), size),
                input("gamma", type(), s.c), input("mean", statistics(), s.c, 0.1),
                input_values("rstd", statistics(), rstd), output("dx", type(), size, backward_tolerance),
                output("dresidual", type(), residual ? size : 0, tolerance), output("dgamma", type(), s.c, tolerance),
                output("dbeta", type(), s.c, tolerance)},
               [&](Ops& ops, const std::vector<void*>& p) {
                 ops.batch_norm_backward(s, p[0], p[1], residual ? p[2] : nullptr, p[3], p[4], p[5], p[6],
                                         residual ? p[7] : nullptr, p[8], p[9]);
               }});
      }
    }
  }
}

TEST_P(TrainingPieces, LayerNorm) {
  struct Shape {
    int64_t rows, columns;
  };
  for (const Shape& shape : {Shape{0, 5}, Shape{3, 1}, Shape{7, 33}, Shape{130, 64}, Shape{3, 1030}, Shape{2, 16392}}) {
    for (const bool residual : {false, true}) {
      const LayerNormSpec s{
          .precision = precision(), .rows = shape.rows, .columns = shape.columns, .residual = residual};
      const int64_t size = s.rows * s.columns;
      const std::string what = fmt::format("rows={} columns={} residual={}", s.rows, s.columns, residual);
      const auto tolerance = tolerance_of(Op::layer_norm_forward, precision(), s.columns, 1);
      // One column: the variance is zero, and rstd is 1/sqrt(epsilon).
      for (const int64_t offset : {0, 1}) {
        OpCase forward{
            name(Op::layer_norm_forward, what),
            {input("x", type(), size), input("residual", type(), residual ? size : 0),
             input("gamma", type(), s.columns), input("beta", type(), s.columns),
             output("sum", type(), residual ? size : 0, tolerance), output("y", type(), size, tolerance),
             output("mean", statistics(), s.rows, tolerance), output("rstd", statistics(), s.rows, tolerance)},
            [&](Ops& ops, const std::vector<void*>& p) {
              ops.layer_norm_forward(s, p[0], residual ? p[1] : nullptr, p[2], p[3], residual ? p[4] : nullptr, p[5],
                                     p[6], p[7]);
            }};
        forward.buffers[0].offset = forward.buffers[4].offset = offset;
        check(Op::layer_norm_forward, forward);
        const auto backward_tolerance =
            tolerance_of(Op::layer_norm_backward, precision(), std::max(s.rows, s.columns), 1);
        OpCase backward{
            name(Op::layer_norm_backward, what),
            {input("dy", type(), size), input("x", type(), size), input("gamma", type(), s.columns),
             input("mean", statistics(), s.rows, 0.1),
             input_values("rstd", statistics(), std::vector<double>(static_cast<size_t>(s.rows), 0.75)),
             in_place("dx", type(), size, backward_tolerance), output("dgamma", type(), s.columns, backward_tolerance),
             output("dbeta", type(), s.columns, backward_tolerance)},
            [&](Ops& ops, const std::vector<void*>& p) {
              ops.layer_norm_backward(s, p[0], p[1], p[2], p[3], p[4], residual ? p[5] : nullptr, p[5], p[6], p[7]);
            }};
        backward.buffers[0].offset = backward.buffers[5].offset = offset;
        check(Op::layer_norm_backward, backward);
      }
    }
  }
}

TEST_P(TrainingPieces, SoftmaxAndCrossEntropy) {
  struct Shape {
    int64_t rows, columns, stride;
  };
  for (const Shape& shape :
       {Shape{3, 1, 0}, Shape{5, 33, 40}, Shape{9, 1003, 0}, Shape{3, 1027, 1032}, Shape{2, 5001, 0}}) {
    const RowsSpec s{precision(), shape.rows, shape.columns, shape.stride};
    const int64_t stride = s.row_stride == 0 ? s.columns : s.row_stride, size = s.rows * stride;
    const std::string what = fmt::format("rows={} columns={} stride={}", s.rows, s.columns, stride);
    const auto tolerance = tolerance_of(Op::softmax_forward, precision(), s.columns);
    check(Op::softmax_forward, {name(Op::softmax_forward, what),
                                {input("x", type(), size, 3), output("y", type(), size, tolerance)},
                                [&](Ops& ops, const std::vector<void*>& p) { ops.softmax_forward(s, p[0], p[1]); }});
    check(Op::softmax_backward,
          {name(Op::softmax_backward, what),
           {input("dy", type(), size), input("y", type(), size, 0.1), output("dx", type(), size, tolerance)},
           [&](Ops& ops, const std::vector<void*>& p) { ops.softmax_backward(s, p[0], p[1], p[2]); }});
    std::vector<double> targets = tokens_of(s.rows, s.columns, 3);
    targets[1] = -100;
    for (const bool in_place_gradient : {false, true}) {
      check(Op::cross_entropy,
            {name(Op::cross_entropy, what),
             {in_place_gradient ? in_place("logits", type(), size, tolerance, 3) : input("logits", type(), size, 3),
              input_values("targets", DType::i32, targets),
              output("losses", statistics(), s.rows, tolerance_of(Op::cross_entropy, precision(), s.columns, 1)),
              output("dlogits", type(), in_place_gradient ? 0 : size, tolerance)},
             [&](Ops& ops, const std::vector<void*>& p) {
               ops.cross_entropy(s, p[0], static_cast<const int32_t*>(p[1]), nullptr, p[2],
                                 in_place_gradient ? p[0] : p[3]);
             }});
    }
  }
}

TEST_P(TrainingPieces, Embedding) {
  struct Shape {
    int64_t tokens, length, vocabulary, channels;
  };
  for (const Shape& shape : {Shape{0, 1, 3, 4}, Shape{12, 4, 5, 8}, Shape{14, 7, 40, 3}, Shape{2100, 30, 11, 8},
                             Shape{6, 3, 4, 4100}, Shape{6, 3, 4, 1031}}) {
    for (const bool accumulate : {false, true}) {
      EmbeddingSpec s{precision(), shape.tokens, shape.length, shape.vocabulary, shape.channels};
      s.accumulate = accumulate;
      const int64_t size = s.tokens * s.channels, length = std::max<int64_t>(s.tokens, 1);
      const std::string what = fmt::format("tokens={} length={} v={} c={} accumulate={}", s.tokens, s.length,
                                           s.vocabulary, s.channels, accumulate);
      const std::vector<double> tokens = tokens_of(s.tokens, s.vocabulary, 1);
      check(Op::embedding_forward,
            {name(Op::embedding_forward, what),
             {input_values("tokens", DType::i32, tokens), input("table", type(), s.vocabulary * s.channels),
              input("positions", type(), s.length * s.channels),
              output("y", type(), size, tolerance_of(Op::embedding_forward, precision()))},
             [&](Ops& ops, const std::vector<void*>& p) {
               ops.embedding_forward(s, static_cast<const int32_t*>(p[0]), p[1], p[2], p[3]);
             }});
      const auto tolerance = tolerance_of(Op::embedding_backward, precision(), length);
      check(Op::embedding_backward, {name(Op::embedding_backward, what),
                                     {input_values("tokens", DType::i32, tokens), input("dy", type(), size),
                                      accumulate ? in_place("dtoken", type(), s.vocabulary * s.channels, tolerance)
                                                 : output("dtoken", type(), s.vocabulary * s.channels, tolerance),
                                      output("dposition", type(), s.length * s.channels, tolerance)},
                                     [&](Ops& ops, const std::vector<void*>& p) {
                                       ops.embedding_backward(s, static_cast<const int32_t*>(p[0]), p[1], p[2], p[3],
                                                              nullptr);
                                     }});
    }
  }
}

TEST_P(TrainingPieces, Pool) {
  std::vector<PoolSpec> all;
  for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
    for (const Pooling pooling : {Pooling::max, Pooling::average}) {
      all.push_back({precision(), layout, pooling, 2, 8, 9, 8, 3, 3, 2, 1});
      all.push_back({precision(), layout, pooling, 2, 5, 7, 6, 2, 2, 2, 0});
      all.push_back({precision(), layout, pooling, 3, 16, 7, 5, 7, 5, 1, 0});
      all.push_back({precision(), layout, pooling, 1, 3, 6, 9, 2, 3, 4, 1});
    }
  }
  for (const PoolSpec& s : all) {
    const int64_t x = s.n * s.c * s.h * s.w, y = s.n * s.c * s.p() * s.q();
    const bool max = s.pooling == Pooling::max;
    const std::string what =
        fmt::format("{} {} n={} c={} h={} w={} r={} s={}", s.layout == ImageLayout::nhwc ? "nhwc" : "nchw",
                    max ? "max" : "average", s.n, s.c, s.h, s.w, s.r, s.s);
    const auto tolerance = tolerance_of(Op::pool_forward, precision(), s.r * s.s);
    CaseBuffer index = output("index", DType::u8, max ? y : 0, tolerance);
    index.bitwise = true;
    check(Op::pool_forward, {name(Op::pool_forward, what),
                             {input("x", type(), x), output("y", type(), y, tolerance), index},
                             [&](Ops& ops, const std::vector<void*>& p) {
                               ops.pool_forward(s, p[0], p[1], max ? static_cast<uint8_t*>(p[2]) : nullptr);
                             }});
    index.output = true;
    check(Op::pool_backward, {name(Op::pool_backward, what),
                              {input("x", type(), x), output("y", type(), y, tolerance), index, input("dy", type(), y),
                               output("dx", type(), x, tolerance)},
                              [&](Ops& ops, const std::vector<void*>& p) {
                                uint8_t* places = max ? static_cast<uint8_t*>(p[2]) : nullptr;
                                ops.pool_forward(s, p[0], p[1], places);
                                ops.pool_backward(s, p[3], places, p[4]);
                              }});
  }
}

/// A state as bytes of a buffer.
CaseBuffer state_buffer(const TrainingState& state, bool changes) {
  std::vector<double> values;
  for (size_t i = 0; i < sizeof state; ++i) values.push_back(reinterpret_cast<const uint8_t*>(&state)[i]);
  CaseBuffer buffer = input_values("state", DType::u8, values);
  buffer.output = changes;
  return buffer;
}

TEST_P(TrainingPieces, Update) {
  for (const int64_t n : {int64_t{1}, int64_t{7}, int64_t{1000}, int64_t{70003}}) {
    for (const bool overflow : {false, true}) {
      const GradientSpec s{.precision = precision(),
                           .n = n,
                           .check = true,
                           .max_norm = 0.5f,
                           .dynamic_scaling = true,
                           .growth_interval = 4};
      TrainingState before;
      before.loss_scale = 256;
      before.good_steps = 3;
      const Workspace ws(device_under_test().ops().update_workspace_bytes(s));
      std::vector<TrainingState> after;
      for (Device* device : {&device_under_test(), &oracle()}) {
        HostTensor gradient({n}, type());
        for (int64_t i = 0; i < n; ++i) gradient.set(i, std::sin(static_cast<double>(i + 1)));
        if (overflow) gradient.set(n - 1, INFINITY);
        const DeviceBuffer memory(*device, gradient.bytes()), state(*device, sizeof before);
        device->copy_to_device(memory.data(), gradient.data(), gradient.bytes());
        device->copy_to_device(state.data(), &before, sizeof before);
        device->ops().prepare_update(s, memory.data(), static_cast<TrainingState*>(state.data()),
                                     device == &oracle() ? nullptr : ws.data());
        after.emplace_back();
        device->copy_to_host(&after.back(), state.data(), sizeof before);
        device->synchronize();
      }
      const TrainingState &got = after[0], &expected = after[1];
      EXPECT_EQ(got.skip, overflow ? 1 : 0);
      EXPECT_EQ(got.step, expected.step);
      EXPECT_EQ(got.good_steps, expected.good_steps);
      EXPECT_EQ(got.loss_scale, expected.loss_scale);
      EXPECT_EQ(got.skipped, expected.skipped);
      if (overflow) continue;
      EXPECT_NEAR(got.gradient_norm / expected.gradient_norm, 1, 1e-5) << n;
      EXPECT_NEAR(got.gradient_factor / expected.gradient_factor, 1, 1e-5) << n;
    }
    for (const int32_t step : {1, 3}) {
      for (const int32_t skip : {0, 1}) {
        for (const int64_t offset : {0, 1}) {
          TrainingState state;
          state.step = step;
          state.skip = skip;
          state.gradient_factor = 0.25f;
          const bool wide = statistics() == type();
          const int64_t copies = wide ? 0 : n;
          const auto tolerance = tolerance_of(Op::adamw_step, precision(), 1, 1);
          const OutputTolerance exact = {
              .op_class = class_of(Op::adamw_step), .precision = wide ? precision() : Precision::fp32, .magnitude = 1};
          const SgdSpec sgd{precision(), n, n / 2, 0.1f, 0.9f, 0.01f};
          OpCase sgd_case{name(Op::sgd_step, fmt::format("n={} step={} skip={}", n, step, skip)),
                          {input("gradient", type(), n), in_place("master", statistics(), n, exact),
                           in_place("momentum", statistics(), n, exact), output("parameter", type(), copies, tolerance),
                           state_buffer(state, false)},
                          [&](Ops& ops, const std::vector<void*>& p) {
                            ops.sgd_step(sgd, static_cast<const TrainingState*>(p[4]), p[0], p[1], p[2],
                                         wide ? nullptr : p[3]);
                          }};
          sgd_case.buffers[0].offset = offset;
          check(Op::sgd_step, sgd_case);
          const AdamWSpec adam{.precision = precision(), .n = n, .decayed = n / 2};
          CaseBuffer v = input_values("v", statistics(), std::vector<double>(static_cast<size_t>(n), 0.3));
          v.output = true;
          v.tolerance = exact;
          OpCase adam_case{name(Op::adamw_step, fmt::format("n={} step={} skip={}", n, step, skip)),
                           {input("gradient", type(), n), in_place("master", statistics(), n, exact),
                            in_place("m", statistics(), n, exact), v, output("parameter", type(), copies, tolerance),
                            state_buffer(state, false)},
                           [&](Ops& ops, const std::vector<void*>& p) {
                             ops.adamw_step(adam, static_cast<const TrainingState*>(p[5]), p[0], p[1], p[2], p[3],
                                            wide ? nullptr : p[4]);
                           }};
          adam_case.buffers[1].offset = offset;
          check(Op::adamw_step, adam_case);
        }
      }
    }
  }
}

TEST(TrainingPiecesMemory, WorkspaceIsBounded) {
  Ops& ops = device_under_test().ops();
  const int64_t most = int64_t{256} << 20;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
      for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
        const Conv2dSpec s{precision, layout, 256, 512, 56, 56, 512, 3, 3, 1, 1};
        const int64_t bytes = ops.conv2d_workspace_bytes(s, pass);
        EXPECT_GT(bytes, 0);
        EXPECT_LE(bytes, most);
      }
    }
    for (const bool backward : {false, true}) {
      EXPECT_LE(ops.attention_workspace_bytes({precision, 64, 4096, 12, 64, true}, backward), most);
    }
  }
}

}  // namespace
}  // namespace dlbench::test
