// Pooling in both layouts: windows that overlap or leave gaps, borders, global pooling, NaN and ties.
#include <limits>

#include "parity/training_parity.h"

namespace dlbench::test {
namespace {

class PoolParity : public TrainingParity {
 protected:
  static std::string describe(const PoolSpec& s) {
    return fmt::format("{} {} N={} C={} H={} W={} {}x{} stride={} pad={}",
                       s.pooling == Pooling::max ? "max" : "average", name_of(s.layout), s.n, s.c, s.h, s.w, s.r, s.s,
                       s.stride, s.pad);
  }
  static int64_t inputs(const PoolSpec& s) { return s.n * s.c * s.h * s.w; }
  static int64_t outputs(const PoolSpec& s) { return s.n * s.c * s.p() * s.q(); }

  static OpCase forward_case(const PoolSpec& s) {
    const bool max = s.pooling == Pooling::max;
    const double places = static_cast<double>(s.r * s.s);
    OpCase op_case{name(Op::pool_forward, describe(s)),
                   {input("x", type(), inputs(s)),
                    output("y", type(), outputs(s), tolerance(Op::pool_forward, s.r * s.s, 1 / std::sqrt(places))),
                    output("index", DType::u8, max ? outputs(s) : 0, {})},
                   [s, max](Ops& ops, const std::vector<void*>& p) {
                     ops.pool_forward(s, p[0], p[1], static_cast<uint8_t*>(or_null(max, p[2])));
                   }};
    op_case.buffers[1].bitwise = max;
    op_case.buffers[2].bitwise = true;
    return op_case;
  }
  /// The winners of random images, as the oracle finds them.
  static std::vector<double> winners(const PoolSpec& s) {
    const HostTensor x = initial_values(input("x", type(), inputs(s)));
    HostTensor y({outputs(s)}, type());
    std::vector<uint8_t> index(static_cast<size_t>(outputs(s)));
    oracle().ops().pool_forward(s, x.data(), y.data(), index.data());
    return {index.begin(), index.end()};
  }
  static OpCase backward_case(const PoolSpec& s) {
    const bool max = s.pooling == Pooling::max;
    const int64_t windows = ((s.r - 1) / s.stride + 1) * ((s.s - 1) / s.stride + 1);  // that see a pixel
    const double magnitude = max ? 1 : 1 / static_cast<double>(s.r * s.s);
    return {
        name(Op::pool_backward, describe(s)),
        {input("dy", type(), outputs(s)), input_values("index", DType::u8, max ? winners(s) : std::vector<double>()),
         output("dx", type(), inputs(s), tolerance(Op::pool_backward, windows, magnitude))},
        [s, max](Ops& ops, const std::vector<void*>& p) {
          ops.pool_backward(s, p[0], static_cast<const uint8_t*>(or_null(max, p[1])), p[2]);
        }};
  }
  static void check_pool(PoolSpec s) {
    s.precision = precision();
    for (const ImageLayout layout : kLayouts) {
      for (const Pooling pooling : {Pooling::max, Pooling::average}) {
        s.layout = layout;
        s.pooling = pooling;
        check(Op::pool_forward, forward_case(s));
        check(Op::pool_backward, backward_case(s));
      }
    }
  }
};

TEST_P(PoolParity, Windows) {
  check_pool({.n = 2, .c = 5, .h = 8, .w = 6, .r = 2, .s = 2, .stride = 2});
  check_pool({.n = 2, .c = 5, .h = 9, .w = 7, .r = 2, .s = 2, .stride = 2});  // a row and a column are left out
  check_pool({.n = 1, .c = 17, .h = 14, .w = 13, .r = 3, .s = 3, .stride = 2, .pad = 1});
  check_pool({.n = 2, .c = 3, .h = 7, .w = 8, .r = 3, .s = 3, .pad = 1});
  check_pool({.n = 2, .c = 3, .h = 11, .w = 8, .r = 2, .s = 3, .stride = 4});  // pixels that no window sees
  check_pool({.n = 1, .c = 2, .h = 20, .w = 19, .r = 16, .s = 16, .stride = 3, .pad = 8});  // 256 places
  check_pool({.n = 3, .c = 64, .h = 6, .w = 6, .r = 3, .s = 3, .stride = 2, .pad = 1});
}

TEST_P(PoolParity, Global) {
  check_pool({.n = 3, .c = 70, .h = 7, .w = 7, .r = 7, .s = 7});
  check_pool({.n = 2, .c = 9, .h = 1, .w = 5, .r = 1, .s = 5});
}

TEST_P(PoolParity, OnesAndEmptyExtents) {
  check_pool({.n = 1, .c = 1, .h = 1, .w = 1});
  check_pool({.n = 1, .c = 1, .h = 5, .w = 5, .r = 3, .s = 3, .stride = 2, .pad = 1});
  check_pool({.n = 0, .c = 3, .h = 4, .w = 4, .r = 2, .s = 2});
  check_pool({.n = 3, .c = 0, .h = 4, .w = 4, .r = 2, .s = 2});
}

TEST_P(PoolParity, TiesNaNAndInfinity) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  PoolSpec s{.precision = precision(), .n = 2, .c = 3, .h = 9, .w = 8, .r = 3, .s = 3, .stride = 2, .pad = 1};
  for (const ImageLayout layout : kLayouts) {
    s.layout = layout;
    OpCase op_case = forward_case(s);
    CaseBuffer& x = op_case.buffers[0];
    x.start = Start::values;
    for (int64_t i = 0; i < x.elements; ++i) x.values.push_back(static_cast<double>(i * 7 % 3 - 3));
    for (size_t i = 5; i < x.values.size(); i += 41) x.values[i] = nan;
    for (size_t i = 9; i < x.values.size(); i += 53) x.values[i] = -infinity;
    for (size_t i = 11; i < x.values.size(); i += 67) x.values[i] = infinity;
    op_case.name += " special values";
    check(Op::pool_forward, op_case);
  }
}

TEST_P(PoolParity, ContradictionsAreRefused) {
  if (!supported(Op::pool_forward)) return;
  const auto refused = [](PoolSpec s) {
    s.precision = precision();
    const auto bytes = [](void* p) { return static_cast<uint8_t*>(p); };
    expect_refused(Op::pool_forward, describe(s), [&](Ops& ops, void* p) { ops.pool_forward(s, p, p, bytes(p)); });
    expect_refused(Op::pool_backward, describe(s), [&](Ops& ops, void* p) { ops.pool_backward(s, p, bytes(p), p); });
  };
  refused({.n = 1, .c = -1, .h = 4, .w = 4});
  refused({.n = 1, .c = 1, .h = 4, .w = 4, .r = 2, .s = 2, .pad = 2});
  refused({.n = 1, .c = 1, .h = 4, .w = 4, .r = 5, .s = 5});
  refused({.n = 1, .c = 1, .h = 20, .w = 20, .r = 17, .s = 16});
}

DLB_EVERY_PRECISION(PoolParity);

}  // namespace
}  // namespace dlbench::test
